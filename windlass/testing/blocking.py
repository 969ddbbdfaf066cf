"""Calls that block an event loop, made to raise: one slow disk must not stop every stream of a server.

`forbid()` watches the whole process. A call of the kinds below raises BlockingCall when a loop is running in its thread
and our code made it there: a coroutine of ours, or a callback of ours that the loop ran. Tests, the simulation and the
command line may block their own loops, and so may what they call without awaiting it. Looking at a path (`stat`) and
reading a descriptor that is open are not watched.
"""

import asyncio
import functools
import inspect
import os
import socket
import sqlite3
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import windlass
from windlass.testing.blocking_allowed import ALLOWED

# What the interpreter itself tells of (sys.addaudithook). `open` is every way to open a file, imports among them.
_TOLD = {
    *("open", "os.listdir", "os.scandir", "os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "os.truncate"),
    *("fcntl.flock", "fcntl.lockf", "socket.getaddrinfo", "sqlite3.connect", "subprocess.Popen"),
}
_SENDING = ("connect", "send", "sendall", "sendto", "sendmsg")
_RECEIVING = ("accept", "recv", "recv_into", "recvfrom", "recvmsg")
_PACKAGE = str(Path(windlass.__file__).parent) + os.sep
_MAY_BLOCK = ("testing" + os.sep, "cli" + os.sep)  # rooms whose loop, if they run one, is theirs alone
_LIBRARIES = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_LOOP = tuple(
    str(Path(inspect.getfile(asyncio)).parent / name) for name in ("events.py", "base_events.py", "runners.py")
)
_ASYNCHRONOUS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

Role = Literal["ours", "may block", "library", "loop"]


class BlockingCall(RuntimeError):
    """Our code would have stopped the event loop."""


found: list[str] = []  # every one that was raised: a broad `except` may have swallowed it
_on_found: list[Callable[[str], object]] = [found.append]


def forbid(on_found: Callable[[str], object] | None = None) -> None:
    """From now on such calls raise in this process; `on_found` is told of each."""
    if on_found is not None:
        _on_found.append(on_found)
    _watch()


@functools.cache  # once a process: an audit hook cannot be taken away
def _watch() -> None:
    sys.addaudithook(_audit)
    # The attributes of modules and of classes written in Python: how our code reaches what has no audit event.
    for owner, name in ((time, "sleep"), (os, "fsync"), (os, "fdatasync"), (threading.Thread, "join")):
        _replace(owner, name, lambda *arguments: True)
    _replace(Future, "result", lambda future, *_: not future.done())
    _replace(subprocess.Popen, "wait", lambda process, *_: process.returncode is None)
    for name in _SENDING + _RECEIVING:
        _replace(socket.socket, name, lambda sock, *_: sock.gettimeout() != 0)
    plain: Callable[..., sqlite3.Connection] = sqlite3.connect
    sqlite3.connect = functools.partial(plain, factory=_Connection)  # type: ignore[assignment]


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _TOLD:
        check(event, arguments[0] if arguments else "")


def _replace(owner: Any, name: str, blocks: Callable[..., bool]) -> None:
    plain = getattr(owner, name)
    where = getattr(owner, "__qualname__", owner.__name__)

    @functools.wraps(plain)
    def checked(*arguments: Any, **options: Any) -> Any:
        if blocks(*arguments):
            check(f"{where}.{name}", arguments[0] if arguments else "")
        return plain(*arguments, **options)

    setattr(owner, name, checked)


class _Connection(sqlite3.Connection):
    """A connection whose statements are watched."""

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        check("sqlite3.execute", arguments[0])
        return super().execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        check("sqlite3.executemany", arguments[0])
        return super().executemany(*arguments)

    def executescript(self, *arguments: Any) -> sqlite3.Cursor:
        check("sqlite3.executescript", arguments[0])
        return super().executescript(*arguments)


def check(call: str, subject: object = "") -> None:
    """Raise if `call`, which is about to be made, would stop a loop of ours."""
    if asyncio._get_running_loop() is None:
        return
    culprit = _culprit(sys._getframe(1))
    if culprit is not None:
        where = f"{culprit.f_code.co_filename}:{culprit.f_lineno} in {culprit.f_code.co_qualname}"
        complaint = f"{call} {subject!r} blocks the event loop: {where}"
        for tell in _on_found:
            tell(complaint)
        raise BlockingCall(complaint)


def _culprit(frame: FrameType | None) -> FrameType | None:
    """Our frame that made the call, unless whoever called it may block."""
    ours = None
    while frame is not None:
        code = frame.f_code  # once a frame: the interpreter tells the audit hook of every such look
        role = _role(code.co_filename)
        if role == "loop":
            break  # a callback of the loop: whatever of ours it ran is to blame
        if role == "may block":
            return None
        if role == "ours":
            if _name(code.co_filename, code.co_qualname) in ALLOWED:
                return None
            ours = ours or frame
            if code.co_flags & _ASYNCHRONOUS:
                break  # whoever awaits it relies on it not to block
        frame = frame.f_back
    return ours


@functools.cache
def _role(path: str) -> Role:
    if path == __file__:
        return "library"  # the way from the call to `check`
    if path.startswith(_PACKAGE):
        return "may block" if path.removeprefix(_PACKAGE).startswith(_MAY_BLOCK) else "ours"
    if path in _LOOP:
        return "loop"
    return "library" if path.startswith(("<", *_LIBRARIES)) else "may block"


@functools.cache  # by the two words and not by the code: the hash of a code object is made of all its bytes, each time
def _name(path: str, function: str) -> str:
    return f"{path.removeprefix(_PACKAGE)}:{function}"
