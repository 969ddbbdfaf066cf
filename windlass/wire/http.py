"""Bodies of requests and answers. Unknown fields in a request are ignored; shapes only ever grow."""

from typing import Any, Literal

import msgspec

from windlass.wire.runs import Attachment, Disposition, OnBusy, RunState


class ErrorBody(msgspec.Struct, omit_defaults=True):
    """`message` says what is wrong and what to do; `request_id` is in the server's log too."""

    message: str
    request_id: str = ""


class CreateWorkspace(msgspec.Struct, omit_defaults=True):
    """`data_dir` and `env` are accepted for existing clients, and unused."""

    path: str
    client_id: str
    data_dir: str = ""
    yolo: bool = False
    debug: bool = False
    env: list[str] | None = None


class SelectedModel(msgspec.Struct):
    model: str
    provider: str


class ModelInfo(msgspec.Struct):
    id: str
    name: str
    context_window: int
    default_max_tokens: int


class ProviderInfo(msgspec.Struct):
    id: str
    name: str
    type: str
    models: list[ModelInfo]


class WorkspaceConfig(msgspec.Struct):
    """What a client needs to start, secrets removed."""

    models: dict[str, SelectedModel]
    providers: dict[str, ProviderInfo]
    options: dict[str, Any]
    permissions: dict[str, Any]


class Workspace(msgspec.Struct, omit_defaults=True):
    """`closed`: the server remembers it, but nothing is open; it has an id and a path only. `updated_at`: when
    something last happened in it, in Unix seconds; 0 when nothing has."""

    id: str
    path: str
    client_id: str = ""
    yolo: bool = False
    debug: bool = False
    version: str = ""
    config: WorkspaceConfig | None = None
    skills: list[Any] = []
    closed: bool = False
    updated_at: int = 0


class CurrentSession(msgspec.Struct):
    session_id: str


class Version(msgspec.Struct):
    version: str
    commit: str
    build_id: str
    platform: str


class Control(msgspec.Struct):
    command: Literal["shutdown", "shutdown_if_idle"]


class CreateSession(msgspec.Struct):
    title: str = ""


class UpdateSession(msgspec.Struct):
    title: str


class Prompt(msgspec.Struct, omit_defaults=True):
    """`max_cost`: the run ends when it and the agents it starts have cost this much; 0 is what the config says, and the
    smaller of both counts. `allow`: rules as in the config that hold for this run and the agents it starts, beside the
    config's own; what the config denies stays denied. Neither goes with `on_busy` "steer"."""

    session_id: str
    prompt: str
    run_id: str = ""
    attachments: list[Attachment] = []
    on_busy: OnBusy = "enqueue"
    reasoning_effort: str = ""
    model: str = ""  # "provider/model"; "" is what the config says
    max_cost: float = 0.0
    allow: list[str] = []


class Accepted(msgspec.Struct, omit_defaults=True):
    """`after`: the place in the log before the run's first fact; a stream that begins `?after=` it shows the whole run.
    It is left out when an earlier request had already started the run."""

    run_id: str
    session_id: str
    state: RunState
    disposition: Disposition
    position: int
    into: str = ""
    after: str = ""


class Canceled(msgspec.Struct):
    canceled: list[str]


class RunStateBody(msgspec.Struct):
    state: RunState


class Undo(msgspec.Struct):
    run_id: str


class NotRestored(msgspec.Struct):
    path: str
    reason: str


class Undone(msgspec.Struct):
    """The files that are again what they were before the run, and those that are not, with why. A file that is already
    as it was is in neither list. `removed`: those of `restored` that the run had made, so that they are gone now."""

    restored: list[str]
    refused: list[NotRestored]
    removed: list[str] = []


class PlanMode(msgspec.Struct):
    plan: bool


class Summarized(msgspec.Struct):
    """`message_id` is the message that stands for everything before it from now on; `summary` is its text."""

    run_id: str
    message_id: str
    summary: str


class ShellRequest(msgspec.Struct):
    """`term_width`: columns of the terminal the command was typed in; 0 when that is not known."""

    command: str
    term_width: int = 0


class ShellOutput(msgspec.Struct):
    """`exit_code` is negative when a signal ended the command."""

    output: str
    exit_code: int


class AgentInfo(msgspec.Struct):
    is_busy: bool
    is_ready: bool
    model: str
    model_cfg: SelectedModel


class AgentInit(msgspec.Struct):
    interactive: bool = False


class PermissionId(msgspec.Struct):
    """Only the id counts: the scope of an answer is what the server asked, never the client's copy of it."""

    id: str


class Grant(msgspec.Struct, omit_defaults=True):
    """`pattern`: with `allow_session`, what is allowed for the rest of the session beside the request itself."""

    permission: PermissionId
    action: str
    pattern: str = ""


class Resolved(msgspec.Struct):
    resolved: bool


class Skip(msgspec.Struct):
    skip: bool


class TicketRequest(msgspec.Struct):
    """`scope`: what the browser may do; never more than whoever asks for the ticket."""

    scope: Literal["operate", "read"] = "operate"


class Ticket(msgspec.Struct):
    """`urls`: the addresses with the ticket in them at which a browser may open the page, those that another machine
    can reach first."""

    ticket: str
    path: str
    expires_in_seconds: int
    urls: list[str] = []


class MarkdownTexts(msgspec.Struct):
    texts: list[str]


class MarkdownHtml(msgspec.Struct):
    """One piece of HTML for each text, safe to put into a page: no scripts, no styles, no handlers, nothing loaded."""

    html: list[str]


class SearchHit(msgspec.Struct):
    """A message that contains what was looked for; `excerpt` is the text around its first occurrence."""

    session_id: str
    session_title: str
    message_id: str
    role: str
    excerpt: str
    created_at: int


class TokenInfo(msgspec.Struct):
    name: str
    scope: str
    created_at: str
