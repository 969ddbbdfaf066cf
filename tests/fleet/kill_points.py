"""`python -m tests.fleet.kill_points`: kill an operation after each of its system calls, one after the other, and look.

Random kills reach the narrow places seldom; this reaches each of them every time.
"""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tests.fleet.mailbox_kit import a_mail, files
from windlass.fleet.mailbox.mailbox import Mailbox
from windlass.fleet.mailbox.mailbox_shapes import MailboxBounds
from windlass.fleet.store.store import Store
from windlass.wire.agents import AgentSession

CALLS = ("open", "write", "fsync", "fdatasync", "link", "rename", "replace", "unlink", "mkdir", "pwrite")
PROJECT = Path("/project")
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
BOUNDS = MailboxBounds(attempts=1)  # what is given back is set aside: that, too, is cut short


def a_session(count: int) -> AgentSession:
    return AgentSession("agent", "idle", updated_at=count, payload=msgspec.Raw(b"1"))


class World:
    """A mailbox with two messages, the first claimed, and a store with a parent and a child; both open beforehand."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root)
        self.store.save(PROJECT, "kid", a_session(1), parent="top")
        self.box = self.store.mailbox(PROJECT, "top")
        self.directory = self.store.project_directory(PROJECT) / "mailboxes" / "top"
        self.box.deliver(a_mail("old"))
        self.box.deliver(a_mail("other"))
        (self.claim,) = self.box.claim()


OPERATIONS: dict[str, Callable[[World], object]] = {
    "deliver": lambda world: world.box.deliver(a_mail("new")),
    "claim": lambda world: world.box.claim(5),
    "ack": lambda world: world.box.ack(world.claim),
    "release": lambda world: world.box.release(world.claim),
    "set aside": lambda world: Mailbox(world.directory, BOUNDS).release(world.claim),
    "recover": lambda world: world.box.recover(everything=True),
    "save": lambda world: world.store.save(PROJECT, "kid", a_session(2)),
    "save a new child": lambda world: world.store.save(PROJECT, "new", a_session(2), parent="other"),
    "save a new root": lambda world: world.store.save(PROJECT, "root", a_session(2)),
}


def main() -> int:
    for name, operation in OPERATIONS.items():
        points = 0
        while _dies(name, operation, points + 1):
            points += 1
        print(f"{name}: killed after each of {points} calls")
    return 0


def _dies(name: str, operation: Callable[[World], object], call: int) -> bool:
    """Kill the operation after its n-th call and look at what is there; False if it has fewer."""
    root = Path(tempfile.mkdtemp(prefix="windlass-points-", dir=MEMORY))
    try:
        world = World(root)
        pid = os.fork()
        if not pid:
            _kill_after(call)
            operation(world)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            _look(world, name)
        return os.WIFSIGNALED(status)
    except AssertionError as error:
        raise AssertionError(f"{name}, killed after call {call}: {error}") from error
    finally:
        shutil.rmtree(root)


def _kill_after(call: int) -> None:
    left = [call]

    def watched(plain: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            result = plain(*arguments, **options)
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return step

    for name in CALLS:
        setattr(os, name, watched(getattr(os, name)))


def _look(world: World, name: str) -> None:
    box = world.box  # opened before the kill: it must notice by itself
    counted = box.statistics()
    there = files(world.directory)
    digests = sorted(file.split("-")[3] for file in there["new"] + there["cur"])
    assert there["ids"] == digests, "the ids are not those of the messages"
    box.recover()
    assert box.statistics() == counted, f"counted {counted}, and there is {box.statistics()}"
    box.deliver(a_mail("new"))
    assert [item.problem for item in box.list() if item.problem] == [], "a message is half there"
    ids = [item.mail.id for item in box.list() if item.mail is not None]
    ids += ["old"] * len(box.corrupt())
    expected = {"old", "other", "new"} - ({"old"} if name == "ack" and "old" not in ids else set())
    assert sorted(ids) == sorted(expected), f"there is {ids}"
    rebuilt = world.store.rebuild(PROJECT)
    assert not rebuilt.was_good or not rebuilt.mended, f"{rebuilt.mended} would have been read as they were"
    assert not rebuilt.problems, str(rebuilt.problems)
    assert world.store.load(PROJECT, "kid").updated_at in ((1, 2) if name == "save" else (1,))


if __name__ == "__main__":
    sys.exit(main())
