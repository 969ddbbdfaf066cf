"""`question`: ask the people who are attached, and wait for their answer.

The tool only asks: who is asked, who answers first and what becomes of it is decided by the owner of the run.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from windlass import limits
from windlass.tools.arguments import read_arguments, schema_of
from windlass.tools.text import shorten
from windlass.wire.delegation import AskQuestions, OwnerReply
from windlass.wire.execution import PermissionAsk
from windlass.wire.questions import Choice, Question, QuestionOutcome, QuestionResponse, QuestionType
from windlass.wire.tools import ToolError, ToolOutput

Delegate = Callable[[AskQuestions], Awaitable[OwnerReply]]

_NOT_ANSWERED: dict[QuestionOutcome, str] = {
    "canceled": "Declined: the user does not want to answer this. Do not ask it again; decide for yourself and say "
    "what you assumed, or say what you cannot do without an answer.",
    "withdrawn": "Withdrawn: the questions were taken back before anyone answered.",
    "expired": "Expired: nobody was there to answer in time. Decide for yourself and say what you assumed, or stop and "
    "say what you need to know.",
}


class ChoiceArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    label: Annotated[str, Meta(max_length=limits.CHOICE_CHARACTERS, description="What is chosen, in a few words")]
    description: Annotated[
        str, Meta(max_length=limits.QUESTION_CHARACTERS, description="What it means to choose this")
    ] = ""


class OneQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    type: Annotated[QuestionType, Meta(description="How it is answered")]
    question: Annotated[str, Meta(max_length=limits.QUESTION_CHARACTERS, description="The question, one sentence")]
    description: Annotated[
        str,
        Meta(
            max_length=limits.QUESTION_DESCRIPTION_CHARACTERS,
            description="What the user must know to answer it, if that is not clear",
        ),
    ] = ""
    choices: Annotated[
        list[ChoiceArguments],
        Meta(max_length=limits.CHOICES_PER_QUESTION, description="single_choice, multi_choice: what there is"),
    ] = []


class QuestionArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    questions: Annotated[
        list[OneQuestion],
        Meta(min_length=1, max_length=limits.QUESTIONS_PER_BATCH, description="Shown and answered together"),
    ]


class AskPeople:
    name = "question"
    description = (
        "Ask the user something and wait for the answer. Use it when only they can decide, when a wrong guess would "
        "cost them work, or to let them choose between ways to go on; not for what you can find out yourself, and not "
        "for permission to use a tool. Put everything you need to know into one call. Types: yes_no; single_choice and "
        "multi_choice (give the choices, best first; the user may also answer in words of their own); free_text."
    )
    schema = schema_of(QuestionArguments)
    read_only = True
    waits_for_people = True  # the time they take is not the run's

    def __init__(self, delegate: Delegate) -> None:
        self._delegate = delegate

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> "QuestionPlan":
        wanted = read_arguments(arguments, QuestionArguments)
        request = AskQuestions(tool_call_id, tuple(_question(n, one) for n, one in enumerate(wanted.questions, 1)))
        ask = PermissionAsk(
            tool_call_id=tool_call_id,
            tool_name=self.name,
            action="ask",
            description=f"Ask: {request.questions[0].question}",
            path="",
            resource="ask",
            params={"questions": msgspec.to_builtins(request.questions)},
            confined=True,
        )
        return QuestionPlan(ask, request, self._delegate)


def _question(number: int, wanted: OneQuestion) -> Question:
    choices = tuple(Choice(f"c{n}", choice.label, choice.description) for n, choice in enumerate(wanted.choices, 1))
    return Question(f"q{number}", wanted.type, wanted.question, wanted.description, choices)


@dataclass(frozen=True, slots=True)
class QuestionPlan:
    ask: PermissionAsk
    request: AskQuestions
    delegate: Delegate

    async def run(self) -> ToolOutput:
        reply = await self.delegate(self.request)
        if reply.error:
            raise ToolError(reply.error)
        metadata = msgspec.json.encode({"outcome": reply.outcome, "responses": reply.answers}).decode()
        if reply.outcome == "answered":
            return ToolOutput(told(self.request.questions, reply.answers), metadata=metadata)
        why = _NOT_ANSWERED.get(reply.outcome or "withdrawn", _NOT_ANSWERED["withdrawn"])
        return ToolOutput(why, is_error=True, metadata=metadata)


def told(questions: Sequence[Question], answers: Sequence[QuestionResponse]) -> str:
    """Questions and answers in words; of long ones less when there are many."""
    share = limits.TOOL_OUTPUT_CHARACTERS // (2 * max(1, len(questions))) - 100
    said = {answer.request_id: answer for answer in answers}
    lines = ["The user answered:"]
    for number, question in enumerate(questions, 1):
        answer = _in_words(question, said.get(question.id, QuestionResponse(question.id)))
        lines += [f"{number}. {shorten(question.question, share)}", f"   Answer: {shorten(answer, share)}"]
    return "\n".join(lines)


def _in_words(question: Question, answer: QuestionResponse) -> str:
    if answer.yes is not None:
        return "yes" if answer.yes else "no"
    labels = [choice.label for choice in question.choices if choice.id in answer.selected_ids]
    own = answer.fill_in_text.strip()
    if own and question.type != "free_text":
        own = f"in their own words: {own}"
    return "; ".join([*labels, own] if own else labels)
