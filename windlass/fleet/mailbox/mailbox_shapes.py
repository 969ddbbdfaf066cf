"""What goes in and out of a mailbox beside the messages: bounds, claims, and what one sees who only looks."""

from typing import Literal

import msgspec

from windlass import limits
from windlass.wire.agents import Mail


class MailboxBounds(msgspec.Struct, frozen=True):
    messages: int = limits.MAILBOX_MESSAGES
    total_bytes: int = limits.MAILBOX_BYTES
    mail_bytes: int = limits.MAIL_BYTES
    attempts: int = limits.MAILBOX_ATTEMPTS


class Claim(msgspec.Struct, frozen=True):
    """A message that is ours until the lease is over. The token says which claim of it this is."""

    token: str
    sequence: int
    attempt: int
    mail: Mail


class Listed(msgspec.Struct, frozen=True):
    """A message as somebody sees it who only looks. `mail` is None where it cannot be read; `problem` says why."""

    sequence: int
    state: Literal["waiting", "claimed"]
    attempts: int
    size: int
    lease_seconds: float = 0.0
    mail: Mail | None = None
    problem: str = ""


class MailboxStatistics(msgspec.Struct, frozen=True):
    waiting: int = 0
    claimed: int = 0
    set_aside: int = 0
    bytes: int = 0
    next_sequence: int = 1
