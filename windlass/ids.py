"""Ids: made unguessable, and checked before they touch anything."""

import re
import secrets
import uuid

RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")


def new_id(prefix: str) -> str:
    """A new id such as `ses_9f86d081884c7d65...`: 128 random bits, so that nobody can guess another's (A19)."""
    return f"{prefix}_{secrets.token_hex(16)}"


def new_epoch() -> str:
    """The name of one life of a log. No dot in it: an event id is `epoch.seq`."""
    return secrets.token_hex(8)


def is_run_id(text: str) -> bool:
    return RUN_ID.fullmatch(text) is not None


def is_client_id(text: str) -> bool:
    """A client's id is a UUID in its usual form with dashes."""
    return _UUID.fullmatch(text) is not None


def new_client_id() -> str:
    return str(uuid.uuid4())
