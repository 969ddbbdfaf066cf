"""Sessions (conversations), their todo list, and versions of files they wrote."""

from typing import Literal

import msgspec


class Todo(msgspec.Struct):
    content: str
    status: str
    active_form: str = ""


class Session(msgspec.Struct):
    id: str
    parent_session_id: str = ""
    title: str = ""
    message_count: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    summary_message_id: str = ""
    cost: float = 0.0
    created_at: int = 0
    updated_at: int = 0
    is_busy: bool = False
    attached_clients: int = 0
    todos: list[Todo] = []
    plan: bool = False  # its runs may only read, until a person lets them go on
    cache_read_tokens: int = 0
    role: str = ""  # of a sub-agent's session
    branch: str = ""  # where a sub-agent that works in a worktree of its own leaves what it did


class FileVersion(msgspec.Struct, omit_defaults=True):
    """A file as it was at one moment. `origin`: before a run touched it, after a run wrote it, or after an undo.

    `absent`: there was no file. An `encoding` of "base64" is for bytes that are not UTF-8. `omitted`: the session has
    kept as much as it may, and this content is not kept. `run_id` of an undo is the run that was undone.
    """

    id: str
    session_id: str
    path: str
    content: str
    version: int
    created_at: int
    updated_at: int
    run_id: str = ""
    origin: Literal["before", "after", "undo"] = "after"
    absent: bool = False
    encoding: str = ""
    omitted: bool = False


class FilePrivate(msgspec.Struct, frozen=True):
    """Digests of what the file is and of what it was: how an undo knows whether a chain of changes has a gap.

    "" is not known, "absent" is no file. A version of what was there before a run changes nothing: both are the same.
    """

    digest: str = ""
    before: str = ""
