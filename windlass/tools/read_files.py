"""What the model has read: a file is changed only by someone who knows what is in it (A27).

A file counts as read when `view` showed it (also a part of it) or when a tool wrote it, with exactly the content it has
now. Lines that `grep` found do not count.
"""

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property

import msgspec

from windlass.wire.messages import Message, ToolResult
from windlass.wire.tools import ToolError

_TELLING = frozenset({"view", "write", "edit", "multiedit"})  # what another tool says of files is somebody else's word
_DIGEST = re.compile(r"[0-9a-f]{64}")


class _Known(msgspec.Struct):
    """The one key of a result's metadata that is of interest here; the others are passed over unread."""

    files: dict[str, str] = {}


class FileNotRead(ToolError):
    """The model does not know what is in the file now."""


class ReadFiles:
    """The files one session's model knows, by path below the root, each with the digest of its whole content.

    Starts from the results in the conversation so far, the newest of a path wins; the tools of the run add to it.
    """

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self._messages = messages
        self._noted: dict[str, str] = {}

    @cached_property
    def _earlier(self) -> dict[str, str]:
        """What the conversation tells. Only when a tool asks, in its thread: of a long one it takes a while."""
        digests: dict[str, str] = {}
        for message in self._messages:
            for part in message.parts:
                if isinstance(part, ToolResult) and part.data.name in _TELLING and not part.data.is_error:
                    digests |= _told(part.data.metadata)
        return digests

    def note(self, path: str, content: bytes) -> dict[str, str]:
        """The model knows this content now. Returns what goes into the result's metadata under `files`."""
        self._noted[path] = hashlib.sha256(content).hexdigest()
        return {path: self._noted[path]}

    def check(self, path: str, content: bytes | None) -> None:
        """Raise FileNotRead unless the model knows the file as it is; one that does not exist needs no reading."""
        if content is None:
            return
        known = self._noted.get(path) or self._earlier.get(path)
        if known is None:
            raise FileNotRead(f"You have not read {path} yet. View it first, then make the change.")
        if known != hashlib.sha256(content).hexdigest():
            raise FileNotRead(f"{path} has changed since you read it. View it again, then make the change.")


def _told(metadata: str) -> dict[str, str]:
    """What one result says; nothing if it is malformed: tools of others write metadata too."""
    if '"files"' not in metadata:
        return {}
    try:
        files = msgspec.json.decode(metadata, type=_Known).files
    except msgspec.DecodeError:
        return {}
    return {path: digest for path, digest in files.items() if _DIGEST.fullmatch(digest)}
