"""What an agent asks people (yes or no, choices, free text), and what they answered."""

from typing import Literal

import msgspec

from windlass.wire.permissions import By

QuestionType = Literal["yes_no", "single_choice", "multi_choice", "free_text"]
QuestionOutcome = Literal["asked", "answered", "canceled", "withdrawn", "expired"]


class Choice(msgspec.Struct, omit_defaults=True, frozen=True):
    id: str
    label: str
    description: str = ""


class Question(msgspec.Struct, omit_defaults=True, frozen=True):
    id: str
    type: QuestionType
    question: str
    description: str = ""
    choices: tuple[Choice, ...] = ()


class QuestionBatch(msgspec.Struct, omit_defaults=True):
    """Questions that are shown and answered together."""

    id: str
    session_id: str
    tool_call_id: str
    questions: tuple[Question, ...]
    root_session_id: str = ""
    run_id: str = ""


class QuestionResponse(msgspec.Struct, omit_defaults=True, frozen=True):
    """The answer to one question: `selected_ids` of choices, `fill_in_text` of one's own, `yes` or not."""

    request_id: str
    selected_ids: tuple[str, ...] = ()
    fill_in_text: str = ""
    yes: bool | None = None


class QuestionNotification(msgspec.Struct, omit_defaults=True):
    """How a batch ended. `canceled`: a person declined to answer. The answers are in it, so that everyone sees them."""

    batch_id: str
    outcome: QuestionOutcome
    session_id: str = ""
    by: By | None = None
    responses: tuple[QuestionResponse, ...] = ()


class AnswerQuestions(msgspec.Struct):
    batch_request_id: str
    responses: list[QuestionResponse]


class CancelQuestions(msgspec.Struct):
    batch_request_id: str = ""
