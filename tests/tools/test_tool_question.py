"""The `question` tool: what a model may ask, what people are shown, and what the model is told."""

import json
from typing import Any

import msgspec
import pytest

from windlass import limits
from windlass.config import PermissionsConfig
from windlass.core.answers import check_questions
from windlass.core.policy import Policy
from windlass.tools.question import AskPeople
from windlass.tools.todos import Todos
from windlass.wire.delegation import AskQuestions, OwnerReply
from windlass.wire.questions import Choice, Question, QuestionResponse
from windlass.wire.run_events import RunEvent, TodosChanged
from windlass.wire.sessions import Todo
from windlass.wire.tools import ToolError

DATABASES = [{"label": "SQLite"}, {"label": "PostgreSQL", "description": "When one machine is not enough"}]
ASKED = {
    "questions": [
        {"type": "yes_no", "question": "Go on?", "description": "It takes an hour."},
        {"type": "single_choice", "question": "Which database?", "choices": DATABASES},
        {"type": "multi_choice", "question": "Which ones to test?", "choices": DATABASES},
        {"type": "free_text", "question": "Called what?"},
    ]
}
CHOICES = (Choice("c1", "SQLite"), Choice("c2", "PostgreSQL", "When one machine is not enough"))


class Owner:
    """The owner of a run, as far as this tool sees it: it keeps what it was asked and answers as it was told."""

    def __init__(self, reply: OwnerReply) -> None:
        self.asked: list[AskQuestions] = []
        self._reply = reply

    async def delegate(self, request: AskQuestions) -> OwnerReply:
        self.asked.append(request)
        return self._reply


async def test_questions_get_ids_and_go_to_the_owner_as_they_were_shown() -> None:
    """B28: an answer names ids; two questions of one id could not be told apart."""
    owner = Owner(OwnerReply(outcome="canceled"))
    plan = AskPeople(owner.delegate).plan(ASKED, "call")
    await plan.run()
    questions = (
        Question("q1", "yes_no", "Go on?", "It takes an hour."),
        Question("q2", "single_choice", "Which database?", choices=CHOICES),
        Question("q3", "multi_choice", "Which ones to test?", choices=CHOICES),
        Question("q4", "free_text", "Called what?"),
    )
    assert owner.asked == [AskQuestions("call", questions)]
    assert plan.ask.params == {"questions": msgspec.to_builtins(questions)}
    check_questions("call", questions)


async def test_the_model_is_told_the_answers_in_words() -> None:
    """B28: told ids, it would have to guess what they stood for."""
    answers = (
        QuestionResponse("q1", yes=False),
        QuestionResponse("q2", fill_in_text="A file"),
        QuestionResponse("q3", ("c2", "c1"), fill_in_text="and MySQL"),
        QuestionResponse("q4", fill_in_text="Anchor"),
    )
    output = await AskPeople(Owner(OwnerReply(outcome="answered", answers=answers)).delegate).plan(ASKED, "c").run()
    assert output.content.splitlines() == [
        "The user answered:",
        "1. Go on?",
        "   Answer: no",
        "2. Which database?",
        "   Answer: in their own words: A file",
        "3. Which ones to test?",
        "   Answer: SQLite; PostgreSQL; in their own words: and MySQL",
        "4. Called what?",
        "   Answer: Anchor",
    ]
    assert not output.is_error and json.loads(output.metadata)["outcome"] == "answered"


@pytest.mark.parametrize(
    ("outcome", "words"), [("canceled", "Declined"), ("withdrawn", "Withdrawn"), ("expired", "Expired")]
)
async def test_the_model_is_told_why_there_is_no_answer(outcome: Any, words: str) -> None:
    """A29: it would take an empty room for a no, or ask the same again at once."""
    output = await AskPeople(Owner(OwnerReply(outcome=outcome)).delegate).plan(ASKED, "call").run()
    assert output.content.startswith(words) and output.is_error


