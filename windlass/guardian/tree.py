"""The tree of processes below this one: adopt it, reap it, kill it.

Used by the guardian and its keepers, both of which have one thread and never more.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Collection, Iterator
from typing import NamedTuple

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)
_LINUX = sys.platform == "linux"


def become_subreaper() -> None:
    """From now on orphans below this process become its children instead of init's."""
    if _LINUX and _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        # Without it a double fork escapes for ever, which is what this whole package is there to prevent.
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends, however it ends."""
    if _LINUX:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def wake_on_child_end() -> int:
    """A descriptor that becomes readable whenever a child has ended."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    # A full pipe is fine: one unread byte wakes the reader as well as many.
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _do_nothing)
    return reading


def stand_firm() -> None:
    """Survive what ends a server politely: ctrl-C in its terminal must not end its guardian first.

    A handler, not SIG_IGN: an ignored signal stays ignored over exec, and commands would not end on SIGTERM either.
    """
    # What the server was started with ignored (a shell does that to what it puts in the background) stays ignored over
    # exec too, so commands get it back. The two that Python itself ignores it gives back by itself.
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _do_nothing)
    # The server may have been started with signals blocked, and a mask is inherited by every command.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _do_nothing(_number: int, _frame: object) -> None:
    pass


class Reaped(NamedTuple):
    """`left`: whether children remain. In a subreaper that is: whether *anything* below this process remains."""

    ended: dict[int, int]
    left: bool


def reap() -> Reaped:
    """Collect the exit codes of all children that have ended, adopted ones too."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return Reaped(ended, left=False)
        if pid == 0:
            return Reaped(ended, left=True)
        ended[pid] = os.waitstatus_to_exitcode(status)


class Seen(NamedTuple):
    pid: int
    parent: int
    group: int
    started: int
    zombie: bool


class Sweep(NamedTuple):
    """What one round of killing met: processes that were still alive, and how many of those we may not signal."""

    alive: int
    refused: int

    @property
    def hopeless(self) -> bool:
        return self.alive > 0 and self.alive == self.refused


def kill_descendants(spare: Collection[int] = ()) -> Sweep:
    """SIGKILL everything below this process once, except `spare` (children of ours) and what is below those.

    What is being forked meanwhile is missed: repeat, with `reap` between, until nothing is left.
    """
    alive = refused = 0
    for process in _descendants(spare):
        if process.zombie:
            continue
        alive += 1
        try:
            _kill(process)
        except ProcessLookupError:
            pass
        except PermissionError:
            refused += 1
    return Sweep(alive, refused)


def ask_descendants(except_group: int) -> None:
    """SIGTERM to everything below this process but the members of one group (which had it already)."""
    for process in _descendants(()):
        if process.group != except_group and not process.zombie:
            try:
                _signal_pinned(process, signal.SIGTERM)
            except (ProcessLookupError, PermissionError):
                pass


def _kill(process: Seen) -> None:
    if process.parent == os.getpid():
        # We have not reaped it, so neither its pid nor its group can belong to anyone else by now. The whole group at
        # once, because the kernel does that atomically: one by one, a fork bomb is faster than we are.
        os.kill(process.pid, signal.SIGKILL)
        if process.group != os.getpgrp():
            os.killpg(process.group, signal.SIGKILL)
    else:
        _signal_pinned(process, signal.SIGKILL)


def _signal_pinned(process: Seen, number: signal.Signals) -> None:
    """Signal one that its own parent may reap at any moment: the pid could be a stranger's by the time we act."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        raise
    except OSError:
        # A kernel before 5.3, or no descriptors left: a tiny chance of reuse is better than a survivor.
        os.kill(process.pid, number)
        return
    try:
        now = _look(process.pid)
        # The start time tells two bearers of one pid apart; the parent may have changed, when it died.
        if now is not None and now.started == process.started:
            signal.pidfd_send_signal(pidfd, number)
    finally:
        os.close(pidfd)


def _descendants(spare: Collection[int]) -> Iterator[Seen]:
    children: dict[int, list[Seen]] = {}
    for process in _everyone():
        children.setdefault(process.parent, []).append(process)
    waiting = [child for child in children.get(os.getpid(), []) if child.pid not in spare]
    while waiting:
        process = waiting.pop()
        yield process
        waiting += children.get(process.pid, [])


def _everyone() -> Iterator[Seen]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if name.isdigit():
            process = _look(int(name))
            if process is not None:
                yield process


def _look(pid: int) -> Seen | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return None
    # The name in brackets may itself hold brackets and spaces; what follows the last one is plain.
    fields = stat.rpartition(b")")[2].split()
    return Seen(pid, int(fields[1]), int(fields[2]), int(fields[19]), fields[0] in (b"Z", b"X"))
