"""The mailbox against the simplest thing that does the same: a list. Hypothesis looks for a difference."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.fleet.mailbox_kit import Clock, a_mail
from windlass.fleet.mailbox.mailbox import Mailbox
from windlass.fleet.mailbox.mailbox_errors import ClaimLost, MailboxFull
from windlass.fleet.mailbox.mailbox_shapes import Claim, MailboxBounds

BOUNDS = MailboxBounds(messages=5, attempts=3)
_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # thousands of syncs that show nothing here


class Expected:
    """A message as the model remembers it."""

    def __init__(self, sequence: int, mail_id: str) -> None:
        self.sequence = sequence
        self.mail_id = mail_id
        self.attempts = 0
        self.lease_ends: float | None = None


class MailboxMachine(RuleBasedStateMachine):
    """Two openings of one mailbox (two readers), a clock, crashes between operations."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="windlass-mailbox-", dir=_MEMORY))
        self.clock = Clock()
        self.boxes = [Mailbox(self.directory / "box", BOUNDS, self.clock) for _ in range(2)]
        self.boxes[0].deliver(a_mail("first"))
        self.expected = [Expected(1, "first")]
        self.next = 2
        self.set_aside = 0
        self.claims: list[Claim] = []

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    @rule(mail_id=st.sampled_from("abcdefg"), who=st.integers(0, 1))
    def deliver(self, mail_id: str, who: int) -> None:
        known = [message.sequence for message in self.expected if message.mail_id == mail_id]
        full = len(self.expected) + self.set_aside >= BOUNDS.messages
        try:
            sequence = self.boxes[who].deliver(a_mail(mail_id))
        except MailboxFull:
            assert full and not known
            return
        assert known == [sequence] if known else (sequence == self.next and not full)
        if not known:
            self.expected.append(Expected(sequence, mail_id))
            self.next += 1

    @rule(limit=st.integers(1, 3), lease=st.sampled_from([1.0, 5.0]), who=st.integers(0, 1))
    def claim(self, limit: int, lease: float, who: int) -> None:
        for message in list(self.expected):
            if message.lease_ends is not None and message.lease_ends <= self.clock.seconds:
                self._given_back(message)
        free = [message for message in self.expected if message.lease_ends is None][:limit]
        for message in free:
            message.attempts += 1
            message.lease_ends = self.clock.seconds + lease
        claims = self.boxes[who].claim(limit, lease)
        assert [(c.sequence, c.mail.id, c.attempt) for c in claims] == [
            (message.sequence, message.mail_id, message.attempts) for message in free
        ]
        self.claims += claims

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), who=st.integers(0, 1), ack=st.booleans())
    def settle(self, data: st.DataObject, who: int, ack: bool) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        ours = [m for m in self.expected if (m.sequence, m.attempts) == (claim.sequence, claim.attempt)]
        message = next((m for m in ours if m.lease_ends is not None), None)
        box: Any = self.boxes[who]
        try:
            box.ack(claim) if ack else box.release(claim)
        except ClaimLost:
            assert message is None
            return
        assert message is not None
        if ack:
            self.expected.remove(message)
        else:
            self._given_back(message)

    def _given_back(self, message: Expected) -> None:
        message.lease_ends = None
        if message.attempts >= BOUNDS.attempts:
            self.expected.remove(message)
            self.set_aside += 1

    @rule(seconds=st.sampled_from([0.5, 1.0, 5.0]))
    def wait(self, seconds: float) -> None:
        self.clock.seconds += seconds

    @rule()
    def a_process_is_killed_in_the_middle(self) -> None:
        """It leaves its mark in the state, and perhaps a file in tmp/."""
        with (self.directory / "box" / "state").open("r+b") as state:
            state.write(b"~")
        (self.directory / "box" / "tmp" / "half").write_bytes(b"{")

    @rule()
    def discard(self) -> None:
        for aside in self.boxes[0].corrupt():
            self.boxes[0].discard(aside.name)
        self.set_aside = 0

    @invariant()
    def the_mailbox_holds_what_is_expected(self) -> None:
        listed = [
            (item.sequence, item.mail.id, item.attempts) for item in self.boxes[0].list() if item.mail is not None
        ]
        assert listed == [(m.sequence, m.mail_id, m.attempts) for m in self.expected]
        there = self.boxes[1].statistics()
        assert (there.waiting + there.claimed, there.set_aside, there.next_sequence) == (
            len(self.expected),
            self.set_aside,
            self.next,
        )


class TestMailboxMachine(MailboxMachine.TestCase):  # type: ignore[misc,name-defined]
    """I23 B71: any order of deliveries, claims, acks, late acks and crashes ends as it would with a list."""

    settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
