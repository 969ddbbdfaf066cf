"""Commands in the background, and the rest of long output: jobs."""

import asyncio
import json
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from bash_kit import Shell, a_run, run, some_jobs

from windlass import limits
from windlass.tools.files import WorkspaceRoot
from windlass.tools.jobs import Jobs
from windlass.tools.output import HeadAndTail
from windlass.wire.tools import ToolError, ToolOutput


@pytest.fixture
async def store(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Jobs]:
    monkeypatch.setattr(limits, "JOB_SETTLE_SECONDS", 0.2)
    async with some_jobs() as store:
        yield store


@pytest.fixture
def shell(store: Jobs, root: WorkspaceRoot) -> Shell:
    return a_run(store, root)


async def start(shell: Shell, command: str) -> str:
    output = await run(shell.bash, command, background=True)
    job: str = json.loads(output.metadata)["job"]
    return job


async def look(shell: Shell, job: str, **more: Any) -> ToolOutput:
    return await shell.job_output.plan({"id": job, **more}, "call").run()


async def kill(shell: Shell, job: str) -> str:
    return (await shell.job_kill.plan({"id": job}, "call").run()).content


class Mark:
    """Finds processes by a word on their command line."""

    def __init__(self) -> None:
        self.word = f"0.{secrets.randbelow(10**15):015d}"
        self.sleep = f"sleep 3600 {self.word}"

    @property
    def alive(self) -> int:
        count = 0
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    count += f"\0{self.word}\0".encode() in Path(f"/proc/{name}/cmdline").read_bytes()
                except OSError:
                    pass
        return count


@pytest.fixture
def mark() -> Mark:
    return Mark()


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)


async def test_a_background_command_is_answered_at_once_with_its_first_words(shell: Shell, mark: Mark) -> None:
    """A run would wait for a development server until its time limit."""
    output = await run(shell.bash, f"echo up; {mark.sleep}", background=True)
    job = json.loads(output.metadata)["job"]
    assert output.content == f"up\n[running in the background as {job}: job_output shows more, job_kill ends it]"
    assert (output.is_error, mark.alive) == (False, 1)


async def test_one_that_fails_at_once_says_so(shell: Shell) -> None:
    """The model would believe that its server runs."""
    output = await run(shell.bash, "echo no such port; exit 7", background=True)
    assert output.content == "no such port\n[exit code 7]"


async def test_each_look_shows_what_is_new(shell: Shell, workspace: Path) -> None:
    """The model would read the same lines again and again, or miss some."""
    os.mkfifo(workspace / "say")
    job = await start(shell, "exec 3<>say; echo begin; while read line <&3; do echo $line; done")
    assert "(nothing new)" in (await look(shell, job)).content
    for word in ("one", "two"):
        await asyncio.to_thread((workspace / "say").write_text, word + "\n")
        output = await look(shell, job, wait_seconds=10)
        assert output.content.startswith(f"{word}\n[{job}: running; bytes ")


async def test_a_look_that_waits_returns_with_the_end(shell: Shell) -> None:
    """It would wait for more of a command that has nothing more to say."""
    job = await start(shell, "sleep 0.5; exit 5")
    began = time.monotonic()
    assert f"[{job}: exit code 5" in (await look(shell, job, wait_seconds=30)).content
    assert time.monotonic() - began < 10


async def test_job_kill_ends_the_whole_tree(shell: Shell, mark: Mark) -> None:
    """B36: what the command started would go on."""
    job = await start(shell, f"(setsid {mark.sleep} &) >/dev/null 2>&1; {mark.sleep}")
    await until(lambda: mark.alive == 2)
    assert await kill(shell, job) == f"{job} was ended: killed, exit code -15."
    assert mark.alive == 0
    assert "had ended already" in await kill(shell, job)
    assert f"[{job}: killed" in (await look(shell, job)).content


