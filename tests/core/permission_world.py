"""The real `Permissions` beside a naive model: who was asked, who answered first, what was granted for a session.

Three people may answer every request, each with any answer, at any time; runs are stopped, requests expire, the server
crashes. A crash loses what was pending (recovery withdraws it, from the facts) and keeps what was granted. Who answers
may also type a pattern, which holds for its session.
"""

from collections.abc import Iterator
from typing import NamedTuple, Self

from tests.core.search import Move
from windlass.core.permissions import Asked, GrantKey, Pending, Permissions, Settled
from windlass.core.policy import Policy
from windlass.wire.events import Fact
from windlass.wire.permissions import Action, By, PermissionNotification, PermissionPrivate, PermissionRequest

RUN = By("run")
ANSWERERS = 3
# What a tool may want to do: a thing, another thing in the same session, the same thing in another session.
ASKS: tuple[tuple[str, str, str], ...] = (("r1", "s1", "a.txt"), ("r1", "s1", "b.txt"), ("r2", "s2", "a.txt"))
# An answer, and what is typed with it: nothing, or a pattern that also covers the other thing.
ANSWERS: tuple[tuple[Action, str], ...] = (
    ("allow", ""),
    ("allow_session", ""),
    ("allow_session", "?.txt"),
    ("deny", ""),
)


class Question(NamedTuple):
    run: str
    key: GrantKey
    pending: bool = True
    answers: int = 0
    winners: int = 0


