"""The guardian: commands run as asked, and nothing of them is left, whoever dies first."""

import asyncio
import errno
import json
import os
import secrets
import select
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from windlass import limits
from windlass.guardian.handle import Guardian
from windlass.guardian.process import GuardedProcess
from windlass.testing.processes import stand_still
from windlass.wire.tools import ProcessExit, Spawner

BASH = "/bin/bash"
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


@pytest.fixture
async def guardian() -> AsyncIterator[Guardian]:
    guardian = await Guardian.start()
    yield guardian
    await guardian.aclose()


class Sleeper:
    """A process that can be found again wherever it was moved to, by a mark on its command line."""

    def __init__(self) -> None:
        self.mark = f"0.{secrets.randbelow(10**15):015d}"
        self.line = f"sleep 3600 {self.mark}"

    @property
    def hidden(self) -> str:
        """A shell line that leaves it behind: two forks away, in a session of its own, deaf to polite signals."""
        return f"(trap '' TERM HUP INT; setsid {BASH} -c 'trap \"\" TERM HUP INT; {self.line}' &) >/dev/null 2>&1"

    def pids(self) -> list[int]:
        return [pid for pid in _pids() if f"\0{self.mark}\0".encode() in _command_line(pid)]


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _command_line(pid: int) -> bytes:
    """Empty for a process that is gone and for a zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)


async def spawn(guardian: Guardian, script: str) -> GuardedProcess:
    return await guardian.spawn([BASH, "-c", script], cwd="/", env=ENVIRONMENT)


async def cancel(spawning: "asyncio.Task[GuardedProcess]") -> None:
    """Cancel a spawn. On a machine that was busy meanwhile it may be done already: then end what it started."""
    spawning.cancel()
    await asyncio.gather(spawning, return_exceptions=True)
    if not spawning.cancelled():
        process = spawning.result()
        os.close(process.output)
        process.kill()
        await process.wait()


async def finish(process: GuardedProcess) -> tuple[ProcessExit, str]:
    """Wait for the end and read all output (small enough for a pipe's buffer)."""
    exit = await asyncio.wait_for(process.wait(), 20)
    with os.fdopen(process.output, "rb") as pipe:
        return exit, (pipe.read() or b"").decode()


async def run(guardian: Guardian, script: str) -> tuple[ProcessExit, str]:
    return await finish(await spawn(guardian, script))


# -- running ----------------------------------------------------------------------------------------------------------


async def test_output_of_both_streams_and_the_exit_code_come_back(guardian: Guardian) -> None:
    """An agent would not learn that its command failed, or why."""
    assert await run(guardian, "echo out; echo err >&2; exit 3") == (ProcessExit(3, "exited"), "out\nerr\n")


async def test_a_command_that_dies_of_a_signal_has_a_negative_exit_code(guardian: Guardian) -> None:
    """A crash would look like an ordinary failure."""
    exit, _ = await run(guardian, "kill -SEGV $$")
    assert exit == ProcessExit(-signal.SIGSEGV, "exited")


async def test_a_guardian_is_a_spawner(guardian: Guardian) -> None:
    """Tools are given the port; a guardian that does not fit it could not be handed to them."""
    spawner: Spawner = guardian
    process = await spawner.spawn(["/bin/true"], cwd="/", env={})
    assert await process.wait() == ProcessExit(0)
    os.close(process.output)


async def test_the_environment_is_exactly_what_was_given(guardian: Guardian) -> None:
    """A key in the server's environment would be readable by every command (A30, A39)."""
    process = await guardian.spawn(["/usr/bin/env"], cwd="/", env={"ONE": "1", "TWO": "zwei ü"})
    _, output = await finish(process)
    assert sorted(output.splitlines()) == ["ONE=1", "TWO=zwei ü"]


async def test_the_working_directory_is_what_was_given(guardian: Guardian, tmp_path: Path) -> None:
    """A command approved for one directory would act on another."""
    process = await guardian.spawn(["/bin/pwd", "-P"], cwd=str(tmp_path), env={})
    assert (await finish(process))[1] == f"{tmp_path}\n"


async def test_no_descriptor_of_the_server_reaches_a_command(guardian: Guardian, tmp_path: Path) -> None:
    """A command could read the server's database or answer its clients through an inherited descriptor."""
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        links = [f"/proc/self/fd/{number}" for number in range(64)]
        process = await guardian.spawn(["/bin/readlink", *links], cwd="/", env={})
        _, output = await finish(process)
    stdin, stdout, stderr = output.splitlines()
    assert (stdin, stdout) == ("/dev/null", stderr)


async def test_no_signal_is_ignored_or_blocked_in_a_command(guardian: Guardian) -> None:
    """The guardian is deaf to SIGTERM; commands that inherit that could only be ended with force."""
    process = await guardian.spawn(["/bin/grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"], cwd="/", env={})
    _, output = await finish(process)
    # Signals 32 and 33 belong to the C library: nobody can set them, so what the test was started with stays.
    blocked, ignored = (int(line.split()[1], 16) & ~(0b11 << 31) for line in output.splitlines())
    assert (blocked, ignored) == (0, 0)


async def test_twenty_commands_at_once_all_run(guardian: Guardian) -> None:
    """Parallel tool calls would mix up their pipes or their exit codes."""
    results = await asyncio.gather(*(run(guardian, f"echo {number}; exit {number}") for number in range(20)))
    assert results == [(ProcessExit(number), f"{number}\n") for number in range(20)]


async def test_a_large_environment_arrives_whole(guardian: Guardian) -> None:
    """What is larger than a socket's buffer is sent in pieces; a lost piece would hang the spawn."""
    env = {f"V{number}": "x" * 100_000 for number in range(8)}
    process = await guardian.spawn(["/usr/bin/env"], cwd="/", env={**env})
    total = 0
    while piece := await asyncio.to_thread(_read_some, process.output):
        total += len(piece)
    os.close(process.output)
    assert total == 8 * (100_000 + len("V0=\n"))


def _read_some(descriptor: int) -> bytes:
    os.set_blocking(descriptor, True)
    return os.read(descriptor, 65536)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_it_works_on_every_loop(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """The server runs on uvloop and the tests do not: what works in one could be broken in the other."""

    async def story() -> None:
        guardian = await Guardian.start()
        try:
            assert await run(guardian, "echo hello") == (ProcessExit(0), "hello\n")
            with pytest.raises(FileNotFoundError):
                await guardian.spawn(["/there/is/no/such"], cwd="/", env={})
            process = await spawn(guardian, "sleep 3600")
            process.kill()
            assert (await finish(process))[0].reason == "killed"
        finally:
            # uvloop hangs in `close` when something is left open and warnings are errors.
            await guardian.aclose()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(story())


# -- refusing ---------------------------------------------------------------------------------------------------------


async def test_a_command_that_does_not_exist_is_an_error(guardian: Guardian) -> None:
    """A missing shell would hang a run for ever."""
    with pytest.raises(FileNotFoundError, match="/there/is/no/such"):
        await guardian.spawn(["/there/is/no/such"], cwd="/", env={})


async def test_a_command_that_may_not_be_executed_is_an_error(guardian: Guardian, tmp_path: Path) -> None:
    """A file without the x bit would look like a command that said nothing."""
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    with pytest.raises(PermissionError):
        await guardian.spawn([str(tmp_path / "plain")], cwd="/", env={})


async def test_a_directory_that_does_not_exist_is_an_error(guardian: Guardian) -> None:
    """The command would run somewhere else."""
    with pytest.raises(FileNotFoundError, match="/there/is/no/such"):
        await guardian.spawn(["/bin/true"], cwd="/there/is/no/such", env={})


@pytest.mark.parametrize("argv", [[], ["/bin/echo", "a\0b"]], ids=["empty", "NUL"])
async def test_a_malformed_command_line_is_an_error(guardian: Guardian, argv: list[str]) -> None:
    """It would end the keeper with a traceback, and the caller would only see a lost connection."""
    with pytest.raises(OSError) as caught:
        await guardian.spawn(argv, cwd="/", env={})
    assert caught.value.errno == errno.EINVAL


async def test_an_oversized_request_is_refused_before_it_is_sent(guardian: Guardian) -> None:
    """A model could make the server buffer and copy whatever it likes."""
    with pytest.raises(OSError) as caught:
        await guardian.spawn(["/bin/true", "x" * limits.GUARDIAN_MESSAGE_BYTES], cwd="/", env={})
    assert caught.value.errno == errno.E2BIG


async def test_more_than_the_limit_of_processes_is_refused(guardian: Guardian, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in a loop could fill the machine's process table."""
    monkeypatch.setattr(limits, "PROCESSES", 2)
    running = [await spawn(guardian, "sleep 3600") for _ in range(2)]
    with pytest.raises(BlockingIOError):
        await spawn(guardian, "true")
    for process in running:
        process.kill()
        await finish(process)


async def test_a_failed_spawn_gives_its_place_back(guardian: Guardian) -> None:
    """After PROCESSES misspelt commands nothing could be started any more."""
    with pytest.raises(FileNotFoundError):
        await guardian.spawn(["/there/is/no/such"], cwd="/", env={})
    assert guardian.running == 0


# -- killing ----------------------------------------------------------------------------------------------------------


async def test_kill_is_polite_first(guardian: Guardian) -> None:
    """A command could not remove its lock file before it goes (B18)."""
    process = await spawn(guardian, "trap 'echo bye; exit 5' TERM; echo up; while :; do :; done")
    await until(lambda: _has_output(process))
    process.kill()
    assert await finish(process) == (ProcessExit(5, "killed"), "up\nbye\n")


def _has_output(process: GuardedProcess) -> bool:
    return bool(select.select([process.output], [], [], 0)[0])


async def test_a_command_that_ignores_sigterm_is_killed_after_the_grace(guardian: Guardian) -> None:
    """A cancel would wait for the command's own good time (B18)."""
    assert limits.KILL_GRACE_SECONDS < limits.STOP_ASK_SECONDS  # or the run would be given up before
    process = await spawn(guardian, "trap '' TERM; echo up; sleep 3600; sleep 3600")
    await until(lambda: _has_output(process))
    began = time.monotonic()
    process.kill()
    exit, _ = await finish(process)
    assert exit == ProcessExit(-signal.SIGKILL, "killed")
    assert limits.KILL_GRACE_SECONDS <= time.monotonic() - began < 2 * limits.KILL_GRACE_SECONDS


async def test_kill_reaches_what_forked_twice_into_a_new_session(guardian: Guardian) -> None:
    """A daemon started by a cancelled command would live on (A34)."""
    sleeper = Sleeper()
    process = await spawn(guardian, f"{sleeper.hidden}; sleep 3600")
    await until(lambda: len(sleeper.pids()) == 1)
    process.kill()
    await finish(process)
    assert sleeper.pids() == []


async def test_kill_is_polite_to_what_left_the_group_too(guardian: Guardian) -> None:
    """A database that a command started as a daemon would be cut off, and every cancel take the whole grace."""
    sleeper = Sleeper()
    process = await spawn(guardian, f"(setsid {sleeper.line} &) >/dev/null 2>&1; {sleeper.line}")
    await until(lambda: len(sleeper.pids()) == 2)
    began = time.monotonic()
    process.kill()
    await finish(process)
    assert (sleeper.pids(), time.monotonic() - began < limits.KILL_GRACE_SECONDS) == ([], True)


async def test_what_a_command_leaves_behind_ends_with_it(guardian: Guardian) -> None:
    """`server & exit` would collect servers until the machine is full."""
    sleeper = Sleeper()
    up = f"until [ $(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep 3600 {sleeper.mark}') -gt 0 ]"
    process = await spawn(guardian, f"{sleeper.hidden}; {up}; do :; done; exit 4")
    exit, _ = await finish(process)
    assert (exit, sleeper.pids()) == (ProcessExit(4, "exited"), [])


async def test_last_words_of_what_is_just_ending_are_heard(guardian: Guardian) -> None:
    """The output of `tee >(wc -l)` would be cut off at random."""
    # A hundredth of a second after the command is certainly over, without a program to start: on a busy machine that
    # and a longer sleep took all of the grace.
    speaking = "while kill -0 $$ 2>/dev/null; do :; done; read -t 0.01 <&3; echo last"
    _, output = await run(guardian, f"exec 3<> <(:); ({speaking}) & echo first")
    assert output == "first\nlast\n"


async def test_a_fork_bomb_is_ended(guardian: Guardian) -> None:
    """One bad line would take the machine down with it (A34). Bounded: each of the bombs makes at most a few dozen."""
    sleeper = Sleeper()
    bomb = f"bomb() {{ [ $1 -gt 0 ] && {{ bomb $(($1-1)) & bomb $(($1-1)) & }}; exec {sleeper.line}; }}; bomb 5"
    process = await spawn(guardian, bomb)
    await until(lambda: len(sleeper.pids()) > 10)
    process.kill()
    await finish(process)
    assert sleeper.pids() == []


async def test_killing_twice_and_after_the_end_is_harmless(guardian: Guardian) -> None:
    """Two clients cancel at the same moment: the second must not hit a stranger or raise (B08)."""

    async def kill_twice() -> ProcessExit:
        process = await spawn(guardian, "sleep 3600")
        process.kill()
        await asyncio.sleep(0)
        process.kill()
        exit, _ = await finish(process)
        process.kill()
        return exit

    exits = await asyncio.gather(*(kill_twice() for _ in range(20)))
    assert set(exits) == {ProcessExit(-signal.SIGTERM, "killed")}


async def test_a_cancelled_waiter_does_not_disturb_another(guardian: Guardian) -> None:
    """A future that one waiter cancels is cancelled for all: the run would never hear of the end."""
    process = await spawn(guardian, "sleep 3600")
    first, second = asyncio.create_task(process.wait()), asyncio.create_task(process.wait())
    await asyncio.sleep(0)
    first.cancel()
    process.kill()
    assert (await second).reason == "killed"
    assert first.cancelled()
    os.close(process.output)


async def test_a_spawn_that_is_cancelled_leaves_nothing(guardian: Guardian) -> None:
    """A cancel in the middle of a spawn would leave a command that nobody knows of (B18)."""
    sleeper = Sleeper()
    for steps in range(12):
        task = asyncio.create_task(spawn(guardian, sleeper.line))
        for _ in range(steps):
            await asyncio.sleep(0)
        await cancel(task)
    assert (sleeper.pids(), guardian.running) == ([], 0)


async def test_a_first_spawn_that_is_cancelled_leaves_nothing_and_says_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The guardian starts with the first command: stopped at once, it would fill the log with its complaints."""
    for steps in range(12):
        guardian = Guardian()
        task = asyncio.create_task(spawn(guardian, "sleep 3600"))
        for _ in range(steps):
            await asyncio.sleep(0)
        await cancel(task)
        if steps == 6:
            assert (await run(guardian, "echo on"))[1] == "on\n"  # the next one starts another
        await guardian.aclose()
    assert capfd.readouterr().err == ""


async def test_a_guardian_that_does_not_start_in_time_is_told_as_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """People would read that a command could not be started, and then nothing."""
    monkeypatch.setattr(limits, "GUARDIAN_SPAWN_SECONDS", 0.0)
    with pytest.raises(TimeoutError, match="The guardian did not start in time"):
        await spawn(Guardian(), "true")


async def test_closing_while_a_cancelled_spawn_is_still_being_undone_is_clean() -> None:
    """I19: a run that is stopped hard while it starts a command would break the server's shutdown."""
    sleeper = Sleeper()
    for steps in range(12):
        guardian = await Guardian.start()
        task = asyncio.create_task(spawn(guardian, sleeper.line))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        await guardian.aclose()
        await asyncio.gather(task, return_exceptions=True)
        if not task.cancelled():
            os.close(task.result().output)
    assert sleeper.pids() == []


# -- losing one of the three ------------------------------------------------------------------------------------------

SERVER = """
import asyncio, json, sys
from windlass.guardian.handle import Guardian

async def main():
    guardian = await Guardian.start()
    process = await guardian.spawn(["/bin/bash", "-c", sys.argv[1]], cwd="/", env={"PATH": "/usr/bin:/bin"})
    print(json.dumps(process.pid), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def start_server(script: str) -> tuple[asyncio.subprocess.Process, int]:
    """A process that runs a guardian with one command; returns it and the guardian's pid."""
    repository = Path(__file__).parent.parent
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, script, stdout=asyncio.subprocess.PIPE, cwd=repository
    )
    assert server.stdout is not None
    command: int = json.loads(await server.stdout.readline())
    return server, _parent(_parent(command))


async def test_nothing_outlives_a_server_that_is_killed_with_force() -> None:
    """B36: a crash of the server would leave its commands writing into the user's files."""
    sleeper = Sleeper()
    server, guardian = await start_server(f"{sleeper.hidden}; trap '' TERM; {sleeper.line}")
    await until(lambda: len(sleeper.pids()) == 2)
    server.kill()
    await server.wait()
    await until(lambda: sleeper.pids() == [] and not _command_line(guardian), limits.KILL_GRACE_SECONDS)


async def test_whoever_was_told_the_end_hangs_up() -> None:
    """I19: a server that leaves right after the end of a command would leave the connection to its keeper open."""
    loop = asyncio.get_running_loop()
    ours, keepers = socket.socketpair()
    with keepers:
        keepers.setblocking(False)
        process = GuardedProcess(-1)
        await loop.create_unix_connection(lambda: process, sock=ours)
        await loop.sock_sendall(keepers, b'{"pid": 1}\n{"exit_code": 3, "reason": "exited"}\n')  # and no hanging up
        assert await process.wait() == ProcessExit(3, "exited")
        assert await asyncio.wait_for(loop.sock_recv(keepers, 1), 10) == b""


async def test_ctrl_c_in_the_terminal_does_not_end_the_guardian(guardian: Guardian) -> None:
    """The guardian would be gone before the server has ended its runs, and the rest unguarded."""
    process = await spawn(guardian, "echo up; sleep 3600")
    keeper = _parent(process.pid)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(_parent(keeper), number)
        os.kill(keeper, number)
    assert await run(guardian, "echo still here") == (ProcessExit(0), "still here\n")
    process.kill()
    assert (await finish(process))[0].reason == "killed"


async def test_nothing_outlives_a_guardian_that_is_killed_with_force(guardian: Guardian) -> None:
    """B36: without the guardian nobody would end what the server leaves, so the keepers end it at once."""
    sleeper = Sleeper()
    process = await spawn(guardian, f"{sleeper.hidden}; {sleeper.line}")
    await until(lambda: len(sleeper.pids()) == 2)
    os.kill(_parent(_parent(process.pid)), signal.SIGKILL)
    exit, _ = await finish(process)
    assert (exit.reason, sleeper.pids()) == ("lost", [])


async def test_the_next_spawn_after_a_lost_guardian_starts_another(guardian: Guardian) -> None:
    """One accident would cost every later command of the server."""
    process = await spawn(guardian, "sleep 3600")
    os.kill(_parent(_parent(process.pid)), signal.SIGKILL)
    await finish(process)
    assert await run(guardian, "echo back") == (ProcessExit(0), "back\n")


async def test_what_a_killed_keeper_leaves_is_ended_by_the_guardian(guardian: Guardian) -> None:
    """A command can kill its parent; its daemons would then be free."""
    sleeper = Sleeper()
    process = await spawn(guardian, f"{sleeper.hidden}; {sleeper.line}")
    await until(lambda: len(sleeper.pids()) == 2)
    os.kill(_parent(process.pid), signal.SIGKILL)
    exit, _ = await finish(process)
    assert exit.reason == "lost"
    await until(lambda: sleeper.pids() == [])


async def test_a_killed_keeper_costs_no_other_command_its_life(guardian: Guardian) -> None:
    """The guardian's sweep for orphans would take every running command with it."""
    bystander = await spawn(guardian, "echo up; sleep 3600")
    process = await spawn(guardian, "sleep 3600")
    os.kill(_parent(process.pid), signal.SIGKILL)
    await finish(process)
    await run(guardian, "true")
    assert _command_line(bystander.pid)
    bystander.kill()
    await finish(bystander)


async def test_closing_kills_what_runs_and_ends_the_guardian() -> None:
    """I19: a server that stops would leave its commands and its guardian."""
    sleeper = Sleeper()
    guardian = await Guardian.start()
    process = await spawn(guardian, f"{sleeper.hidden}; {sleeper.line}")
    await until(lambda: len(sleeper.pids()) == 2)
    pid = _parent(_parent(process.pid))
    await guardian.aclose()
    exit, _ = await finish(process)
    assert (exit.reason, sleeper.pids(), _command_line(pid)) == ("killed", [], b"")


async def test_closing_is_not_held_up_by_a_stopped_keeper() -> None:
    """A command may stop its keeper; the server's shutdown would hang on it (B35)."""
    sleeper = Sleeper()
    guardian = await Guardian.start()
    process = await spawn(guardian, sleeper.line)
    await stand_still(_parent(process.pid))
    await guardian.aclose()
    assert sleeper.pids() == []
    await finish(process)


async def test_a_closed_guardian_starts_nothing() -> None:
    """A run that ends late would start a new guardian on a server that has left."""
    guardian = await Guardian.start()
    await guardian.aclose()
    with pytest.raises(OSError, match="closed"):
        await spawn(guardian, "true")


async def test_no_descriptor_is_left_in_the_server() -> None:
    """I19: a server that runs for weeks would run out of descriptors."""

    async def story() -> None:
        guardian = await Guardian.start()
        await asyncio.gather(*(run(guardian, "true") for _ in range(5)))
        with pytest.raises(FileNotFoundError):
            await guardian.spawn(["/there/is/no/such"], cwd="/", env={})
        await guardian.aclose()

    await _measured(story)


async def _measured(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await story()  # what is made once and kept (the loop's own descriptors) is made here
    before = len(os.listdir("/proc/self/fd"))
    await story()
    assert len(os.listdir("/proc/self/fd")) == before
