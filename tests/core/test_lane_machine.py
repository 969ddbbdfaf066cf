"""Long random lives of two sessions: many prompts, cancels, steers and crashes, judged by their history afterwards.

The judge knows nothing of flags or numbers. It reads one list of everything that was sent and every fact that came
back, and asks of each run: was there a cancel between its accept and its end, and does its end say so?
"""

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from windlass.core.lane import Ending, Entry, Lane, Request
from windlass.wire.events import Fact
from windlass.wire.permissions import By
from windlass.wire.runs import OnBusy, Outcome, Run

BY = By("test")
SESSIONS = ("s1", "s2")
sessions = st.sampled_from(SESSIONS)


class Sent(NamedTuple):
    """Something done to a session or to one run of it: `cancel`, `cancel_run`, or what its executor did."""

    what: str
    name: str
    outcome: Outcome = "completed"


History = list[Sent | Fact]


class TwoSessions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.lanes = {session: Lane(session) for session in SESSIONS}
        self.history: History = []
        self.accepted = 0

    @rule(session=sessions, on_busy=st.sampled_from(["enqueue", "steer", "enqueue", "steer", "enqueue", "interrupt"]))
    def prompt(self, session: str, on_busy: OnBusy) -> None:
        if on_busy == "interrupt":
            self.history.append(Sent("cancel", session))
        self.accepted += 1
        self.history += self.lanes[session].accept(Request(f"r{self.accepted}", "p", on_busy), BY, "").facts

    @precondition(lambda self: any(self.startable()))
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self._go_on(data.draw(st.sampled_from(self.startable())))

    def startable(self) -> list[Lane]:
        heads = ((lane, lane.head()) for lane in self.lanes.values())
        return [lane for lane, head in heads if head is not None and not lane.covered(head)]

    @precondition(lambda self: any(lane.active for lane in self.lanes.values()))
    @rule(session=sessions)
    def steer(self, session: str) -> None:
        self.prompt(session, "steer")

    @precondition(lambda self: any(lane.active for lane in self.lanes.values()))
    @rule(session=sessions)
    def take_the_oldest_steer(self, session: str) -> None:
        lane = self.lanes[session]
        if lane.active is not None and not lane.covered(lane.active):
            for steer in lane.pending_steers(lane.active.run.id)[:1]:
                self.history.append(Sent("takes", steer.run.id))
                self.history += lane.steer_taken(steer.run.id, "") or []

    @precondition(lambda self: any(lane.active for lane in self.lanes.values()))
    @rule(session=sessions, outcome=st.sampled_from(["completed", "failed"]))
    def executor_returns(self, session: str, outcome: Outcome) -> None:
        lane = self.lanes[session]
        if lane.active is not None:
            self._end(lane, lane.active, outcome)

    @precondition(lambda self: any(lane.is_busy for lane in self.lanes.values()))
    @rule(
        session=sessions, how=st.sampled_from(["cancel", "clear", "one", "one"]), pick=st.randoms(use_true_random=False)
    )
    def stop(self, session: str, how: str, pick: Random) -> None:
        lane = self.lanes[session]
        if how == "cancel":
            self.history.append(Sent("cancel", session))
            self.history += lane.cancel(BY).facts
        elif how == "clear":
            waiting = [entry.run.id for entry in lane.entries if entry is not lane.active and not entry.taken]
            self.history += [Sent("cancel_run", run_id) for run_id in waiting]
            self.history += lane.clear(BY).facts
        elif lane.is_busy:
            run_id = pick.choice(lane.entries).run.id
            self.history.append(Sent("cancel_run", run_id))
            self.history += lane.cancel_run(run_id, BY).facts

    @rule()
    def crash(self) -> None:
        """Memory is lost; each run is what the last fact about it says."""
        last = {fact.run: fact for fact in self.history if isinstance(fact, Fact) and fact.kind == "run"}
        self.lanes = {session: Lane(session, self.accepted + 1) for session in SESSIONS}
        for fact in sorted(last.values(), key=lambda fact: int(fact.private.number)):
            if not fact.body.is_terminal:
                self.lanes[fact.session].restore(Entry(fact.body, fact.private))
        for lane in self.lanes.values():
            if lane.active is not None:
                self._end(lane, lane.active, "interrupted")

    def _end(self, lane: Lane, entry: Entry, outcome: Outcome) -> None:
        self.history.append(Sent("returns", entry.run.id, outcome))
        ending = Ending(lane.verdict(entry, outcome), error="what went wrong")
        self.history += lane.finish(entry, ending, "")

    def _go_on(self, lane: Lane) -> None:
        """Start the next run, or end the one that is active or was cancelled before it started."""
        entry = lane.active or lane.head()
        if entry is None:
            return
        if lane.active is None and not lane.covered(entry):
            self.history.append(Sent("starts", entry.run.id))
            self.history += lane.start(entry, "")
        else:
            self._end(lane, entry, "completed")

    def teardown(self) -> None:
        for lane in self.lanes.values():
            for _ in range(2 * len(lane.entries)):
                self._go_on(lane)
            assert not lane.is_busy, "B10: a run never ends"
        for session in SESSIONS:
            judge_order(self.history, session)
        for run_id in {fact.run for fact in self.history if isinstance(fact, Fact)}:
            judge_run(self.history, run_id)


