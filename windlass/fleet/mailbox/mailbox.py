"""A session's mailbox: many writers, one reader of a message at a time, nothing lost, nothing half there (B71, I23).

Maildir style. A message is written in `tmp/`, gets a number and appears in `new/`, moves to `cur/` while somebody has
claimed it, and is removed by the ack. What cannot be read, or was claimed too often, goes to `corrupt/`.

- **Durable**: `deliver` returns when the message would survive a power cut: its content is synced before it has a name
  in `new/`, and `new/` after. Moves between directories rely on a rename being one step on disk (ext4, xfs, btrfs).
- **Ordered**: numbers are given under the mailbox's lock, together with the name, so a reader that sees a number has
  seen all below it. The senders' clocks decide nothing.
- **Once at a time**: a claim has a lease. When it is over, or the reader gives the message back, the next claim gets it
  again, in its old place, counted. A late ack of the old claim fits no file, and raises ClaimLost.
- **The same id is the same message** while it is there: delivering it again (a sender that was not told whether it
  worked) changes nothing and returns the first one's number. Another message under that id is refused.

The lock is held for a few renames; the syncs of deliveries and acks are outside it, so that writers share the disk's
commits. All of this blocks: an event loop calls it in a thread.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec

from windlass import limits
from windlass.errors import BadRequest
from windlass.fleet.mailbox.mail_file import are_the_same, decoded, encoded, read
from windlass.fleet.mailbox.mail_names import MailName, digest, parse, since_boot
from windlass.fleet.mailbox.mailbox_errors import ClaimLost, MailboxFull, OtherMail
from windlass.fleet.mailbox.mailbox_inventory import Inventory, Places, names, take
from windlass.fleet.mailbox.mailbox_queue import Queue
from windlass.fleet.mailbox.mailbox_shapes import Claim, Listed, MailboxBounds, MailboxStatistics
from windlass.fleet.mailbox.quarantine import Quarantine, SetAside
from windlass.fleet.store.durable_files import Unreadable, read_whole, sync_directory, write_new
from windlass.fleet.store.shared_state import Held, SharedState
from windlass.wire.agents import Mail


class Mailbox:
    """The mailbox in a directory, which is made by the first delivery. Any number of these may share it."""

    def __init__(
        self, directory: Path, bounds: MailboxBounds | None = None, clock: Callable[[], float] = since_boot
    ) -> None:
        self._places = Places(directory)
        self._bounds = bounds or MailboxBounds()
        self._clock = clock
        self._state = SharedState(self._places.state, Inventory)
        self._aside = Quarantine(self._places.corrupt)
        self._queue = Queue(self._places.new)

    # -- writers ------------------------------------------------------------------------------------------------------

    def deliver(self, mail: Mail) -> int:
        """Put a message in and return its number. It is there, and stays there, when this returns."""
        content = encoded(mail, self._bounds.mail_bytes)
        self._places.make()
        temporary = self._places.tmp / f"{os.getpid()}-{secrets.token_hex(8)}"
        try:
            write_new(temporary, content)
            with self._locked() as held:
                sequence = self._known(held, mail)
                if not sequence:
                    sequence = self._place(held, temporary, MailName(0, 0, len(content), digest(mail.id)))
        finally:
            temporary.unlink(missing_ok=True)
        sync_directory(self._places.new)
        return sequence

    def _known(self, held: Held[Inventory], mail: Mail) -> int:
        """The number of this message if it is there already, 0 if it is not. The lock is held."""
        mark = digest(mail.id)
        try:
            there = decoded(read_whole(self._places.ids / mark, self._bounds.mail_bytes))
        except FileNotFoundError:
            return 0
        except Unreadable:
            there = mail  # the one with this id is damaged, and will be set aside: it is the one until then
        if not are_the_same(there, mail):
            raise OtherMail(f"Another message with the id {mail.id!r} is there. Give this one an id of its own.")
        for place in (self._places.new, self._places.cur):
            for name in names(place):
                if name.digest == mark:
                    sync_directory(place)  # whoever delivered or claimed it may have been killed before doing so
                    return name.sequence
        take(self._places, held)  # somebody removed it by hand
        return 0

    def _place(self, held: Held[Inventory], temporary: Path, name: MailName) -> int:
        """Give the written message its number and its name in new/. The lock is held."""
        counted = self._with_room(self._counted(held), name.size)
        held.begin()
        if counted.next >= counted.reserved:
            counted = msgspec.structs.replace(counted, reserved=counted.next + limits.MAILBOX_RESERVED_NUMBERS)
            held.finish(counted)
            held.sync()
            sync_directory(self._places.directory)  # the state's own name, the first time
            held.begin()
        name = msgspec.structs.replace(name, sequence=counted.next)
        # link, not rename: rename would overwrite.
        os.link(temporary, self._places.new / str(name))
        os.rename(temporary, self._places.ids / name.digest)
        held.finish(msgspec.structs.replace(counted.plus(messages=1, size=name.size), next=counted.next + 1))
        return name.sequence

    def _with_room(self, counted: Inventory, size: int) -> Inventory:
        """The inventory, if one more message of this size fits. Raises MailboxFull."""
        most, most_bytes = self._bounds.messages, self._bounds.total_bytes
        if counted.messages + counted.set_aside < most and counted.bytes + size <= most_bytes:
            return counted
        raise MailboxFull(
            f"The mailbox {self._places.directory.name} is full: {counted.messages} messages wait and "
            f"{counted.set_aside} are set aside, {counted.bytes} bytes in all; {most} messages and {most_bytes} bytes "
            "are allowed. Deliver again when its session has read some, or see `windlass mailbox corrupt`."
        )

    # -- readers ------------------------------------------------------------------------------------------------------

    def claim(self, limit: int = 1, lease_seconds: float = limits.MAILBOX_LEASE_SECONDS) -> list[Claim]:
        """Take up to `limit` messages, the oldest first; fewer, or none, if no more wait.

        Nobody else gets them until the lease is over. That they were claimed is counted on disk before this returns.
        Messages that cannot be read are set aside on the way.
        """
        if not 0 < limit <= limits.MAILBOX_CLAIMS or not 0 < lease_seconds <= limits.MAILBOX_LEASE_MAX_SECONDS:
            raise BadRequest(
                f"Claim 1 to {limits.MAILBOX_CLAIMS} messages, for up to {limits.MAILBOX_LEASE_MAX_SECONDS:.0f} s."
            )
        claims: list[Claim] = []
        while self._places.exist() and len(claims) < limit:
            taken = self._take(limit - len(claims), lease_seconds)
            if not taken:
                break
            sync_directory(self._places.cur)
            sync_directory(self._places.new)
            claims += filter(None, map(self._opened, taken))
        return claims

    def _take(self, limit: int, lease_seconds: float) -> list[MailName]:
        """Move the oldest that wait to cur/, under the names their claims give them."""
        taken: list[MailName] = []
        with self._locked() as held:
            held.begin()
            counted = self._give_back_expired(self._counted(held))
            lease_ends = self._clock() + lease_seconds
            waiting = self._queue.oldest(counted.returns)
            while len(taken) < limit and (name := next(waiting, None)) is not None:
                claimed = name.claimed(lease_ends)
                # Another reader may have taken it since we listed what waits.
                with suppress(FileNotFoundError):
                    os.rename(self._places.new / str(name), self._places.cur / str(claimed))
                    taken.append(claimed)
            while self._queue.strangers:
                counted = counted.plus(set_aside=1, size=self._aside.take_stranger(self._queue.strangers.pop()))
            held.finish(counted)
        return taken

    def _opened(self, name: MailName) -> Claim | None:
        """The claim, or None if what was claimed is no message and was set aside."""
        mail, problem = read(self._places.cur, name, self._bounds.mail_bytes)
        if mail is not None:
            return Claim(str(name), name.sequence, name.attempts, mail)
        with suppress(ClaimLost):  # a very short lease may be over by now
            self.set_aside(str(name), problem)
        return None

    def ack(self, *claims: Claim | str) -> None:
        """Remove exactly these messages, durably. Raises ClaimLost, after the others, for those no longer ours."""
        try:
            self._settle(claims, self._remove)
        finally:
            sync_directory(self._places.cur)

    def release(self, *claims: Claim | str, reason: str = "", unread: bool = False) -> None:
        """Give messages back: the next claim gets them again, in their old place. The attempt stays counted, unless
        they are `unread`: nobody has tried to deal with them, so it says nothing about them."""
        try:
            self._settle(claims, lambda name: self._give_back(name, reason or "it was given back", unread))
        finally:
            sync_directory(self._places.new)
            sync_directory(self._places.cur)

    def set_aside(self, claim: Claim | str, reason: str) -> None:
        """Put a message of ours into corrupt/: nobody will ever manage to deal with it, because of `reason`."""
        self._settle((claim,), lambda name: self._put_aside(name, reason))

    def recover(self, everything: bool = False) -> int:
        """Give back what was claimed and whose lease is over; returns how many. `claim` does this by itself.

        With `everything` the leases do not matter: for the only reader of a mailbox, after its own crash. Also counts
        what is there and removes what killed writers left, which otherwise only happens after a crash.
        """
        if not self._places.exist():
            return 0
        with self._locked() as held:
            counted = take(self._places, held)
            before = len(names(self._places.cur))
            held.begin()
            held.finish(self._give_back_expired(counted, everything))
            return before - len(names(self._places.cur))

    def _settle(self, claims: tuple[Claim | str, ...], settle: Callable[[MailName], Inventory]) -> None:
        """Do something with each claimed message that is still ours, in one hold of the lock."""
        lost = []
        self._places.make()  # a token from elsewhere may name a mailbox that never was
        with self._locked() as held:
            held.begin()
            counted = self._counted(held)
            for token in (claim.token if isinstance(claim, Claim) else claim for claim in claims):
                name = parse(token)
                if name is not None and name.boot and (self._places.cur / token).exists():
                    change = settle(name)
                    counted = _sum(counted, change)
                else:
                    lost.append(token)
            held.finish(counted)
        if lost:
            raise ClaimLost(
                f"{', '.join(repr(token[:100]) for token in lost)}: no longer claimed by you. "
                "It was acknowledged or given back, or its lease was over. Claim again, for longer."
            )

    # Each of these returns what changes in the inventory. The lock is held.

    def _remove(self, name: MailName) -> Inventory:
        (self._places.cur / str(name)).unlink()
        (self._places.ids / name.digest).unlink(missing_ok=True)
        return Inventory(messages=-1, bytes=-name.size)

    def _give_back(self, name: MailName, reason: str, unread: bool = False) -> Inventory:
        if not unread and name.attempts >= self._bounds.attempts:
            return self._put_aside(
                name, f"It was claimed {name.attempts} times and never acknowledged; lastly {reason}."
            )
        os.rename(self._places.cur / str(name), self._places.new / str(name.given_back(unread)))
        return Inventory(returns=1)

    def _put_aside(self, name: MailName, reason: str) -> Inventory:
        self._aside.take(self._places.cur / str(name), name, reason)
        (self._places.ids / name.digest).unlink(missing_ok=True)
        return Inventory(messages=-1, set_aside=1)

    def _give_back_expired(self, counted: Inventory, everything: bool = False) -> Inventory:
        now = self._clock()
        for name in names(self._places.cur):
            if everything or name.is_over(now):
                change = self._give_back(name, "its lease was over")
                counted = _sum(counted, change)
        return counted

    # -- who only looks -----------------------------------------------------------------------------------------------

    def statistics(self) -> MailboxStatistics:
        if not self._places.exist():
            return MailboxStatistics()
        with self._locked() as held:
            counted = self._counted(held)
            claimed = len(names(self._places.cur))
        return MailboxStatistics(counted.messages - claimed, claimed, counted.set_aside, counted.bytes, counted.next)

    def corrupt(self) -> list[SetAside]:
        """What was set aside, and why."""
        return self._aside.list() if self._places.exist() else []

    def list(self, limit: int = limits.MAILBOX_MESSAGES) -> list[Listed]:
        """The messages that wait or are claimed, oldest first, without claiming any."""
        if not self._places.exist():
            return []
        with self._locked() as held:
            self._counted(held)
            there = [(name, place) for place in (self._places.new, self._places.cur) for name in names(place)]
        there.sort(key=lambda item: item[0].sequence)
        return [self._listed(name, place) for name, place in there[:limit]]

    def _listed(self, name: MailName, place: Path) -> Listed:
        mail, problem = read(place, name, self._bounds.mail_bytes)
        left = 0.0 if name.is_over(self._clock()) else name.lease_ends_ms / 1000 - self._clock()
        state: Literal["waiting", "claimed"] = "claimed" if place == self._places.cur else "waiting"
        return Listed(name.sequence, state, name.attempts, name.size, round(left, 3), mail, problem)

    def discard(self, name: str) -> None:
        """Delete one that was set aside, for good. Raises NotFound."""
        self._places.make()
        with self._locked() as held:
            held.begin()
            counted = self._counted(held)
            item = self._aside.discard(name)
            held.finish(counted.plus(set_aside=-1, size=-item.size))

    # -- all ----------------------------------------------------------------------------------------------------------

    @contextmanager
    def _locked(self) -> "Iterator[Held[Inventory]]":
        with self._state.locked() as held:
            if held.content is None:
                take(self._places, held)
            yield held

    def _counted(self, held: Held[Inventory]) -> Inventory:
        assert held.content is not None, "_locked counted it"
        return held.content


def _sum(counted: Inventory, change: Inventory) -> Inventory:
    return counted.plus(messages=change.messages, set_aside=change.set_aside, size=change.bytes, returns=change.returns)