async def test_a_refusal_of_the_owner_is_an_error_for_the_model() -> None:
    """It can ask in another way only if it is told what was wrong."""
    with pytest.raises(ToolError, match="give 2 to 20"):
        await AskPeople(Owner(OwnerReply(error="give 2 to 20")).delegate).plan(ASKED, "call").run()


async def test_long_answers_fit_into_what_a_model_is_shown() -> None:
    """The last answers would be cut out of the middle of a tool's output."""
    questions = [{"type": "free_text", "question": "x" * limits.QUESTION_CHARACTERS}] * limits.QUESTIONS_PER_BATCH
    answers = tuple(
        QuestionResponse(f"q{n}", fill_in_text=f"{n}:" + "y" * (limits.ANSWER_CHARACTERS - 3))
        for n in range(1, limits.QUESTIONS_PER_BATCH + 1)
    )
    owner = Owner(OwnerReply(outcome="answered", answers=answers))
    output = await AskPeople(owner.delegate).plan({"questions": questions}, "call").run()
    assert len(output.content) <= limits.TOOL_OUTPUT_CHARACTERS
    assert all(f"Answer: {n}:yyy" in output.content for n in range(1, limits.QUESTIONS_PER_BATCH + 1))


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "questions"),
        ({"questions": []}, "questions"),
        ({"questions": [{"type": "yes_no"}]}, "question"),
        ({"questions": [{"type": "riddle", "question": "?"}]}, "type"),
        ({"questions": [{"type": "yes_no", "question": "?"}] * (limits.QUESTIONS_PER_BATCH + 1)}, "questions"),
        ({"questions": [{"type": "yes_no", "question": "?" * (limits.QUESTION_CHARACTERS + 1)}]}, "question"),
        ({"questions": [{"type": "single_choice", "question": "?", "choices": [{"text": "x"}]}]}, "choices"),
    ],
)
def test_arguments_that_do_not_fit_are_named(arguments: dict[str, Any], field: str) -> None:
    """The model can only do better if it is told what."""
    with pytest.raises(ToolError, match=field):
        AskPeople(Owner(OwnerReply()).delegate).plan(arguments, "call")


@pytest.mark.parametrize("tool", [AskPeople, Todos])
def test_both_are_there_where_nothing_may_be_changed_and_nobody_is_asked_before_them(tool: Any) -> None:
    """An agent that only plans could not ask what it plans for; or people would be asked whether they may be asked."""
    rules = PermissionsConfig()
    assert tool.read_only and "$ref" not in json.dumps(tool.schema)
    assert Policy(rules.allow, rules.ask, rules.deny).decide(tool.name, "anything") == "allow"


# -- todos ------------------------------------------------------------------------------------------------------------

LIST = [
    {"content": "Read", "status": "completed"},
    {"content": "Write", "status": "in_progress", "active_form": "Writing"},
]


async def test_the_list_of_todos_is_replaced_and_the_model_is_told_so_in_short() -> None:
    """People would look at an old plan."""
    emitted: list[RunEvent] = []
    output = await Todos(emitted.append).plan({"todos": LIST}, "call").run()
    assert emitted == [TodosChanged([Todo("Read", "completed"), Todo("Write", "in_progress", "Writing")])]
    assert output.content == "The list has 2 items: 1 completed, 1 in_progress, 0 pending."
    assert (await Todos(emitted.append).plan({"todos": []}, "call").run()).content == "The list is empty now."


@pytest.mark.parametrize(
    ("todos", "field"),
    [
        (LIST * limits.TODOS, "todos"),
        ([{"content": "x" * (limits.TODO_CHARACTERS + 1), "status": "pending"}], "content"),
        ([{"content": "", "status": "pending"}], "content"),
        ([{"content": "x", "status": "done"}], "status"),
        ([{"content": "x", "status": "pending", "active_form": "x" * (limits.TODO_CHARACTERS + 1)}], "active_form"),
    ],
)
def test_todos_that_do_not_fit_are_named(todos: Any, field: str) -> None:
    """A list without end would be sent to everyone with each change of the session."""
    with pytest.raises(ToolError, match=field):
        Todos(lambda event: None).plan({"todos": todos}, "call")
