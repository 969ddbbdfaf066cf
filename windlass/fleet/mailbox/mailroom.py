"""The mailboxes of a data directory as the engine uses them: deliver, claim what waits, acknowledge, give back.

All of this blocks: the engine calls it in a thread.
"""

import hashlib
from pathlib import Path

import msgspec

from windlass import limits
from windlass.clock import Clock
from windlass.fleet.mailbox.mailbox import Mailbox
from windlass.fleet.mailbox.mailbox_errors import ClaimLost
from windlass.fleet.mailbox.mailbox_shapes import Claim
from windlass.fleet.store.store import Store
from windlass.ids import new_id
from windlass.wire.agents import Mail, MailFrom


class ClaimedLetter:
    """A claimed message. `id` is the same however often it is handed over, and no other mailbox's."""

    def __init__(self, mailbox: Mailbox, claim: Claim, session_id: str) -> None:
        self.mailbox = mailbox
        self.claim = claim
        # Senders choose the ids of their messages, so two of them may choose the same for two mailboxes.
        self.id = "mail_" + hashlib.sha256(f"{session_id}\0{claim.mail.id}".encode()).hexdigest()[:32]

    @property
    def text(self) -> str:
        """What the reading agent is told."""
        mail = self.claim.mail
        sender = f"{mail.sender.role or 'agent'} {mail.sender.session_id}"
        body = mail.body if isinstance(mail.body, str) else msgspec.json.encode(mail.body).decode()
        about = f", about {mail.correlation_id}" if mail.correlation_id else ""
        return f"(Message from {sender}; {mail.kind}{about})\n{body}"


class Mailroom:
    """`root` is the directory of the store. Mailboxes are made by their first message."""

    def __init__(self, root: Path) -> None:
        self._store = Store(root)
        self._clock = Clock()

    def deliver(self, project: str, session_id: str, sender: str, role: str, text: str) -> None:
        """Durable when it returns. Raises MailboxFull or MailTooLarge."""
        mail = Mail(
            id=new_id("mail"),
            sender=MailFrom(sender, role or None),
            kind="steer",
            body=text,
            created_at=self._clock.now(),
        )
        self._store.mailbox(Path(project), session_id).deliver(mail)

    def claim(self, project: str, session_id: str, limit: int) -> list[ClaimedLetter]:
        """The oldest messages that nobody has claimed, at most `limit`."""
        mailbox = self._store.mailbox(Path(project), session_id)
        return [ClaimedLetter(mailbox, claim, session_id) for claim in mailbox.claim(limit, limits.MAIL_LEASE_SECONDS)]

    def acknowledge(self, letter: ClaimedLetter) -> None:
        """Remove it for good. One whose lease was over comes again, and is known by its id then."""
        try:
            letter.mailbox.ack(letter.claim)
        except ClaimLost:
            pass

    def give_back(self, letter: ClaimedLetter) -> None:
        """Nobody read it: the next claim gets it, as if this one had not been."""
        try:
            letter.mailbox.release(letter.claim, unread=True)
        except ClaimLost:
            pass

    def forget(self, project: str, session_id: str) -> None:
        """The session is deleted, and what was said to it goes with it (B45)."""
        self._store.forget_mailbox(Path(project), session_id)
