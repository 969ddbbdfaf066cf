"""A process that has loaded what a server needs, from which test servers are forked: they start in a tenth of the time.

A test process has one `Stem`. What it forks is a real process with its own descriptors, environment and arguments; only
the imports are done already, which is most of what starting one of hundreds of servers costs.

    python -m windlass.testing.stem DESCRIPTOR PROGRAM      the stem itself; one packet a request, one for each end
"""

import contextlib
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

import msgspec

_PACKET_BYTES = 256 * 1024  # an environment and some arguments
_FORK_SECONDS = 60.0  # the stem may still be importing, on a machine that is full


class Request(msgspec.Struct):
    argv: list[str]
    environment: dict[str, str]
    directory: str


class Reply(msgspec.Struct, omit_defaults=True):
    """`forked`: the new process. `ended`: one that is over, with its exit code as `subprocess` would tell it."""

    forked: int = 0
    ended: int = 0
    code: int = 0


class Stem:
    """The test's end."""

    def __init__(self, program: str) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv = [sys.executable, "-m", __name__, str(theirs.fileno()), program]
            self._process = subprocess.Popen(argv, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        self._ended: dict[int, int] = {}

    def run(
        self, argv: list[str], environment: dict[str, str], input: str = "", seconds: float = 60.0
    ) -> "subprocess.CompletedProcess[str]":
        """The program from its start to its end, as `subprocess.run` would do it."""
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
            stdin.write(input.encode())
            stdin.seek(0)
            process = self.fork(argv, environment, stdout.fileno(), stderr.fileno(), stdin.fileno())
            deadline = time.monotonic() + seconds
            while process.poll() is None:
                if time.monotonic() > deadline:
                    process.kill()
                    raise subprocess.TimeoutExpired(argv, seconds)
                select.select([self._socket], [], [], 1.0)
            stdout.seek(0)
            stderr.seek(0)
            texts = (stdout.read().decode(), stderr.read().decode())
        return subprocess.CompletedProcess(argv, process.returncode or 0, *texts)

    def fork(
        self,
        argv: list[str],
        environment: dict[str, str],
        output: int,
        errors: int | None = None,
        input: int | None = None,
        directory: str = "",
    ) -> "Forked":
        """A new process that runs the program with these arguments, on these descriptors (of which it gets copies).

        Errors go where the output goes, there is nothing to read, and it is where we are, unless it is said otherwise.
        """
        request = msgspec.json.encode(Request(argv, environment, directory or os.getcwd()))
        with open(os.devnull, "rb") as nothing:
            standard = [nothing.fileno() if input is None else input, output, output if errors is None else errors]
            socket.send_fds(self._socket, [request], standard)
        while not (reply := self._receive(_FORK_SECONDS)).forked:
            pass
        return Forked(self, reply.forked)

    def fileno(self) -> int:
        """Readable when a process of ours may have ended, for whoever waits for other things too."""
        return self._socket.fileno()

    def ended(self, pid: int) -> int | None:
        """The exit code of a process of ours, once it is over."""
        while pid not in self._ended and select.select([self._socket], [], [], 0)[0]:
            self._receive(0)
        return self._ended.get(pid)

    def _receive(self, seconds: float) -> Reply:
        if not select.select([self._socket], [], [], seconds)[0]:
            raise AssertionError("the process that servers are forked from does not answer")
        packet = self._socket.recv(_PACKET_BYTES)
        if not packet:
            raise AssertionError("the process that servers are forked from is gone")
        reply = msgspec.json.decode(packet, type=Reply)
        if reply.ended:
            self._ended[reply.ended] = reply.code
        return reply

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


class Forked:
    """As much of `subprocess.Popen` as whoever starts a server needs."""

    def __init__(self, stem: Stem, pid: int) -> None:
        self.pid = pid
        self._stem = stem
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._stem.ended(self.pid)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # over, and the word of it is under way
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


# -- the stem's own side -----------------------------------------------------------------------------------------------


def main(descriptor: int, program: str) -> None:
    """Fork whenever asked to, tell of every end, and leave when the test process has."""
    start: Callable[[], Any] = importlib.import_module(program).start
    link = socket.socket(fileno=descriptor)
    watched: dict[int, int] = {}  # pidfd -> pid
    while True:
        readable: list[Any] = [link, *watched]
        ready = select.select(readable, [], [])[0]
        for pidfd in [one for one in ready if isinstance(one, int)]:
            pid = watched.pop(pidfd)
            os.close(pidfd)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            link.send(msgspec.json.encode(Reply(ended=pid, code=code)))
        if link in ready:
            packet, descriptors, _, _ = socket.recv_fds(link, _PACKET_BYTES, 3)
            if not packet:
                return
            request = msgspec.json.decode(packet, type=Request)
            pid = os.fork()
            if pid == 0:
                link.close()
                _become(request, descriptors, start)
            for descriptor in descriptors:
                os.close(descriptor)
            watched[os.pidfd_open(pid)] = pid
            link.send(msgspec.json.encode(Reply(forked=pid)))


def _become(request: Request, standard: list[int], start: Callable[[], Any]) -> None:
    """Be the new process: never returns."""
    code = 1
    try:
        for target, descriptor in enumerate(standard):
            os.dup2(descriptor, target)
        # What the stem's own were buffered as, and whether they could be sought in, is nothing to this process.
        sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, closefd=False, errors="backslashreplace")  # noqa: SIM115
        os.closerange(3, 64)
        os.chdir(request.directory)
        os.environ.clear()
        os.environ.update(request.environment)
        sys.argv = request.argv
        start()
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 0 if leaving.code is None else 1
    except BaseException:  # the border of a process: whoever reads its log should see why it ended
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
