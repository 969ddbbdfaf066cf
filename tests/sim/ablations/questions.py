"""Questions to people: what their desk promises, taken out."""

from typing import Any

import pytest

from tests.sim.ablations.ablation import Ablation
from windlass.core.questions import Questions, Settled
from windlass.engine.questions_desk import QuestionsDesk
from windlass.engine.waiting import Waiting
from windlass.wire.events import Fact
from windlass.wire.permissions import By


def answer_questions_twice(patch: pytest.MonkeyPatch) -> None:
    """An answer does not take the batch away: a second one wins too."""
    answer = Questions.answer

    def again(questions: Questions, batch_id: str, responses: Any, by: By) -> Settled:
        batch = questions.pending.get(batch_id)
        settled = answer(questions, batch_id, responses, by)
        if batch is not None:
            questions.pending[batch_id] = batch
        return settled

    patch.setattr(Questions, "answer", again)


def take_any_answer(patch: pytest.MonkeyPatch) -> None:
    """An answer that does not fit the questions counts as one (B28)."""
    patch.setattr("windlass.core.questions.check_answers", lambda questions, responses: tuple(responses))


def keep_batches_of_ended_runs(patch: pytest.MonkeyPatch) -> None:
    """What a cancelled run asked people is not withdrawn."""
    patch.setattr(QuestionsDesk, "withdraw", lambda desk, run_ids, by: [])


def keep_batches_through_a_restart(patch: pytest.MonkeyPatch) -> None:
    """What was asked before a crash waits for ever, for a run that is over."""
    patch.setattr("windlass.engine.recovery._decode_batch", lambda body: None)
    patch.setattr("windlass.engine.recovery.notification", lambda batch, outcome, by: _nothing(by))


def _nothing(by: By) -> Fact:
    return Fact("mcp_event", "updated", {}, by)


def tell_an_answer_before_it_is_on_disk(patch: pytest.MonkeyPatch) -> None:
    """An agent goes on with an answer that a crash may take away."""

    def tell(desk: QuestionsDesk, settled: Settled) -> None:
        answer = desk._asking.get(settled.batch_id)
        if answer is not None and not answer.done():
            answer.set_result((settled, 0))

    patch.setattr(QuestionsDesk, "_tell", tell)


def go_on_after_one_of_two_answers(patch: pytest.MonkeyPatch) -> None:
    """A run that waits for a permission and a question says that it goes on when one of them is answered (B15)."""

    def state(waiting: Waiting, run_id: str, by: By) -> list[Fact]:
        lane = waiting._lane_of(run_id)
        return [] if lane is None else lane.set_waiting(run_id, waiting._kinds[0].is_waiting(run_id), by)

    patch.setattr(Waiting, "state", state)


ABLATIONS = [
    Ablation(answer_questions_twice, ("I9",), last_found=4),
    Ablation(take_any_answer, ("B28",), last_found=13),
    Ablation(keep_batches_of_ended_runs, ("I9", "I11"), last_found=315),
    Ablation(keep_batches_through_a_restart, ("I9", "I11"), last_found=56),
    Ablation(tell_an_answer_before_it_is_on_disk, ("I12",), last_found=1),
    Ablation(go_on_after_one_of_two_answers, ("B15",), last_found=4),
]
