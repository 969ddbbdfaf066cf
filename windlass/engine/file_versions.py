"""The versions that are kept of the files a session wrote, so that what a run did can be looked at and undone."""

import base64
import hashlib
import re
from typing import Literal

import msgspec

from windlass import limits
from windlass.engine.context import Context
from windlass.journal.file_history import Known
from windlass.journal.log import Log
from windlass.wire.events import Fact
from windlass.wire.permissions import By
from windlass.wire.run_events import FileWritten
from windlass.wire.sessions import FilePrivate, FileVersion

ABSENT = "absent"  # the digest of a file that is not there
_DIGEST = re.compile("[0-9a-f]{64}")
_VERSION_BYTES = 512  # of a version without its content, so that many empty ones count too


class Content(msgspec.Struct, frozen=True):
    """What a file held, as it is told: text, or base64 where it is none. None: there was no file."""

    text: str | None
    encoding: str = ""

    @property
    def bytes(self) -> bytes | None:
        """Raises ValueError for what is neither text nor base64."""
        if self.text is None:
            return None
        if self.encoding == "base64":
            return base64.b64decode(self.text, validate=True)
        if self.encoding:
            raise ValueError(f"a file in the encoding {self.encoding!r}")
        return self.text.encode()

    @property
    def digest(self) -> str:
        return digest(self.bytes)


def digest(content: bytes | None) -> str:
    return ABSENT if content is None else hashlib.sha256(content).hexdigest()


def _told(claim: str) -> str:
    """A digest that came with a large content: it takes milliseconds to make, here on the event loop.

    A wrong one makes an undo refuse, or put back another version that the same run told of; it could tell that anyway.
    """
    return claim if _DIGEST.fullmatch(claim) else ""


class FileVersions:
    """What is known of each file in each session: the number and the digest of its newest version.

    A session keeps FILE_HISTORY_BYTES of contents. What it writes beyond that is told without its content, and cannot
    be undone: the oldest versions are those that lead back to where people began.
    """

    def __init__(self, context: Context, log: Log, known: dict[tuple[str, str], Known], sizes: dict[str, int]) -> None:
        self._context = context
        self._log = log
        self._known = known
        self._sizes = sizes

    def forget_session(self, session_id: str) -> None:
        self._sizes.pop(session_id, None)
        for key in [key for key in self._known if key[0] == session_id]:
            del self._known[key]

    def add(self, session_id: str, run_id: str, by: By, written: FileWritten) -> int:
        """A run wrote a file. What it was before is kept first, unless that is the newest version already.

        Raises ValueError for contents that are none.
        """
        if {written.encoding, written.before_encoding} - {"", "base64"}:
            raise ValueError("an encoding that is none")
        after, facts, was = Content(written.content, written.encoding), [], ""
        digest_after = _told(written.digest) or after.digest
        if written.before is not msgspec.UNSET:
            before = Content(written.before, written.before_encoding)
            was = ABSENT if before.text is None else _told(written.before_digest) or before.digest
            known = self._known.get((session_id, written.path))
            if known is None or known.digest != was:
                facts.append(self._fact(session_id, run_id, by, written.path, "before", before, FilePrivate(was, was)))
        private = FilePrivate(digest_after, was)
        facts.append(self._fact(session_id, run_id, by, written.path, "after", after, private))
        return self._log.append(facts)

    def undone(self, session_id: str, run_id: str, by: By, path: str, content: Content, digests: FilePrivate) -> Fact:
        """The file is again what it was before the run. The fact is no fact of the run: that is over (I3)."""
        return self._fact(session_id, run_id, by, path, "undo", content, digests)

    def _fact(
        self,
        session_id: str,
        run_id: str,
        by: By,
        path: str,
        origin: Literal["before", "after", "undo"],
        content: Content,
        private: FilePrivate,
    ) -> Fact:
        known = self._known.get((session_id, path))
        version = 1 if known is None else known.version + 1
        self._known[(session_id, path)] = Known(version, private.digest)
        text, now = content.text or "", self._context.clock.seconds()
        size = self._sizes.get(session_id, 0)
        omitted = size + len(text) > limits.FILE_HISTORY_BYTES
        self._sizes[session_id] = size + _VERSION_BYTES + (0 if omitted else len(text))
        body = FileVersion(
            id=self._context.new_id("file"),
            session_id=session_id,
            path=path,
            content="" if omitted else text,
            version=version,
            created_at=now,
            updated_at=now,
            run_id=run_id,
            origin=origin,
            absent=content.text is None,
            encoding=content.encoding,
            omitted=omitted,
        )
        run = "" if origin == "undo" else run_id
        change: Literal["created", "updated"] = "created" if version == 1 else "updated"
        return Fact("file", change, body, by, session_id, run, key=body.id, private=private)
