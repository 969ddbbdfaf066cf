"""The worker as a process: how it starts, what it is told, and that it ends with its parent."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fleet.own_worker import WorkerProcess
from tests.fleet.plain_peer import PlainPeer
from windlass import limits
from windlass.fleet.worker.echo import EchoExecutor
from windlass.fleet.worker.worker import WorkerOptions, serve_worker
from windlass.testing.server_process import until

# As docs/workers.md shows it, without a word about logs: structlog prints them to standard output then.
_OWN_PROGRAM = """
import asyncio, sys
from windlass.fleet.worker.echo import EchoExecutor
from windlass.fleet.worker.worker import WorkerOptions, serve_worker
sys.exit(asyncio.run(serve_worker(WorkerOptions(), EchoExecutor, lambda address: print(address.url, flush=True))))
"""

# -- the process -------------------------------------------------------------------------------------------------------


async def test_sigterm_cancels_runs_tells_and_exits_0(tmp_path: Path) -> None:
    """A parent would see its link break without a word about its run (B58)."""
    async with WorkerProcess(tmp_path, "--mode", "service", forked=True) as worker:
        async with PlainPeer(worker.url) as peer:
            await peer.run("here __sleep_ms:60000")
            await peer.event()
            worker.process.send_signal(signal.SIGTERM)
            assert (await peer.terminal())[1] == {"kind": "terminal", "status": "cancelled"}
            assert await peer.closed() == 1001
        assert await worker.ended() == 0


async def test_the_ready_file_is_private_and_its_url_is_enough(tmp_path: Path) -> None:
    """Every user of the machine could read the secret; or a peer without headers could not connect."""
    async with WorkerProcess(tmp_path, "--mode", "service") as worker:
        assert worker.ready_file.stat().st_mode & 0o777 == 0o600
        assert worker.url.startswith("ws://127.0.0.1:")
        assert worker.url.endswith("/" + worker.token)
        for path in (f"/proc/{worker.process.pid}/cmdline", f"/proc/{worker.process.pid}/environ"):
            assert worker.token not in await asyncio.to_thread(Path(path).read_text)
        assert worker.token not in worker.log()


async def test_without_a_ready_file_the_url_is_printed(tmp_path: Path) -> None:
    """A person at a terminal could not use a worker."""
    argv = [sys.executable, "-m", "windlass", "worker", "--executor", "echo", "--mode", "one"]
    process = await asyncio.create_subprocess_exec(
        *argv, stdout=asyncio.subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path
    )
    assert process.stdout is not None
    async with PlainPeer((await process.stdout.readline()).decode().strip()) as peer:
        assert (await peer.ask("x"))[1]["status"] == "completed"
    assert await process.wait() == 0


@pytest.mark.parametrize("who_logs", ["windlass worker", "a program that set up no log"])
async def test_a_worker_whose_log_nobody_reads_any_more_leaves_all_the_same(tmp_path: Path, who_logs: str) -> None:
    """It would stay for ever, because it could not say that it goes (B50)."""
    is_ours = who_logs == "windlass worker"
    argv = ["-m", "windlass", "worker", "--executor", "echo", "--mode", "one"] if is_ours else ["-c", _OWN_PROGRAM]
    reading, writing = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *argv),
        stdout=asyncio.subprocess.PIPE,
        stderr=writing if is_ours else subprocess.DEVNULL,
        cwd=tmp_path,
        env={**os.environ, "WINDLASS_LOG": "info"},
    )
    os.close(writing)
    os.close(reading)
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()
    if not is_ours:
        process.stdout._transport.close()  # type: ignore[attr-defined]  # where it prints its address, and its log
    async with PlainPeer(url) as peer:
        assert (await peer.ask("x"))[1]["status"] == "completed"
    async with asyncio.timeout(20):
        code = await process.wait()
    assert code == 0 or not is_ours  # Python itself may complain of what somebody's program could not print


async def test_the_end_of_standard_input_means_nothing_without_a_spec(tmp_path: Path) -> None:
    """A worker started by a service manager, with no standard input, would leave at once."""
    async with (
        WorkerProcess(tmp_path, "--mode", "service", forked=True) as worker,
        PlainPeer(worker.url) as peer,
    ):
        assert (await peer.ask("x"))[1]["status"] == "completed"


@pytest.mark.parametrize("pretty", [False, True])
async def test_the_spec_comes_on_standard_input_and_the_parents_end_is_the_workers(
    tmp_path: Path, pretty: bool
) -> None:
    """A worker would outlive its parent (B59 I22); or its secret would be in its arguments (A39)."""
    ours, theirs = socket.socketpair()
    spec = f'{{"secret": "s3cret-of-the-test", "executor": "echo", "parent_fd": {theirs.fileno()}}}'
    worker = WorkerProcess(tmp_path, "--mode", "one", "--spec-stdin", executor="")
    with ours, theirs:
        await worker.launch(stdin=subprocess.PIPE, pass_fds=[theirs.fileno()])
        assert worker.process.stdin is not None
        worker.process.stdin.write((spec.replace(",", ",\n") if pretty else spec).encode() + b"\n")
        worker.process.stdin.close()
        theirs.close()
        await worker.ready()
        assert worker.token == "s3cret-of-the-test"
        async with PlainPeer(worker.url) as peer:
            await peer.run("here __sleep_ms:60000")
            await peer.event()
            ours.close()
            assert (await peer.terminal())[1] == {"kind": "terminal", "status": "cancelled"}
            assert await peer.closed() == 1001  # reading it answers it: else the worker waits for the answer
            assert await worker.ended() == 1
    assert "the parent is gone" in worker.log()


@pytest.mark.parametrize("named", ['"parent_fd": 0', '"identity": "named nothing"'])
async def test_standard_input_itself_is_the_parents_descriptor(tmp_path: Path, named: str) -> None:
    """Where no other descriptor is handed down, a worker would outlive its parent (B59 I22)."""
    worker = WorkerProcess(tmp_path, "--mode", "service", "--spec-stdin", executor="")
    await worker.launch(stdin=subprocess.PIPE)
    assert worker.process.stdin is not None
    worker.process.stdin.write(b'{"secret": "abc", "executor": "echo", %s}\n' % named.encode())
    worker.process.stdin.flush()
    await worker.ready()
    worker.process.stdin.close()
    assert await worker.ended() == 1


BLOCKS = """
import time
class Blocks:
    async def run(self, spec, events, steer, cancel):
        open("begun", "w").close()
        while True:
            time.sleep(60)
