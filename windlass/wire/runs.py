"""Runs: the execution of one prompt, from accept to terminal."""

from typing import Any, Literal

import msgspec

from windlass.wire.permissions import By

RunState = Literal["accepted", "queued", "running", "waiting", "completed", "canceled", "failed", "interrupted"]
Outcome = Literal["completed", "canceled", "failed", "interrupted"]
Disposition = Literal["started", "queued", "steered"]
OnBusy = Literal["enqueue", "steer", "reject", "interrupt"]
Purpose = Literal["prompt", "summarize", "shell"]  # answer it, sum the conversation up, run it as a command

TERMINAL_STATES: frozenset[str] = frozenset({"completed", "canceled", "failed", "interrupted"})


class Usage(msgspec.Struct, frozen=True):
    """`prompt_tokens` are all that was sent, also what was read from or written to the provider's cache."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


class Attachment(msgspec.Struct):
    """A file sent along with a prompt; `content` is base64."""

    file_path: str
    file_name: str
    mime_type: str
    content: str


class Run(msgspec.Struct, omit_defaults=True, kw_only=True, frozen=True):
    """The state a run is in, as everyone sees it. Fields without a default are always on the wire.

    `prompt` is whole while the run waits; once it has started the whole of it is in its message, and a long one is
    shortened here.
    """

    id: str
    session_id: str
    state: RunState
    cancel_requested: bool
    prompt: str
    disposition: Disposition
    message_ids: tuple[str, ...]
    usage: Usage
    cost: float
    created_at: str
    into: str = ""
    error: str = ""
    started_at: str = ""
    ended_at: str = ""

    @property
    def is_terminal(self) -> bool:
        return self.state in TERMINAL_STATES


class RunPrivate(msgspec.Struct, omit_defaults=True):
    """What a run's stored row holds beside its public body: never sent to anyone.

    `number` is its place in its session, `order` its place in the workspace, `by` who sent the prompt. `parent_run` is
    the run whose agent it is. `transcript` is what the executor of an ended run wants kept, opaque to us.
    `term_width` is how wide the terminal of whoever sent a command is, 0 when nobody said. `max_cost` and `allow` are
    what the prompt said (see `Prompt`).
    """

    number: int
    order: int = 0
    by: By = By("")
    digest: str = ""
    attachments: list[Attachment] = []
    reasoning_effort: str = ""
    model: str = ""
    parent_run: str = ""
    transcript: Any = None
    purpose: Purpose = "prompt"
    term_width: int = 0
    max_cost: float = 0.0
    allow: list[str] = []


class RunComplete(msgspec.Struct, omit_defaults=True):
    """The last word about a run; `text` is the answer, so that a client needs nothing else."""

    session_id: str
    run_id: str
    message_id: str
    text: str = ""
    error: str = ""
    cancelled: bool = False


class AgentEvent(msgspec.Struct):
    type: Literal["error"]
    session_id: str
    run_id: str
    error: str
