"""Tokens: each has a name and a scope, and survives a restart. Only their digests are stored.

The scopes: `admin` everything; `operate` everything but managing tokens; `read` looks only; `worker` no client route.
"""

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from windlass.errors import Conflict, Invalid
from windlass.server.private_files import private_directory, read_private, write_private
from windlass.wire.http import TokenInfo

Scope = Literal["admin", "operate", "read", "worker"]
SCOPES = ("admin", "operate", "read", "worker")
FIRST_TOKEN = "local"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


class Identity(msgspec.Struct, frozen=True):
    """Who is asking: taken from the token's record, never from what the client says about itself (A11)."""

    name: str
    scope: Scope


class _Record(msgspec.Struct, frozen=True):
    name: str
    scope: Scope
    digest: str
    created_at: str


class _File(msgspec.Struct, frozen=True):
    tokens: list[_Record] = []


class TokenStore:
    """The tokens of a data directory. Another process may change the file: it is read again when it did."""

    def __init__(self, data_dir: Path) -> None:
        self._directory = private_directory(data_dir)
        self._path = data_dir / "tokens.json"
        self._stamp: tuple[int, int, int] | None = None
        self._records: list[_Record] = []
        self.refresh()

    def refresh(self) -> bool:
        """Read the file again if it changed; whether it did."""
        try:
            status = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            changed = self._stamp is not None
            self._stamp, self._records = None, []
            return changed
        stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
        if stamp == self._stamp:
            return False
        self._records = msgspec.json.decode(read_private(self._path), type=_File).tokens
        self._stamp = stamp
        return True

    def first(self) -> str:
        """The secret of the first token, made with the data directory; kept beside it for clients of the same user."""
        path = self._directory / "token"
        if any(record.name == FIRST_TOKEN for record in self._records) and path.exists():
            return read_private(path).decode().strip()
        self.revoke(FIRST_TOKEN)
        secret = self.create(FIRST_TOKEN, "admin")
        write_private(path, secret.encode() + b"\n")
        return secret

    def create(self, name: str, scope: str) -> str:
        """Make a token; returns its secret, which is shown this once."""
        if _NAME.fullmatch(name) is None:
            raise Invalid("name must be 1 to 64 letters, digits, dots, dashes, @ or underscores.")
        if scope not in SCOPES:
            raise Invalid(f"scope must be one of: {', '.join(SCOPES)}.")
        self.refresh()
        if any(record.name == name for record in self._records):
            raise Conflict(f"There is already a token named {name}. Revoke it first, or choose another name.")
        secret = f"wl_{secrets.token_urlsafe(32)}"
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        kind: Scope = msgspec.convert(scope, Scope)
        self._save([*self._records, _Record(name, kind, _digest(secret), now)])
        return secret

    def revoke(self, name: str) -> bool:
        self.refresh()
        kept = [record for record in self._records if record.name != name]
        if len(kept) == len(self._records):
            return False
        self._save(kept)
        return True

    def list(self) -> list[TokenInfo]:
        self.refresh()
        return [TokenInfo(record.name, record.scope, record.created_at) for record in self._records]

    def identify(self, secret: str) -> Identity | None:
        """Whose secret this is. Digests are compared in constant time, all of them: the time tells nothing (A9)."""
        digest = _digest(secret)
        found: Identity | None = None
        for record in self._records:
            if hmac.compare_digest(record.digest, digest):
                found = Identity(record.name, record.scope)
        return found

    def is_live(self, name: str) -> bool:
        return any(record.name == name for record in self._records)

    def _save(self, records: Sequence[_Record]) -> None:
        write_private(self._path, msgspec.json.format(msgspec.json.encode(_File([*records]))) + b"\n")
        self._stamp = None
        self.refresh()


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
