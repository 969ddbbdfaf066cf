"""A process that has loaded what our programs need, from which tests fork them: they start in a tenth of the time.

A test process has one `Stem`. What it forks is a real process with its own descriptors, environment and arguments; only
the imports are done already, which is most of what starting one of hundreds of servers and commands costs. What is read
while libraries load (`PYTHON...`, `LD_...`, `SSL_CERT_FILE`) must be told to a program that is started from nothing.

    python -m windlass.testing.stem DESCRIPTOR PROGRAM      the stem itself; one packet a request, one for each end
"""

import atexit
import contextlib
import gc
import importlib
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import msgspec

_PACKET_BYTES = 256 * 1024  # an environment and some arguments
_FORK_SECONDS = 60.0  # the stem may still be importing, on a machine that is full
_DESCRIPTORS = 4  # standard input, output and errors, and where the end is told
_NOT_FLUSHED = 120  # the exit code of a Python whose last output could not be written
# In these locales Python lets bytes pass that are no text; in others they are an error.
_LENIENT_LOCALES = ("", "C", "POSIX", "C.UTF-8", "C.utf8", "UTF-8")


class Request(msgspec.Struct):
    """All as bytes: what a shell hands to a program may be no text."""

    argv: list[bytes]
    environment: dict[bytes, bytes]
    directory: bytes
    is_script: bool = False


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
        *,
        is_script: bool = False,
    ) -> "Forked":
        """A new process that runs the program with these arguments, on these descriptors (of which it gets copies).

        Errors go where the output goes, there is nothing to read, and it is where we are, unless it is said otherwise.
        """
        with open(os.devnull, "rb") as nothing:
            standard = [nothing.fileno() if input is None else input, output, output if errors is None else errors]
            return Forked(self, self.fork_on(standard, argv, environment, directory, is_script=is_script))

    def fork_on(
        self,
        descriptors: list[int],
        argv: list[str],
        environment: dict[str, str],
        directory: str = "",
        *,
        is_script: bool = False,
    ) -> int:
        """The number of a new process on these three descriptors; its exit code is written to a fourth, if given.

        `is_script`: `argv` begins with a file of Python, which is run instead of the stem's program.
        """
        variables = {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
        where = os.fsencode(directory or os.getcwd())
        request = Request([os.fsencode(word) for word in argv], variables, where, is_script)
        socket.send_fds(self._socket, [msgspec.msgpack.encode(request)], descriptors)
        while not (reply := self._receive(_FORK_SECONDS)).forked:
            pass
        self._ended.pop(reply.forked, None)  # numbers come again: it would seem to have ended long ago
        return reply.forked

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
            raise AssertionError("the process that programs are forked from does not answer")
        packet = self._socket.recv(_PACKET_BYTES)
        if not packet:
            raise AssertionError("the process that programs are forked from is gone")
        reply = msgspec.msgpack.decode(packet, type=Reply)
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
    """Fork whenever asked to, tell of every end, and leave when the test process has, with all that it left."""
    start: Callable[[], Any] = importlib.import_module(program).start
    gc.collect()
    gc.freeze()  # a collection in a forked process would write to, and so copy, all that is loaded
    gc.disable()
    watched: dict[int, tuple[int, list[int]]] = {}  # pidfd -> pid, where its end is told if not on the link
    try:
        with socket.socket(fileno=descriptor) as link:
            _serve(link, watched, start)
    finally:
        # A test process that was killed has stopped nothing: its servers would be in the way of the next one's.
        for pid, _ in watched.values():
            os.kill(pid, signal.SIGKILL)


def _serve(link: socket.socket, watched: dict[int, tuple[int, list[int]]], start: Callable[[], Any]) -> None:
    while True:
        readable: list[Any] = [link, *watched]
        ready = select.select(readable, [], [])[0]
        for pidfd in [one for one in ready if isinstance(one, int)]:
            _tell_end(link, *watched.pop(pidfd))
            os.close(pidfd)
        if link in ready:
            packet, descriptors, _, _ = socket.recv_fds(link, _PACKET_BYTES, _DESCRIPTORS)
            if not packet:
                return
            request = msgspec.msgpack.decode(packet, type=Request)
            pid = os.fork()
            if pid == 0:
                watched.clear()  # its siblings are not its own to end
                link.close()
                _become(request, descriptors[:3], start)
            for standard in descriptors[:3]:
                os.close(standard)
            watched[os.pidfd_open(pid)] = (pid, descriptors[3:])
            link.send(msgspec.msgpack.encode(Reply(forked=pid)))


def _tell_end(link: socket.socket, pid: int, told_at: list[int]) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if not told_at:
        link.send(msgspec.msgpack.encode(Reply(ended=pid, code=code)))
    for descriptor in told_at:
        with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
            os.write(descriptor, str(code).encode())
        os.close(descriptor)


def _become(request: Request, standard: list[int], start: Callable[[], Any]) -> None:
    """Be the new process: never returns."""
    code = 1
    try:
        gc.enable()
        _take_streams(standard, request.environment)
        os.chdir(request.directory)
        os.environb.clear()
        os.environb.update(request.environment)
        time.tzset()  # else TZ would be the stem's
        sys.argv = [os.fsdecode(word) for word in request.argv]
        if request.is_script:
            sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
            runpy.run_path(sys.argv[0], run_name="__main__")
        else:
            start()
        code = 0
    except SystemExit as leaving:
        code = _exit_code(leaving)
    except KeyboardInterrupt:
        traceback.print_exc()
        code = -signal.SIGINT
    except BaseException:  # the border of a process: whoever reads its log should see why it ended
        traceback.print_exc()
    finally:
        _leave(code)


def _take_streams(standard: list[int], environment: dict[bytes, bytes]) -> None:
    """Have these and no other descriptors, and streams as a Python that is started makes them."""
    for target, descriptor in enumerate(standard):
        os.dup2(descriptor, target)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    names = (b"LC_ALL", b"LC_CTYPE", b"LANG")
    locale = next((environment[name] for name in names if environment.get(name)), b"").decode("ascii", "replace")
    errors = "surrogateescape" if locale in _LENIENT_LOCALES else "strict"
    encoding = sys.stdout.encoding
    # What the stem's own were buffered as, and whether they could be sought in, is nothing to this process.
    sys.stdin = open(0, closefd=False, encoding=encoding, errors=errors)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False, encoding=encoding, errors=errors)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False, encoding=encoding, errors="backslashreplace")  # noqa: SIM115


def _exit_code(leaving: SystemExit) -> int:
    if leaving.code is None or isinstance(leaving.code, int):
        return leaving.code or 0
    print(leaving.code, file=sys.stderr)
    return 1


def _leave(code: int) -> None:
    """End as an interpreter does: threads first, then what was registered, then what is still to be written."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            print("Exception ignored in the last words of standard output:", file=sys.stderr)
            traceback.print_exc()
            code = _NOT_FLUSHED
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        if code == -signal.SIGINT:  # so that a shell knows that it was interrupted
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        os._exit(code & 0xFF)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
