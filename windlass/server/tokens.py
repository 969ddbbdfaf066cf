"""Tokens: each has a name and a scope, and survives a restart. Only their digests are stored.

The scopes: `admin` everything; `operate` everything but managing tokens; `read` looks only; `worker` no client route.
"""

import contextlib
import fcntl
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
import structlog

from windlass.errors import Conflict, Invalid
from windlass.server.private_files import NotPrivate, private_directory, read_private, write_private
from windlass.wire.http import TokenInfo

Scope = Literal["admin", "operate", "read", "worker"]
SCOPES = ("admin", "operate", "read", "worker")
FIRST_TOKEN = "local"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
logger = structlog.get_logger("windlass.tokens")


class Identity(msgspec.Struct, frozen=True):
    """Who is asking: taken from the token's record, never from what the client says about itself (A11).

    `digest` is the token's, and "" for who needs none: a name may be given away again, a digest never is.
    """

    name: str
    scope: Scope
    digest: str = ""


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
        self.directory = private_directory(data_dir)
        self._path = data_dir / "tokens.json"
        self._stamp: tuple[int, int, int] | None = None
        self._records: list[_Record] = []
        self.version = 0  # grows whenever the tokens changed, whoever noticed it first
        self._read()

    def refresh(self) -> None:
        """Read the file again if it changed. One that cannot be read lets nobody in until it is mended."""
        try:
            self._read()
        except (OSError, NotPrivate, msgspec.DecodeError) as error:
            logger.error("the tokens cannot be read, so none is accepted", reason=str(error))
            self._stamp, self._records = None, []
            self.version += 1

    def _read(self) -> None:
        try:
            status = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            if self._stamp is not None:
                self._stamp, self._records = None, []
                self.version += 1
            return
        stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
        if stamp == self._stamp:
            return
        self._records = msgspec.json.decode(read_private(self._path), type=_File).tokens
        self._stamp = stamp
        self.version += 1

    def first(self) -> str:
        """The secret of the first token, made with the data directory; kept beside it for clients of the same user."""
        path = self.directory / "token"
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
        secret = f"wl_{secrets.token_urlsafe(32)}"
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        kind: Scope = msgspec.convert(scope, Scope)
        with self._alone():
            if any(record.name == name for record in self._records):
                raise Conflict(f"There is already a token named {name}. Revoke it first, or choose another name.")
            self._save([*self._records, _Record(name, kind, _digest(secret), now)])
        return secret

    def revoke(self, name: str) -> bool:
        with self._alone():
            kept = [record for record in self._records if record.name != name]
            if len(kept) == len(self._records):
                return False
            self._save(kept)
            return True

    def list(self) -> list[TokenInfo]:
        self._read()
        return [TokenInfo(record.name, record.scope, record.created_at) for record in self._records]

    def identify(self, secret: str) -> Identity | None:
        """Whose secret this is, at this moment: a token that was just revoked is nobody's (A10).

        Digests are compared in constant time, all of them: the time tells nothing (A9).
        """
        self.refresh()
        digest = _digest(secret)
        found: Identity | None = None
        for record in self._records:
            if hmac.compare_digest(record.digest, digest):
                found = Identity(record.name, record.scope, record.digest)
        return found

    def is_live(self, identity: Identity) -> bool:
        """Whether the very token is still good, not another one that was given its name."""
        return not identity.digest or any(record.digest == identity.digest for record in self._records)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else changes the file meanwhile: a revoke must not be undone by someone who read before it."""
        lock = os.open(self.directory / "tokens.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._read()
            yield
        finally:
            os.close(lock)

    def _save(self, records: Sequence[_Record]) -> None:
        write_private(self._path, msgspec.json.format(msgspec.json.encode(_File([*records]))) + b"\n")
        self._read()


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
