"""Sessions (conversations), their todo list, and versions of files they wrote."""

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
    role: str = ""  # of a sub-agent's session
    branch: str = ""  # where a sub-agent that works in a worktree of its own leaves what it did


class FileVersion(msgspec.Struct):
    id: str
    session_id: str
    path: str
    content: str
    version: int
    created_at: int
    updated_at: int
