"""Messages set aside: nobody can read them, or nobody managed to deal with them. Each lies beside the reason."""

import os
import secrets
import shutil
from pathlib import Path

import msgspec

from windlass import limits
from windlass.errors import NotFound
from windlass.fleet.mailbox.mail_names import MailName, parse
from windlass.fleet.store.durable_files import Unreadable, read_whole, sync_directory, write_whole

_REASON = ".reason"
_REASON_BYTES = 16 * limits.KIB  # a sentence, with names in it


class SetAside(msgspec.Struct, frozen=True):
    """`sequence` is 0 where the file was never delivered, only put there."""

    name: str
    sequence: int
    attempts: int
    size: int
    reason: str


class Quarantine:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def take(self, file: Path, name: MailName, reason: str) -> None:
        self._take(file, str(name.given_back()), reason)

    def take_stranger(self, file: Path) -> int:
        """Set aside what no delivery put there; returns its size."""
        size = file.lstat().st_size
        reason = f"{file.parent.name}/{file.name!r} is no name that a delivery gives. `windlass mailbox send` delivers."
        self._take(file, f"stranger-{secrets.token_hex(8)}", reason)
        return size

    def _take(self, file: Path, name: str, reason: str) -> None:
        # The reason first: a crash in between must not leave a message that nobody can explain.
        write_whole(self._directory / (name + _REASON), reason.encode("utf-8", "backslashreplace")[:_REASON_BYTES])
        os.rename(file, self._directory / name)
        sync_directory(self._directory)
        sync_directory(file.parent)

    def list(self) -> list[SetAside]:
        found = []
        for file in sorted(os.listdir(self._directory)):
            name = parse(file)
            if name is not None:
                found.append(SetAside(file, name.sequence, name.attempts, name.size, self._reason(file)))
            elif file.startswith("stranger-") and not file.endswith(_REASON):
                size = (self._directory / file).lstat().st_size
                found.append(SetAside(file, 0, 0, size, self._reason(file)))
        return found

    def _reason(self, name: str) -> str:
        try:
            return read_whole(self._directory / (name + _REASON), _REASON_BYTES).decode("utf-8", "replace")
        except (FileNotFoundError, Unreadable):
            return "The reason is not there any more."

    def discard(self, name: str) -> SetAside:
        """Delete one for good. Raises NotFound."""
        for item in self.list():
            if item.name == name:
                remove(self._directory / name)
                (self._directory / (name + _REASON)).unlink(missing_ok=True)
                sync_directory(self._directory)
                return item
        raise NotFound(f"Nothing named {name[:100]!r} is set aside here. `windlass mailbox corrupt` lists it.")


def remove(path: Path) -> None:
    """Remove what is at a path, also a directory that somebody put among messages."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
