"""Every interleaving of questions, answers of two people, withdrawals, expiries and a crash, over the real `Questions`.

What is checked is written in `question_world.py`: I9, I11, B15, B24, B25, B28. The last test takes out one safeguard at
a time and expects the search to find what that breaks.
"""

from collections.abc import Callable, Sequence

import msgspec
import pytest

from tests.core.question_batches import batch
from tests.core.question_world import QuestionWorld
from tests.core.search import Violation, explore
from windlass import limits
from windlass.core.questions import Questions, Settled
from windlass.errors import Invalid, TooMany
from windlass.wire.permissions import By
from windlass.wire.questions import QuestionResponse


def test_no_interleaving_of_answers_withdrawals_and_crashes_breaks_an_invariant() -> None:
    """Else a run could go on with words that nobody said, or a question could wait for a run that is over."""
    report = explore(QuestionWorld(asks=3, crashes=1))
    print(report)
    assert report.states > 2_000


def test_more_batches_than_people_can_answer_are_refused() -> None:
    """Else an agent in a loop takes all memory, and nobody finds the question that matters (I11)."""
    questions = Questions()
    for number in range(limits.PENDING_QUESTIONS):
        questions.ask(batch(f"ask{number}"), By("run"))
    with pytest.raises(TooMany, match="Decide for yourself"):
        questions.ask(batch("one more"), By("run"))
    assert "one more" not in questions.pending


def test_a_batch_that_cannot_be_asked_does_not_wait() -> None:
    """Else it would be shown to nobody, and its run would wait for ever (B28)."""
    questions = Questions()
    with pytest.raises(Invalid, match="questions: ask 1 to"):
        questions.ask(batch(questions=()), By("run"))
    assert not questions.pending


def test_a_question_and_its_end_say_whose_they_are() -> None:
    """Else clients cannot show them beside the call they are about, or who decided (B23 B46)."""
    questions = Questions()
    (asked,) = questions.ask(batch(), By("run"))
    (ended,) = questions.cancel("ask1", By("ann", "c1")).facts
    assert [(fact.kind, fact.change, fact.by.name, fact.session, fact.run) for fact in (asked, ended)] == [
        ("question_batch_request", "created", "run", "s1", "r1"),
        ("question_batch_notification", "created", "ann", "s1", "r1"),
    ]
    assert (ended.body.batch_id, ended.body.session_id, ended.body.by) == ("ask1", "s1", By("ann", "c1"))


def test_who_comes_too_late_is_told_of_which_batch_and_nothing_else() -> None:
    """Else the second answer would be taken for news, or for another batch's (I9)."""
    questions = Questions()
    questions.ask(batch(), By("run"))
    questions.cancel("ask1", By("ann"))
    late = questions.answer("ask1", [], By("bob"))
    assert late == questions.cancel("ask1", By("bob")) == questions.expire("ask1")
    assert (late.resolved, late.batch_id, late.facts, late.run_id, late.answers) == (False, "ask1", [], "", ())
    assert late.outcome == "withdrawn"


def a_second_answer_wins_too(patch: pytest.MonkeyPatch) -> None:
    original = Questions.answer

    def answer(questions: Questions, batch_id: str, responses: Sequence[QuestionResponse], by: By) -> Settled:
        return msgspec.structs.replace(original(questions, batch_id, responses, by), resolved=True)

    patch.setattr(Questions, "answer", answer)


def any_answer_fits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("windlass.core.questions.check_answers", lambda questions, responses: tuple(responses))


def a_stopped_run_keeps_its_questions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Questions, "withdraw", lambda questions, run_id, by: [])


def a_stopped_run_takes_the_questions_of_others(patch: pytest.MonkeyPatch) -> None:
    def withdraw(questions: Questions, run_id: str, by: By) -> list[Settled]:
        return [questions._end(batch, "withdrawn", by) for batch in list(questions.pending.values())]

    patch.setattr(Questions, "withdraw", withdraw)


def silence_is_told_as_a_refusal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Questions, "expire", lambda questions, batch_id: questions.cancel(batch_id, By("server")))


MUTANTS: dict[Callable[[pytest.MonkeyPatch], None], str] = {
    a_second_answer_wins_too: "I9",
    any_answer_fits: "B28",
    a_stopped_run_keeps_its_questions: "B25",
    a_stopped_run_takes_the_questions_of_others: "B25",
    silence_is_told_as_a_refusal: "B28",
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_search_finds_what_a_missing_safeguard_breaks(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the search is blind for this rule, and its silence about the real object means nothing."""
    mutant(monkeypatch)
    with pytest.raises(Violation, match=MUTANTS[mutant]) as found:
        explore(QuestionWorld(asks=3, crashes=1))
    print(found.value)
