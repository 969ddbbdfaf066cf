"""The name of a project's directory in the store: readable, bounded, and never that of another project."""

import hashlib
import os
import re
from pathlib import Path

from windlass import limits
from windlass.errors import Invalid
from windlass.ids import is_run_id

_NOT_PLAIN = re.compile(rb"[^A-Za-z0-9._]+")


def project_key(directory: Path) -> str:
    """`/home/me/parser` becomes `home-me-parser-` and a digest of the whole path, links resolved.

    The words are for people. The digest tells `/a/b` from `/a-b`, and a long path from another with the same end.
    """
    path = os.fsencode(os.path.realpath(directory))
    words = _NOT_PLAIN.sub(b"-", path).decode("ascii")[-limits.PROJECT_KEY_CHARACTERS :].strip("-.")
    digest = hashlib.sha256(path).hexdigest()[:32]
    return f"{words}-{digest}" if words else digest


def checked_id(session_id: str) -> str:
    """The id, if it may become the name of a directory. Raises Invalid otherwise (A19)."""
    if not is_run_id(session_id):
        raise Invalid(f"{session_id[:80]!r} is no session id: 1 to 64 letters, digits, `_` and `-`.")
    return session_id
