"""A search is ended by its time, by a cancel and by the end of the server; the event loop is free meanwhile (A32)."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.tools.searching import WITHOUT, grep, make_files
from windlass import limits
from windlass.tools.files import WorkspaceRoot
from windlass.wire.tools import ToolError

HOSTILE = "(a+)+$"  # takes 2^60 steps for sixty letters and another


@pytest.fixture
def hostile(workspace: Path) -> Path:
    make_files(workspace, {"a": "a" * 60 + "b\n"})
    return workspace


def searching(directory: Path) -> Iterator[int]:
    """Processes that have this directory open as where they stand: those that search in it."""
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd") == str(directory):
                yield int(pid)
        except OSError:
            continue


async def until_searching(directory: Path) -> None:
    while not list(searching(directory)):  # noqa: ASYNC110 (nothing tells of what other processes do)
        await asyncio.sleep(0.005)


async def test_a_hostile_pattern_is_ended_and_the_loop_stays_free(
    root: WorkspaceRoot, hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A32: one pattern would hold a thread, or the whole server, for ever."""
    monkeypatch.setattr(limits, "SEARCH_SECONDS", 1.0)
    search = asyncio.create_task(grep(root, HOSTILE))
    longest, last = 0.0, time.monotonic()
    while not search.done():
        await asyncio.sleep(0.01)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    with pytest.raises(ToolError, match="took longer than 1 s"):
        await search
    assert longest < 0.9  # held up by the search, it would be a second
    assert list(searching(hostile)) == []


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_cancel_ends_the_search_at_once(root: WorkspaceRoot, hostile: Path, loop: str) -> None:
    """I19: a process would go on burning a core after the run is over."""

    async def cancel() -> list[int]:
        search = asyncio.create_task(grep(root, HOSTILE))
        await until_searching(hostile)
        search.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await search
        assert time.monotonic() - began < limits.KILL_GRACE_SECONDS  # which passes when nobody hears of its end
        return list(searching(hostile))

    factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        assert runner.run(cancel()) == []


async def test_a_cancel_before_it_has_begun_leaves_nothing(root: WorkspaceRoot, hostile: Path) -> None:
    """The same, in the moment in which the process starts."""
    for turns in range(4):
        search = asyncio.create_task(grep(root, HOSTILE))
        for _ in range(turns):
            await asyncio.sleep(0)
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search
    assert list(searching(hostile)) == []


async def test_a_search_that_cannot_be_killed_does_not_hold_up_a_cancel(
    root: WorkspaceRoot, hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B04: a process that waits for a disk that is gone takes no signal, and the run would never end."""
    killed: list[int] = []
    started: list[asyncio.subprocess.Process] = []
    plain = asyncio.create_subprocess_exec

    async def start(*argv: str, **options: Any) -> asyncio.subprocess.Process:
        started.append(await plain(*argv, **options))
        return started[0]

    monkeypatch.setattr(limits, "KILL_GRACE_SECONDS", 0.1)
    with monkeypatch.context() as patch:
        patch.setattr(asyncio, "create_subprocess_exec", start)
        patch.setattr(os, "killpg", lambda pid, _: killed.append(pid))
        task = asyncio.create_task(grep(root, HOSTILE))
        await until_searching(hostile)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(5):
                await task
    assert len(killed) == 1
    os.killpg(killed[0], signal.SIGKILL)
    # By the loop itself: one that is closed before it has heard of the end would complain in a later test.
    await asyncio.wait_for(started[0].wait(), 5)
    assert list(searching(hostile)) == []


def test_a_search_does_not_outlive_its_server(hostile: Path) -> None:
    """B36: what a killed server has started would go on."""
    script = textwrap.dedent(f"""
        import asyncio
        from windlass.tools.files import WorkspaceRoot
        from windlass.tools.grep import Grep
        plan = Grep(WorkspaceRoot({str(hostile)!r}), {WITHOUT!r}).plan({{"pattern": {HOSTILE!r}}}, "call")
        asyncio.run(plan.run())
    """)
    server = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2])
    try:
        asyncio.run(asyncio.wait_for(until_searching(hostile), 10))
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
    deadline = time.monotonic() + 5
    while list(searching(hostile)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert list(searching(hostile)) == []


async def test_a_search_that_needs_too_much_memory_is_refused(
    root: WorkspaceRoot, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A32: the machine would begin to swap, and everything stop."""
    monkeypatch.setattr(limits, "SEARCH_MEMORY_BYTES", 100 * limits.MIB)
    make_files(workspace, {"a": "\n\u0100" * 1_500_000})
    with pytest.raises(ToolError, match="too much memory"):
        await grep(root, "x")


async def test_a_tree_that_is_too_large_is_searched_in_part_and_says_so(root: WorkspaceRoot, workspace: Path) -> None:
    """A model would take a part for the whole; or a loop of directories never end."""
    deep = workspace.joinpath(*["d"] * (limits.SEARCH_DEPTH + 2))
    deep.mkdir(parents=True)
    (deep / "a").write_text("x")
    make_files(workspace, {"b": "x"})
    text = await grep(root, "x")
    assert text.splitlines()[0] == "b:1:x" and "search in a smaller `path`" in text


async def test_the_environment_of_the_search_has_no_credential(
    root: WorkspaceRoot, hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A39: a key would be readable in /proc for as long as a search goes on."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-7f3")
    search = asyncio.create_task(grep(root, HOSTILE))
    await until_searching(hostile)
    environments = [await asyncio.to_thread(Path(f"/proc/{pid}/environ").read_bytes) for pid in searching(hostile)]
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    assert environments and not any(b"canary" in environment for environment in environments)