class PermissionWorld:
    def __init__(self, asks: int, crashes: int) -> None:
        self.asks, self.crashes = asks, crashes
        self.permissions = Permissions()
        self.questions: dict[str, Question] = {}
        self.grants: frozenset[GrantKey] = frozenset()
        self.patterns: frozenset[GrantKey] = frozenset()
        self.asked: dict[str, Fact] = {}  # on disk: requests without an end
        self.remembered: tuple[Fact, ...] = ()  # on disk: answers that hold for the session

    def copy(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.questions, other.asked = self.questions.copy(), self.asked.copy()
        ours, theirs = self.permissions, object.__new__(Permissions)
        theirs.skip, theirs.pending = ours.skip, ours.pending.copy()
        theirs._grants, theirs._patterns = ours._grants.copy(), ours._patterns.copy()
        other.permissions = theirs
        return other

    def key(self) -> object:
        remembered = frozenset(self.permissions._grants), frozenset(self.permissions._patterns)
        inside = frozenset(self.permissions.pending), remembered
        return self.asks, self.crashes, inside, self.grants, self.patterns, tuple(self.questions.items())

    def moves(self) -> Iterator[Move]:
        if self.asks:
            yield from (("ask", *ask) for ask in ASKS)
        for id, question in self.questions.items():
            yield ("expire", id)
            if question.answers < ANSWERERS:
                # Typed only for the first thing: whether the second is covered is then a question of the pattern alone.
                typed = question.key == ("s1", "edit", "write", "a.txt")
                yield from (("answer", id, *answer) for answer in ANSWERS if typed or not answer[1])
        yield from (("withdraw", run) for run in ("r1", "r2"))
        if self.crashes:
            yield ("crash",)

    def apply(self, move: Move) -> None:
        match move:
            case ("ask", run, session, resource):
                self._ask(run, session, resource)
            case ("answer", id, "allow" | "allow_session" | "deny" as action, pattern):
                self._answer(id, action, pattern)
            case ("expire", id):
                settled = self.permissions.expire(id)
                assert settled.resolved == self.questions[id].pending, "I9: only what is pending can expire"
                self._ended(id, settled, "expired")
            case ("withdraw", run):
                self._withdraw(run)
            case ("crash",):
                self._crash()
            case _:
                raise ValueError(move)
        self.check()

    def _ask(self, run: str, session: str, resource: str) -> None:
        self.asks -= 1
        id = f"q{len(self.questions) + 1}"
        key = (session, "edit", "write", resource)
        asked = self.permissions.ask(request(id, run, session), resource, Policy(), RUN)
        pattern = (*key[:3], "?.txt")
        if key in self.grants or pattern in self.patterns:
            assert asked.verdict == "granted", "B26: the same question was answered for the session"
            covered_by = "" if key in self.grants else "?.txt"
            assert asked.facts[0].body.pattern == covered_by, "B23: everyone sees what covers it"
            assert [fact.body.outcome for fact in asked.facts] == ["granted"], "B23: everyone sees that it was granted"
            self.questions[id] = Question(run, key, pending=False, winners=1)
            return
        assert asked.verdict is None, f"I10 B26 R44: {asked.verdict} although nobody allowed {key}"
        self.questions[id] = Question(run, key)
        self._check_question(id, asked)

    def _check_question(self, id: str, asked: Asked) -> None:
        notification, question = asked.facts
        assert (notification.body.id, notification.body.outcome) == (id, "asked")
        assert question.body.id == id and question.kind == "permission_request", "B24: what waits can be shown"
        self.asked[id] = question

    def _answer(self, id: str, action: Action, pattern: str) -> None:
        question = self.questions[id]
        self.questions[id] = question._replace(answers=question.answers + 1)
        settled = self.permissions.resolve(id, action, By("person", f"c{question.answers}"), pattern)
        assert settled.resolved == question.pending, "I9 R43: the first answer of a pending request wins, no other"
        if question.pending and pattern:
            self.patterns |= {(*question.key[:3], pattern)}
        elif question.pending and action == "allow_session":
            self.grants |= {question.key}
        self._ended(id, settled, "denied" if action == "deny" else "granted")

    def _ended(self, id: str, settled: Settled, verdict: str) -> None:
        question = self.questions[id]
        if not settled.resolved:
            assert not settled.facts, "I9: who lost changes nothing"
            return
        assert settled.verdict == verdict, f"I10: told {settled.verdict}, it was {verdict}"
        assert settled.run_id == question.run
        self.questions[id] = question._replace(pending=False, winners=question.winners + 1)
        (fact,) = settled.facts
        body, private = fact.body, fact.private
        assert isinstance(body, PermissionNotification) and isinstance(private, PermissionPrivate)
        assert (body.id, body.outcome) == (id, verdict), "B23: everyone sees the outcome"
        assert (body.granted, body.denied) == (verdict == "granted", verdict == "denied")
        del self.asked[id]
        if private.granted:
            self.remembered += (fact,)

    def _withdraw(self, run: str) -> None:
        expected = [id for id, question in self.questions.items() if question.pending and question.run == run]
        settled = self.permissions.withdraw(run, By("server"))
        assert len(settled) == len(expected), "B25: exactly the questions of that run are withdrawn"
        for id, end in zip(expected, settled, strict=True):
            self._ended(id, end, "withdrawn")
        assert not self.permissions.waiting(run), "I11: a question outlives its run"

    def _crash(self) -> None:
        self.crashes -= 1
        self.permissions = Permissions()
        for fact in self.remembered:
            private = fact.private
            exact = "" if private.pattern else private.resource
            self.permissions.remember(fact.session, private.tool, private.action, exact, private.pattern)
        for id, fact in self.asked.items():
            self.permissions.pending[id] = Pending(fact.body, fact.private.resource, fact.run)
        for run in ("r1", "r2"):
            self._withdraw(run)
        assert not self.asked, "I11: a question outlives the crash that ended its run"

    def check(self) -> None:
        waiting = {id for id, question in self.questions.items() if question.pending}
        assert self.permissions.pending.keys() == waiting, "I9 I11 B27: what waits is what nobody has ended"
        assert self.asked.keys() == waiting, "B24 I15: on disk the same requests wait"
        assert self.permissions._grants.keys() == self.grants, "B26 R44: only a winning allow_session is remembered"
        assert self.permissions._patterns.keys() == self.patterns, "B26 R44: only a pattern that won is remembered"
        for question in self.questions.values():
            assert question.winners <= 1, "I9: two were told that they won"


def request(id: str, run: str, session: str) -> PermissionRequest:
    return PermissionRequest(
        id=id,
        session_id=session,
        tool_call_id=f"call-{id}",
        tool_name="edit",
        description="",
        action="write",
        params={},
        path="",
        root_session_id=session,
        run_id=run,
    )
