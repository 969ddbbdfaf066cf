"""What is in a mailbox: counted from its files after a crash, and from then on kept with each change."""

import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from windlass import limits
from windlass.fleet.mailbox.mail_names import MailName, parse
from windlass.fleet.mailbox.quarantine import Quarantine
from windlass.fleet.store.durable_files import make_directories
from windlass.fleet.store.shared_state import Held


class Inventory(msgspec.Struct, frozen=True):
    """`next` is the number of the next delivery; all below `reserved` may have been given out before a power cut."""

    next: int = 1
    reserved: int = 1
    messages: int = 0  # delivered and neither acknowledged nor set aside
    set_aside: int = 0
    bytes: int = 0  # of all of these
    returns: int = 0  # how often anything but a delivery changed what waits: a list of it from before is no longer one

    def plus(self, *, messages: int = 0, set_aside: int = 0, size: int = 0, returns: int = 0) -> "Inventory":
        return msgspec.structs.replace(
            self,
            messages=self.messages + messages,
            set_aside=self.set_aside + set_aside,
            bytes=self.bytes + size,
            returns=self.returns + returns,
        )


class Places:
    """The directories of a mailbox. `ids/` holds a second name of every message, the digest of its id."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.tmp = directory / "tmp"
        self.new = directory / "new"
        self.cur = directory / "cur"
        self.corrupt = directory / "corrupt"
        self.ids = directory / "ids"
        self.state = directory / "state"

    def exist(self) -> bool:
        return self.ids.is_dir()  # made last

    def make(self) -> None:
        if not self.exist():
            for place in (self.tmp, self.new, self.cur, self.corrupt, self.ids):
                make_directories(place)


def names(place: Path) -> list[MailName]:
    """The messages in new/ or cur/, oldest delivery first. What has another name is left out."""
    return [name for name in map(parse, sorted(os.listdir(place))) if name is not None]


def take(places: Places, held: Held[Inventory]) -> Inventory:
    """Count everything, put right what a crash left half done, and write it down. The lock is held."""
    held.begin()
    aside = Quarantine(places.corrupt)
    for place in (places.new, places.cur):
        for name in os.listdir(place):
            if parse(name) is None:
                aside.take_stranger(place / name)
    there = {name: place for place in (places.new, places.cur) for name in names(place)}
    _restore_ids(places, there)
    remove_stale(places.tmp)
    kept = aside.list()
    last = held.last or Inventory()
    # After a power cut the file may be an old one. Every number given out since is below what it reserved.
    known = last.next if held.same_boot else max(last.next, last.reserved)
    highest = max([name.sequence for name in there] + [item.sequence for item in kept], default=0)
    counted = Inventory(
        next=max(known, highest + 1),
        reserved=last.reserved,
        messages=len(there),
        set_aside=len(kept),
        bytes=sum(name.size for name in there) + sum(item.size for item in kept),
        returns=last.returns + 1,
    )
    held.finish(counted)
    return counted


def _restore_ids(places: Places, there: dict[MailName, Path]) -> None:
    """Every message has its second name, and nothing else has one."""
    expected = {name.digest: place / str(name) for name, place in there.items()}
    known = set(os.listdir(places.ids))
    for stale in known - expected.keys():
        (places.ids / stale).unlink()
    for missing in expected.keys() - known:
        with suppress(PermissionError):  # a directory has no second name; whoever claims it will set it aside
            os.link(expected[missing], places.ids / missing, follow_symlinks=False)


def remove_stale(tmp: Path) -> None:
    """Remove what killed writers left. By age: a younger file may be one that is being written."""
    for entry in os.scandir(tmp):
        try:
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > limits.MAILBOX_TEMPORARY_SECONDS:
                os.unlink(entry.path)
        except FileNotFoundError:
            continue  # its writer has just moved it