"""


async def test_a_worker_ends_with_its_parent_whatever_its_executor_does(tmp_path: Path) -> None:
    """One blocking call would make an orphan of it (B59 I22)."""
    ends = (limits.WORKER_ORPHAN_SECONDS, limits.LINK_CLOSE_SECONDS, limits.WORKER_LAST_SECONDS)
    assert ends == (3, 3, 8)  # what it takes is made of these; here they are shorter
    bounds = {"WORKER_ORPHAN_SECONDS": 0.3, "LINK_CLOSE_SECONDS": 0.3, "WORKER_LAST_SECONDS": 0.8}
    (tmp_path / "blocks.py").write_text(BLOCKS)
    spec = b'{"secret": "abc", "executor": "blocks:Blocks", "parent_fd": 0}\n'
    arguments = ("--mode", "service", "--spec-stdin")
    worker = WorkerProcess(tmp_path, *arguments, executor="", bounds=bounds, watched=False)
    await worker.launch(stdin=subprocess.PIPE)
    assert worker.process.stdin is not None
    worker.process.stdin.write(spec)
    worker.process.stdin.flush()
    await worker.ready()
    async with PlainPeer(worker.url) as peer:
        await peer.run("x")
        await until((tmp_path / "begun").exists, "the executor blocks")
        worker.process.stdin.close()
        assert await worker.ended(30) == 1


async def test_an_executor_that_blocks_its_thread_is_cancelled_all_the_same(tmp_path: Path) -> None:
    """The parent would wait for a terminal for as long as the executor sleeps (B58)."""
    (tmp_path / "blocks.py").write_text(BLOCKS)
    # How long it is asked and aborted is as shipped; how long its process is given after its last word is not.
    bounds = {"WORKER_LAST_SECONDS": 0.8}
    worker = WorkerProcess(tmp_path, "--mode", "reusable", executor="blocks:Blocks", bounds=bounds, watched=False)
    async with worker:
        async with PlainPeer(worker.url) as peer:
            await peer.run("x")
            await until((tmp_path / "begun").exists, "the executor blocks")
            begun = time.monotonic()
            await peer.send("cancel")
            assert (await peer.terminal())[1]["status"] == "cancelled"
            assert 5.9 < time.monotonic() - begun < 10
        assert await worker.ended(30) == 0


# -- what it is asked for ----------------------------------------------------------------------------------------------

WRONG = {
    ("--executor", "nobody"): "There is no executor 'nobody'",
    ("--executor", "no_such_module:X"): "cannot be imported",
    ("--executor", "bad_module:X"): "ZeroDivisionError",
    ("--executor", "shapes:Missing"): "no class Missing",
    ("--executor", "shapes:NotAsync"): "async def run",
    ("--executor", "shapes:FewArguments"): "async def run",
    ("--executor", "shapes:NeedsArguments"): "without arguments",
    ("--executor", "echo", "--listen", "0.0.0.0:0"): "--tls-cert",
    ("--executor", "echo", "--listen", "nonsense"): "HOST:PORT",
    ("--executor", "echo", "--tls-cert", "x"): "go together",
    ("--executor", "echo", "--tls-cert", "x", "--tls-key", "x"): "certificate cannot be used",
    (): "--executor is missing",
    ("--spec-stdin",): "not one JSON document",
}
SHAPES = """
class NotAsync:
    def run(self, spec, events, steer, cancel): ...