async def test_the_rest_of_a_long_output_can_be_read_page_by_page(shell: Shell) -> None:
    """The line that matters is in the middle of a log, and the model would have to run it all again."""
    output = await run(shell.bash, "for i in $(seq 20000); do echo line $i ü; done")
    told = json.loads(output.metadata)
    expected = "".join(f"line {number} ü\n" for number in range(1, 20001))
    assert told["output_bytes"] == len(expected.encode())
    assert f'job_output with id "{told["job"]}" and offset' in output.content
    seen, offset = "", 0
    while offset < told["output_bytes"]:
        page = await look(shell, told["job"], offset=offset)
        next_offset = json.loads(page.metadata)["next_offset"]
        assert next_offset > offset and len(page.content) < limits.TOOL_OUTPUT_CHARACTERS
        seen += shell.jobs.get(told["job"]).output.page(offset, limits.JOB_PAGE_BYTES).text
        offset = next_offset
    assert seen == expected


async def test_what_was_not_kept_is_said(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model would take the end of the output for what follows its beginning."""
    monkeypatch.setattr(limits, "BASH_OUTPUT_BYTES", 2000)
    output = await run(shell.bash, "head -c 100000 /dev/zero | tr '\\0' x; echo end")
    job = json.loads(output.metadata)["job"]
    page = await look(shell, job, offset=5000)
    assert page.content.startswith("[bytes 5000 to 99004 were not kept")
    assert page.content.endswith(f"end\n[{job}: exit code 0; bytes 99004 to 100004 of 100004]")


async def test_jobs_of_another_session_are_not_there(store: Jobs, root: WorkspaceRoot, mark: Mark) -> None:
    """A15: one session could read and end what another one does."""
    job = await start(a_run(store, root, session="one"), mark.sleep)
    other = a_run(store, root, session="two")
    for tool in (other.job_output, other.job_kill):
        with pytest.raises(ToolError, match="There are: none"):
            tool.plan({"id": job}, "call")


async def test_a_run_that_was_cancelled_takes_its_jobs_with_it_and_no_others(
    store: Jobs, root: WorkspaceRoot, mark: Mark
) -> None:
    """B18: what a cancelled run started would go on; or a server of an earlier run end."""
    other = Mark()
    await start(a_run(store, root, run="one"), mark.sleep)
    await start(a_run(store, root, run="two"), other.sleep)
    await store.end_run("one")
    assert (mark.alive, other.alive) == (0, 1)


async def test_a_session_that_is_let_go_leaves_nothing(store: Jobs, root: WorkspaceRoot, mark: Mark) -> None:
    """What a deleted session said would stay in memory, and its servers on their ports."""
    shell = a_run(store, root, session="gone")
    job = await start(shell, f"echo secret; {mark.sleep}")
    store.let_go("gone")
    await until(lambda: mark.alive == 0)
    with pytest.raises(ToolError, match="no job"):
        shell.jobs.get(job)


async def test_a_cancel_while_it_settles_ends_it(shell: Shell, mark: Mark, monkeypatch: pytest.MonkeyPatch) -> None:
    """B18: nobody would know of a command that goes on."""
    monkeypatch.setattr(limits, "JOB_SETTLE_SECONDS", 30.0)
    task = asyncio.create_task(start(shell, mark.sleep))
    await until(lambda: mark.alive == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert mark.alive == 0


async def test_the_number_of_running_jobs_is_bounded(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model in a loop would fill the machine with servers."""
    monkeypatch.setattr(limits, "JOBS_RUNNING", 1)
    job = await start(shell, "sleep 3600")
    with pytest.raises(ToolError, match=f"in the background: {job}. End one"):
        await start(shell, "sleep 3600")
    await kill(shell, job)
    await start(shell, "sleep 3600")


async def test_a_job_ends_when_it_is_too_old(shell: Shell, mark: Mark, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forgotten server would run as long as ours."""
    monkeypatch.setattr(limits, "JOB_SECONDS", 0.1)
    job = await start(shell, mark.sleep)
    assert f"[{job}: killed" in (await look(shell, job, wait_seconds=10)).content


async def test_the_oldest_outputs_are_forgotten(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that runs for months would keep what every command ever said; one that still runs must stay."""
    monkeypatch.setattr(limits, "JOBS_KEPT", 2)
    running = await start(shell, "sleep 3600")
    ids = [json.loads((await run(shell.bash, "echo a")).metadata)["job"] for _ in range(5)]
    assert [job.id for job in shell.store.of("ses")] == [running, *ids[-3:]]


async def test_outputs_are_forgotten_by_their_size_too(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand outputs of a megabyte would be a gigabyte."""
    monkeypatch.setattr(limits, "JOBS_KEPT_BYTES", 250)
    for _ in range(5):
        await run(shell.bash, "head -c 100 /dev/zero")
    assert len(shell.store.of("ses")) == 3


async def test_nothing_is_left_in_the_temporary_directory(root: WorkspaceRoot) -> None:
    """Every server that ran would leave a directory behind."""
    async with some_jobs() as store:
        await run(a_run(store, root).bash, "cd /usr")
        assert os.path.basename(store.scratch) in os.listdir(os.path.dirname(store.scratch))
    assert os.path.basename(store.scratch) not in os.listdir(os.path.dirname(store.scratch))


@pytest.mark.parametrize("background", [True, False])
async def test_no_report_of_where_the_shell_stood_is_left(shell: Shell, background: bool) -> None:
    """I19: a server that runs for months would fill the temporary directory, a file for each command."""
    task = asyncio.create_task(run(shell.bash, "echo on; sleep 3600", background=background))
    if background:
        job: str = json.loads((await task).metadata)["job"]
        await kill(shell, job)
    else:
        await until(lambda: any(job.output.total for job in shell.store.of("ses")))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert os.listdir(shell.store.scratch) == ["tmp"]


async def test_a_look_behind_the_end_hides_nothing_that_comes_later(shell: Shell, workspace: Path) -> None:
    """A model that guesses an offset would wait for ever for the words of a server that is long up."""
    job = await start(shell, "echo one; until [ -e go ]; do sleep 0.01; done; echo two")
    assert (await look(shell, job, offset=10**12)).content == f"(nothing there)\n[{job}: running; bytes 4 to 4 of 4]"
    (workspace / "go").touch()
    assert (await look(shell, job, wait_seconds=10)).content.startswith("two\n")


async def test_a_look_further_on_does_not_count_as_having_seen_what_is_between(shell: Shell) -> None:
    """The error in the middle of a build would never be shown as new."""
    job = await start(shell, "echo one; sleep 3600")
    shell.jobs.get(job).output.add(b"two three")
    assert "three" in (await look(shell, job, offset=8)).content
    assert (await look(shell, job)).content.startswith("two three\n")
    await kill(shell, job)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("job_output", {}),
        ("job_output", {"id": "x", "offset": -2}),
        ("job_kill", {"id": ""}),
        ("job_kill", {"id": "x"}),
    ],
)
def test_bad_arguments_are_refused(shell: Shell, tool: str, arguments: dict[str, Any]) -> None:
    """The model would get another job's output, or believe that something ended."""
    with pytest.raises(ToolError):
        getattr(shell, tool).plan(arguments, "call")


# -- pages of a kept output --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64])
@pytest.mark.parametrize("limit", [6, 20, 1000])
def test_pages_join_to_what_was_kept(size: int, limit: int) -> None:
    """A page that begins in the wrong place would repeat or swallow text."""
    data = "aüb漢c🎈d\n".encode() * 4
    kept = HeadAndTail(limit)
    for byte in data:
        kept.add(bytes([byte]))
    gap_start, gap_end = kept.gap
    offset, joined = 0, ""
    while offset < len(data):
        page = kept.page(offset, size)
        assert page.end > page.start >= offset
        assert page.start == offset or (offset, page.start) == (gap_start, gap_end) or offset == gap_start
        joined += page.text
        offset = page.end
    if gap_start == gap_end and size >= 4:
        assert joined == data.decode()
    assert kept.page(len(data), 10).text == ""
