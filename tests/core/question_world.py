"""The real `Questions` beside a naive model: who asked, who answered first, and how everything else ended.

Two people may answer or decline every batch at any time, with answers that fit and that do not; runs are stopped,
askers go away, batches expire, the server crashes (recovery withdraws what was pending, from the facts).
"""

from collections.abc import Iterator
from typing import NamedTuple, Self

from tests.core.question_batches import YES_NO, batch
from tests.core.search import Move
from windlass.core.questions import Questions, Settled, notification
from windlass.errors import Invalid
from windlass.wire.events import Fact
from windlass.wire.permissions import By
from windlass.wire.questions import QuestionNotification, QuestionResponse

RUN = By("run")
ANSWERERS = 2
RUNS = ("r1", "r2")
FITS = (QuestionResponse(YES_NO.id, yes=True),)
RESPONSES = {"fits": FITS, "does not fit": (QuestionResponse(YES_NO.id),), "is none": ()}


class Asked(NamedTuple):
    run: str
    pending: bool = True
    answers: int = 0
    winners: int = 0


class QuestionWorld:
    def __init__(self, asks: int, crashes: int) -> None:
        self.asks, self.crashes = asks, crashes
        self.questions = Questions()
        self.asked: dict[str, Asked] = {}
        self.on_disk: dict[str, Fact] = {}  # requests without an end

    def copy(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.asked, other.on_disk = dict(self.asked), dict(self.on_disk)
        other.questions = Questions()
        other.questions.pending = dict(self.questions.pending)
        return other

    def key(self) -> object:
        return self.asks, self.crashes, frozenset(self.questions.pending), tuple(self.asked.items())

    def moves(self) -> Iterator[Move]:
        if self.asks:
            yield from (("ask", run) for run in RUNS)
        for id, asked in self.asked.items():
            yield from (("expire", id), ("take back", id))
            if asked.answers < ANSWERERS:
                yield from (("answer", id, response) for response in RESPONSES)
                yield ("cancel", id)
        yield from (("withdraw", run) for run in RUNS)
        if self.crashes:
            yield ("crash",)

    def apply(self, move: Move) -> None:
        match move:
            case ("ask", run):
                self._ask(run)
            case ("answer", id, response):
                self._answer(id, response)
            case ("cancel", id):
                self._ended(id, self.questions.cancel(id, self._person(id)), "canceled")
            case ("expire", id):
                self._ended(id, self.questions.expire(id), "expired")
            case ("take back", id):
                self._ended(id, self.questions.withdraw_one(id, By("server")), "withdrawn")
            case ("withdraw", run):
                self._withdraw(run)
            case ("crash",):
                self._crash()
            case _:
                raise ValueError(move)
        self.check()

    def _person(self, id: str) -> By:
        asked = self.asked[id]
        self.asked[id] = asked._replace(answers=asked.answers + 1)
        return By("person", f"c{asked.answers}")

    def _ask(self, run: str) -> None:
        self.asks -= 1
        id = f"ask{len(self.asked) + 1}"
        (fact,) = self.questions.ask(batch(id, run), RUN)
        assert (fact.kind, fact.body.id, fact.key) == ("question_batch_request", id, id), "B24: what waits can be shown"
        self.asked[id] = Asked(run)
        self.on_disk[id] = fact

    def _answer(self, id: str, response: str) -> None:
        by, was_pending = self._person(id), self.asked[id].pending
        try:
            settled = self.questions.answer(id, RESPONSES[response], by)
        except Invalid:
            assert was_pending and response != "fits", "I9: an answer that fits, or comes too late, is no mistake"
            return
        assert response == "fits" or not was_pending, "B28: an answer that does not fit decided something"
        self._ended(id, settled, "answered")

    def _ended(self, id: str, settled: Settled, outcome: str) -> None:
        asked = self.asked[id]
        assert settled.resolved == asked.pending, "I9: the first end of a pending batch counts, no other"
        if not settled.resolved:
            assert not settled.facts, "I9: who lost changes nothing"
            return
        assert (settled.outcome, settled.run_id, settled.batch_id) == (outcome, asked.run, id), "B28: told otherwise"
        assert settled.answers == (FITS if outcome == "answered" else ()), "B28: words that nobody said"
        self.asked[id] = asked._replace(pending=False, winners=asked.winners + 1)
        self._published(settled.facts)

    def _published(self, facts: list[Fact]) -> None:
        (fact,) = facts
        body = fact.body
        assert isinstance(body, QuestionNotification) and fact.key == "", "B23: everyone sees the outcome, once"
        assert body.by == fact.by
        del self.on_disk[body.batch_id]

    def _withdraw(self, run: str) -> None:
        expected = [id for id, asked in self.asked.items() if asked.pending and asked.run == run]
        ends = self.questions.withdraw(run, By("server"))
        assert [settled.batch_id for settled in ends] == expected, "B25: exactly the questions of that run go"
        for settled in ends:
            self._ended(settled.batch_id, settled, "withdrawn")
        assert not self.questions.waiting(run), "I11: a question outlives its run"

    def _crash(self) -> None:
        self.crashes -= 1
        self.questions = Questions()
        for id, fact in list(self.on_disk.items()):
            self._published([notification(fact.body, "withdrawn", By("server"))])
            self.asked[id] = self.asked[id]._replace(pending=False, winners=1)

    def check(self) -> None:
        waiting = [id for id, asked in self.asked.items() if asked.pending]
        assert sorted(self.questions.pending) == waiting, "I9 I11: what waits is what nobody has ended"
        assert sorted(self.on_disk) == waiting, "B24 I15: on disk the same batches wait"
        assert all(asked.winners <= 1 for asked in self.asked.values()), "I9: two were told that they won"
        for run in RUNS:
            expected = any(asked.pending and asked.run == run for asked in self.asked.values())
            assert self.questions.waiting(run) == expected, "B15: a run waits while one of its questions does"
