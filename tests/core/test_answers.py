"""Which questions can be asked, and which answers fit: everything else is refused by naming what is wrong."""

from typing import Any

import msgspec
import pytest

from tests.core.question_batches import ALL, ANSWERS, CHOICES, MULTI, SINGLE, TEXT, YES_NO
from windlass import limits
from windlass.core.answers import check_answers, check_questions
from windlass.errors import Invalid
from windlass.wire.questions import Choice, Question, QuestionResponse

replace = msgspec.structs.replace
MANY = tuple(Choice(f"c{number}", "x") for number in range(limits.CHOICES_PER_QUESTION + 1))
WRONG_QUESTIONS: list[tuple[str, tuple[Question, ...]]] = [
    ("questions: ask 1 to", ()),
    ("questions: ask 1 to", tuple(replace(YES_NO, id=str(n)) for n in range(limits.QUESTIONS_PER_BATCH + 1))),
    ("questions[1].id: 'q1' is there twice", (YES_NO, YES_NO)),
    ("questions[0].id: must not be empty", (replace(YES_NO, id=" "),)),
    ("questions[0].id: at most", (replace(YES_NO, id="x" * (limits.ID_CHARACTERS + 1)),)),
    ("questions[0].question: must not be empty", (replace(YES_NO, question=" "),)),
    ("questions[0].question: at most", (replace(YES_NO, question="x" * (limits.QUESTION_CHARACTERS + 1)),)),
    (
        "questions[0].description: at most",
        (replace(YES_NO, description="x" * (limits.QUESTION_DESCRIPTION_CHARACTERS + 1)),),
    ),
    ("questions[0].question: not valid", (replace(YES_NO, question="\ud800"),)),
    ("questions[0].choices: a yes_no question has none", (replace(YES_NO, choices=CHOICES),)),
    ("questions[0].choices: a free_text question has none", (replace(TEXT, choices=CHOICES),)),
    ("questions[0].choices: give 2 to", (replace(SINGLE, choices=CHOICES[:1]),)),
    ("questions[0].choices: give 2 to", (replace(MULTI, choices=MANY),)),
    ("questions[0].choices[1].id: 'c1' is there twice", (replace(MULTI, choices=(CHOICES[0], CHOICES[0])),)),
    ("questions[0].choices[0].label: must not", (replace(SINGLE, choices=(Choice("a", ""), *CHOICES)),)),
    (
        "questions[0].choices[0].label: at most",
        (replace(SINGLE, choices=(Choice("a", "x" * (limits.CHOICE_CHARACTERS + 1)), *CHOICES)),),
    ),
    (
        "questions[0].choices[0].description: at most",
        (replace(SINGLE, choices=(Choice("a", "x", "x" * (limits.QUESTION_CHARACTERS + 1)), *CHOICES)),),
    ),
]


@pytest.mark.parametrize(("problem", "questions"), WRONG_QUESTIONS, ids=[problem for problem, _ in WRONG_QUESTIONS])
def test_what_people_could_not_answer_is_not_asked(problem: str, questions: tuple[Question, ...]) -> None:
    """A run would wait for ever for an answer that cannot be given, or take all memory (B28)."""
    with pytest.raises(Invalid) as refused:
        check_questions("call", questions)
    assert refused.value.message.startswith(problem)


def test_a_call_id_without_end_is_not_kept() -> None:
    """A worker could fill the memory of everyone who attaches."""
    with pytest.raises(Invalid, match="tool_call_id: at most"):
        check_questions("x" * (limits.TOOL_CALL_ID_CHARACTERS + 1), ALL)


def test_a_batch_at_its_limits_can_be_asked() -> None:
    """A limit that is one too small refuses what the docs promise."""
    full = replace(SINGLE, choices=MANY[: limits.CHOICES_PER_QUESTION], question="x" * limits.QUESTION_CHARACTERS)
    check_questions("call", tuple(replace(full, id=f"é{n}") for n in range(limits.QUESTIONS_PER_BATCH)))


def test_answers_that_fit_come_in_the_order_of_the_questions() -> None:
    """What a person said to one question would be told as said to another."""
    assert check_answers(ALL, ANSWERS[::-1]) == ANSWERS


@pytest.mark.parametrize(
    ("question", "response"),
    [
        (SINGLE, QuestionResponse("q2", fill_in_text="None of them: a file")),
        (MULTI, QuestionResponse("q3", fill_in_text="None of them: a file")),
        (MULTI, QuestionResponse("q3", ("c1",), fill_in_text="and a file")),
        (YES_NO, QuestionResponse("q1", yes=True)),
        (TEXT, QuestionResponse("q4", fill_in_text="x" * limits.ANSWER_CHARACTERS)),
    ],
)
def test_words_of_ones_own_are_an_answer_to_a_choice(question: Question, response: QuestionResponse) -> None:
    """A person for whom no choice is right would have to choose a wrong one."""
    assert check_answers((question,), (response,)) == (response,)


def wrong(field: str, question: Question, **response: Any) -> Any:
    fields = {"request_id": question.id, **response}
    return pytest.param(field, question, QuestionResponse(**fields), id=f"{question.type} {field} {[*response]}")


@pytest.mark.parametrize(
    ("field", "question", "response"),
    [
        wrong("request_id", YES_NO, request_id="q9", yes=True),
        wrong("yes", YES_NO),
        wrong("selected_ids", YES_NO, yes=True, selected_ids=("c1",)),
        wrong("fill_in_text", YES_NO, yes=True, fill_in_text="well"),
        wrong("selected_ids", SINGLE),
        wrong("selected_ids", SINGLE, selected_ids=("c9",)),
        wrong("selected_ids", SINGLE, selected_ids=("c1", "c2")),
        wrong("selected_ids", SINGLE, selected_ids=("c1",), fill_in_text="and more"),
        wrong("yes", SINGLE, selected_ids=("c1",), yes=True),
        wrong("selected_ids", MULTI, fill_in_text=" "),
        wrong("selected_ids", MULTI, selected_ids=("c1", "c1")),
        wrong("selected_ids", MULTI, selected_ids=("c1", "c3")),
        wrong("yes", MULTI, selected_ids=("c1",), yes=False),
        wrong("fill_in_text", TEXT, fill_in_text=" \n"),
        wrong("fill_in_text", TEXT, fill_in_text="x" * (limits.ANSWER_CHARACTERS + 1)),
        wrong("fill_in_text", MULTI, fill_in_text="x" * (limits.ANSWER_CHARACTERS + 1)),
        wrong("fill_in_text", TEXT, fill_in_text="\udfff"),
        wrong("selected_ids", TEXT, fill_in_text="x", selected_ids=("c1",)),
        wrong("yes", TEXT, fill_in_text="x", yes=True),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_by_its_field(
    field: str, question: Question, response: QuestionResponse
) -> None:
    """The model would be told something that nobody said, or the person not what to mend (B28)."""
    with pytest.raises(Invalid) as refused:
        check_answers((question,), (response,))
    assert refused.value.message.startswith(f"responses[0].{field}: ")


def test_a_batch_is_answered_whole() -> None:
    """Half an answer would let the run go on with questions that nobody heard (B28)."""
    with pytest.raises(Invalid, match="responses: q2, q4 not answered"):
        check_answers(ALL, [ANSWERS[2], ANSWERS[0]])
    with pytest.raises(Invalid, match=r"responses\[1\].request_id: 'q1' is answered twice"):
        check_answers((YES_NO,), [ANSWERS[0], ANSWERS[0]])
