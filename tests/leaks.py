"""What a test leaves behind: tasks and timers on its loop; threads, descriptors and children of the process.

Everything is compared with what was there before the test, so that a server which several tests share is no leak: it
is started before the first look and stopped after the last one. What closes in the background is given a moment.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

PATIENCE_SECONDS = 1.0  # a socket's other end, a child's last gasp; paid only by a test that leaves something
_LOOK_AGAIN_SECONDS = 0.01


class Belongings(NamedTuple):
    """What this process holds: descriptors by number and target, threads, and the numbers of its children."""

    descriptors: set[tuple[str, str]]
    threads: set[threading.Thread]
    children: set[str]

    @classmethod
    def now(cls, loop: asyncio.AbstractEventLoop | None = None) -> "Belongings":
        """`loop`: one that outlives the test, with its pool of threads, which are no test's own."""
        return cls(_descriptors(), _threads(loop), _children())

    def since(self, before: "Belongings") -> list[str]:
        """What is here and was not there, each in the words that name it to whoever must close it."""
        # The words are made of what is new alone: this is called twice for every test, and hardly any leaves something.
        return sorted(
            [_described(*descriptor) for descriptor in self.descriptors - before.descriptors]
            + [f"thread {thread.name}" for thread in self.threads - before.threads]
            + [f"child process {number}: {command(int(number))}" for number in self.children - before.children]
        )


def _descriptors() -> set[tuple[str, str]]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue  # the one that listed the directory
        # A socket's target is its inode: with it, a number that was closed and given out again is seen as new.
        found.add((name, target))
    return found


def _described(number: str, target: str) -> str:
    kind = "socket" if target.startswith("socket:") else "file descriptor"
    return f"{kind} {number} -> {target}"


def _threads(loop: asyncio.AbstractEventLoop | None) -> set[threading.Thread]:
    pool = getattr(loop, "_default_executor", None)
    return set(threading.enumerate()) - (pool._threads if pool is not None else set())


def _children() -> set[str]:
    found: set[str] = set()
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children") as file:
                found.update(file.read().split())
        except (FileNotFoundError, ProcessLookupError):
            continue  # that thread has just ended
    return found


def command(pid: int) -> str:
    """The command line of a process."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return "just gone"
    return words or "ended, and nobody has waited for it"


class Pending(NamedTuple):
    """What waits on a loop."""

    tasks: dict[asyncio.Task[object], str]
    timers: dict[asyncio.TimerHandle, str]

    @classmethod
    def on(cls, runner: asyncio.Runner | None) -> "Pending":
        if runner is None:
            return cls({}, {})
        loop = runner.get_loop()
        tasks = {task: f"task {task.get_name()}: {task.get_coro()}" for task in asyncio.all_tasks(loop)}
        timers: list[asyncio.TimerHandle] = loop._scheduled  # type: ignore[attr-defined]
        return cls(tasks, {timer: f"timer: {timer}" for timer in timers if not timer.cancelled()})

    def since(self, before: "Pending") -> list[str]:
        tasks = [words for task, words in self.tasks.items() if task not in before.tasks]
        return sorted(tasks + [words for timer, words in self.timers.items() if timer not in before.timers])


def left_after(look: Callable[[], list[str]], wait: Callable[[float], object] = time.sleep) -> list[str]:
    """What `look` still finds when it has had a moment to close."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (left := look()) and time.monotonic() < deadline:
        wait(_LOOK_AGAIN_SECONDS)
    return left