class FewArguments:
    async def run(self, spec): ...
class NeedsArguments:
    def __init__(self, model): ...
    async def run(self, spec, events, steer, cancel): ...
"""


@pytest.mark.parametrize(("arguments", "words"), WRONG.items(), ids=range(len(WRONG)))
async def test_what_cannot_work_is_said_at_the_start(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    """It would fail at the first assignment, far from whoever could mend it."""
    (tmp_path / "bad_module.py").write_text("1 / 0")
    (tmp_path / "shapes.py").write_text(SHAPES)
    worker = WorkerProcess(tmp_path, "--mode", "one", *arguments, executor="", forked=True)
    await worker.launch()
    assert await worker.ended() == 2
    assert words in worker.log()
    assert "Traceback" not in worker.log()


async def test_a_taken_port_is_said(tmp_path: Path) -> None:
    """A traceback would tell nobody what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        worker = WorkerProcess(tmp_path, "--mode", "one", "--listen", address, forked=True)
        await worker.launch()
        assert await worker.ended() == 2
    assert "cannot be listened on" in worker.log()


async def test_a_worker_loads_neither_the_server_nor_an_http_library(tmp_path: Path) -> None:
    """Every assignment would wait for a second of imports that it does not use."""
    code = (
        "import sys; from windlass.cli.loading import load; load('windlass.worker_app'); "
        "import windlass.fleet.worker.echo; "
        "print([name for name in ('litestar', 'uvicorn', 'aiohttp', 'sqlite3', 'rich', 'windlass.engine')"
        " if name in sys.modules])"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, env={**os.environ}
    )
    output, _ = await process.communicate()
    assert output.decode().strip() == "[]"


async def test_a_worker_that_is_stopped_while_it_starts_leaves_nothing() -> None:
    """A host that changes its mind would wait for ever, or keep a port and a thread (I19)."""
    for turns in range(6):
        serving = asyncio.create_task(serve_worker(WorkerOptions(mode="service"), EchoExecutor))
        for _ in range(turns):
            await asyncio.sleep(0)
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving


async def test_a_document_that_ends_with_its_pipe_is_no_dead_parent(tmp_path: Path) -> None:
    """`echo '{...}' | windlass worker --spec-stdin` would leave before anyone could connect."""
    worker = WorkerProcess(tmp_path, "--mode", "one", "--spec-stdin", executor="")
    await worker.launch(stdin=subprocess.PIPE)
    assert worker.process.stdin is not None
    worker.process.stdin.write(b'{"secret": "abc", "executor": "echo"}\n')
    worker.process.stdin.close()
    await worker.ready()
    async with PlainPeer(worker.url) as peer:
        _, terminal = await peer.ask("hello")
        assert terminal["result"] == "echo: hello"
    assert await worker.ended(30) == 0
