"""What a run spent its time on, as spans that can be drawn."""

from typing import Literal

import msgspec

SpanKind = Literal["queue", "model", "tool", "permission", "question"]


class Span(msgspec.Struct, omit_defaults=True):
    """A stretch of a run. Times are Unix seconds with fractions; `end` is 0.0 while it goes on.

    `queue` waits for its turn, `model` is one answer of the model (a step), `tool` one call, `permission` and
    `question` wait for a person. `label`: the model, the tool, or what was asked for. `session_id`: the session of the
    agent that an `agent` call started, so that one can go there. `outcome`: of a tool "" or "error"; of an answer of
    the model its finish reason; of waiting how it ended. Tokens are of an answer of the model, where they are known.
    """

    kind: SpanKind
    label: str
    start: float
    end: float = 0.0
    message_id: str = ""
    tool_call_id: str = ""
    outcome: str = ""
    by: str = ""  # who answered
    session_id: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Timeline(msgspec.Struct):
    """`start` is when the run was accepted; `end` is 0.0 while it goes on. `whole`: nothing of it was trimmed from the
    log; of an old run only the outline may be left."""

    run_id: str
    start: float
    end: float
    whole: bool
    spans: list[Span]
