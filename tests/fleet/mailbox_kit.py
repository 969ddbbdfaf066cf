"""What tests of the mailbox share: messages, a clock that a test moves, and what is in a mailbox's directories."""

from pathlib import Path
from typing import Any

from windlass.wire.agents import Mail, MailFrom


def a_mail(mail_id: str = "mail-1", body: Any = "hello", **fields: Any) -> Mail:
    return Mail(**{"id": mail_id, "sender": MailFrom("ses_a"), "kind": "task", "body": body, "created_at": 1, **fields})


class Clock:
    """Seconds since boot, as a test says."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def files(directory: Path) -> dict[str, list[str]]:
    """The names in each of the mailbox's directories."""
    return {
        place: sorted(path.name for path in (directory / place).iterdir())
        for place in ("tmp", "new", "cur", "corrupt", "ids")
    }
