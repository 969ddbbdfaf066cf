"""The name of a message's file: everything a mailbox decides by, so that no file is opened to decide.

    0000000000000012-0-341-9f86d081884c7d659a2feaa0c55ad015                            in new/
    0000000000000012-1-341-9f86d081884c7d659a2feaa0c55ad015-4f2c...-1288000            in cur/

The sequence number (names sort by it), how often it was claimed, its size, a digest of the message's id; while it is
claimed, also the boot and the moment since that boot at which the lease is over. A lease of an earlier boot is over:
whoever held it is gone. Two claims of one message differ in the count, so the token of an old one fits nothing.
"""

import hashlib
import re
import time

import msgspec

from windlass.fleet.store.shared_state import boot_id

_NAME = re.compile(r"(\d{16})-(\d{1,6})-(\d{1,12})-([0-9a-f]{32})(?:-([0-9a-f]{32})-(\d{1,18}))?")


class MailName(msgspec.Struct, frozen=True):
    sequence: int
    attempts: int
    size: int
    digest: str
    boot: str = ""
    lease_ends_ms: int = 0

    def __str__(self) -> str:
        name = f"{self.sequence:016d}-{self.attempts}-{self.size}-{self.digest}"
        return f"{name}-{self.boot}-{self.lease_ends_ms}" if self.boot else name

    def claimed(self, lease_ends: float) -> "MailName":
        """The name it has in cur/: claimed once more, until this moment since boot."""
        return msgspec.structs.replace(
            self, attempts=self.attempts + 1, boot=boot_id(), lease_ends_ms=int(lease_ends * 1000)
        )

    def given_back(self, unread: bool = False) -> "MailName":
        """The name it has in new/ again. The attempt stays counted, unless nobody looked at it."""
        attempts = self.attempts - 1 if unread else self.attempts
        return msgspec.structs.replace(self, boot="", lease_ends_ms=0, attempts=attempts)

    def is_over(self, now: float) -> bool:
        return self.boot != boot_id() or self.lease_ends_ms <= now * 1000


def parse(text: str) -> MailName | None:
    """The name, or None if no delivery or claim gives such a one."""
    found = _NAME.fullmatch(text)
    if found is None or not text.isascii():
        return None
    sequence, attempts, size, digest, boot, lease = found.groups()
    return MailName(int(sequence), int(attempts), int(size), digest, boot or "", int(lease or 0))


def digest(mail_id: str) -> str:
    """What stands for a message's id in names: ids are the senders' words, and may hold anything."""
    return hashlib.sha256(mail_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def since_boot() -> float:
    """Seconds since boot, sleep included: the same for all processes, and nobody can set it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
