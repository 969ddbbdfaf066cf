"""What people are asked before a tool acts, and what they answered."""

from typing import Any, Literal

import msgspec

Action = Literal["allow", "allow_session", "deny"]
PermissionOutcome = Literal["asked", "granted", "denied", "withdrawn", "expired"]


class By(msgspec.Struct, omit_defaults=True, frozen=True):
    """Who caused a fact: the name of the token that was used, and the client that used it."""

    name: str
    client_id: str = ""


class PermissionRequest(msgspec.Struct):
    id: str
    session_id: str
    tool_call_id: str
    tool_name: str
    description: str
    action: str
    params: dict[str, Any]
    path: str
    root_session_id: str
    confined: bool = False
    run_id: str = ""


class PermissionPrivate(msgspec.Struct, omit_defaults=True):
    """The exact thing that was asked for: what a session grant is keyed by. `granted`: remember it for the session, or
    everything that fits `pattern` if a person typed one."""

    request_id: str
    tool: str
    action: str
    resource: str
    granted: bool = False
    pattern: str = ""


class PermissionNotification(msgspec.Struct):
    """`granted` and `denied` both false: it was asked, withdrawn or expired; `outcome` says which.

    `by` is who decided; "policy" (a rule of the config), "run rule" (one that its prompt brought), "grant" (an earlier
    answer), "skip", "limit" and "plan mode" are no people. `pattern` is the rule, or what somebody typed, that covers
    it; "" when it was decided for this alone.
    """

    tool_call_id: str
    id: str
    outcome: PermissionOutcome
    granted: bool
    denied: bool
    session_id: str = ""
    by: By | None = None
    pattern: str = ""