def judge_order(history: History, session: str) -> None:
    """I2 and I4: one run at a time, in the order of acceptance."""
    accepted = [run.id for change, run in runs(history, session) if change == "created"]
    active = ""
    started: list[str] = []
    for _, run in runs(history, session):
        if run.state == "running" and not run.into and run.id not in started:
            assert not active, f"I2: {run.id} started while {active} was active"
            active = run.id
            started.append(run.id)
        elif run.is_terminal and run.id == active:
            active = ""
    assert started == [run_id for run_id in accepted if run_id in started], f"I4: started in the order {started}"


def runs(history: History, session: str) -> Iterator[tuple[str, Run]]:
    for fact in history:
        if isinstance(fact, Fact) and fact.kind == "run" and fact.session == session:
            yield fact.change, fact.body


def judge_run(history: History, run_id: str) -> None:
    """I3, I5, I6: one end, the last thing said, and it says `canceled` exactly when a cancel covered the run."""
    mine = [(at, fact) for at, fact in enumerate(history) if isinstance(fact, Fact) and fact.run == run_id]
    ends = [(at, fact.body) for at, fact in mine if fact.kind == "run" and fact.body.is_terminal]
    assert len(ends) == 1, f"I3: {run_id} ended {len(ends)} times"
    assert [fact.kind for _, fact in mine].count("run_complete") == 1, f"B10: {run_id} is not announced once"
    assert mine[-1][1].kind == "run_complete", f"I3: a {mine[-1][1].kind} fact follows the last word about {run_id}"
    (ended_at, run) = ends[0]
    judge_beginning(history, mine[0][0], run)
    taker = run.into or run_id
    returned_at = max(at for at, sent in enumerate(history[:ended_at]) if sent_to(sent, "returns", taker))
    covered = was_cancelled(history[mine[0][0] : ended_at], run.session_id, run_id)
    if run.into:  # it was taken: it shares the fate of the run that took it
        covered = covered or was_cancelled(history[accepted_at(history, taker) : ended_at], run.session_id, taker)
    returned = history[returned_at]
    assert isinstance(returned, Sent)
    expected = "canceled" if covered else returned.outcome
    assert run.state == expected, f"I5 I6: {run_id} ended {run.state}, should be {expected}"


def judge_beginning(history: History, accepted: int, run: Run) -> None:
    """I5, R14: a run is begun at most once, by itself or in the run that took it, and never after a cancel."""
    begun = [at for at, sent in enumerate(history) if sent_to(sent, "starts", run.id) or sent_to(sent, "takes", run.id)]
    assert len(begun) <= 1, f"R14: {run.id} was begun {len(begun)} times"
    if begun:
        assert not was_cancelled(history[accepted : begun[0]], run.session_id, run.id), f"I5: {run.id} begun too late"
        assert bool(run.into) == sent_to(history[begun[0]], "takes", run.id), f"R14: {run.id} was taken by another run"


def accepted_at(history: History, run_id: str) -> int:
    return next(at for at, fact in enumerate(history) if isinstance(fact, Fact) and fact.run == run_id)


def was_cancelled(life: History, session: str, run_id: str) -> bool:
    return any(sent_to(sent, "cancel", session) or sent_to(sent, "cancel_run", run_id) for sent in life)


def sent_to(item: Sent | Fact, what: str, name: str) -> bool:
    return isinstance(item, Sent) and (item.what, item.name) == (what, name)


# The same lives in every run of the suite: a failure that comes and goes would be blamed on the machine.
TestTwoSessions = TwoSessions.TestCase
TestTwoSessions.settings = settings(
    max_examples=300, stateful_step_count=60, deadline=None, derandomize=True, database=None
)
