"""The real `Lane` beside a naive model of it, for the exhaustive search: prompts, cancels, crashes, executor steps.

The model is a table of the runs that have not ended, with what people did to each: nothing is computed from what the
lane says. Facts are durable in the order they were returned, one decision's list at once; a crash loses memory
and nothing else, so the durable state of a run is the last fact about it.

Every run that ends leaves the table, so a later fact about it is caught as one of an unknown run (I3).
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple, Self

from tests.core.lane_facts import copy_lane, read_facts
from tests.core.search import Move
from windlass.core.lane import Cover, Ending, Entry, Lane, Request
from windlass.wire.events import Fact
from windlass.wire.permissions import By
from windlass.wire.runs import OnBusy, Outcome

BY = By("test")
ALL_KINDS: tuple[OnBusy, ...] = ("enqueue", "steer", "interrupt")


class Expected(NamedTuple):
    """What the model knows of a run that has not ended."""

    covered: bool = False
    into: str = ""
    taken: bool = False
    state: Literal["unstarted", "running", "waiting"] = "unstarted"


class LaneWorld:
    def __init__(
        self,
        prompts: int,
        cancels: int,
        crashes: int,
        kinds: tuple[OnBusy, ...] = ALL_KINDS,
        queue_commands: bool = True,
        waits: bool = True,
    ) -> None:
        self.prompts, self.cancels, self.crashes = prompts, cancels, crashes
        self.kinds, self.queue_commands, self.waits = kinds, queue_commands, waits
        self.lane = Lane("s")
        self.accepted = 0
        self.active = ""
        self.live: dict[str, Expected] = {}  # in accept order
        self.durable: dict[str, Fact] = {}  # the last fact of each run that is not terminal

    def copy(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.live, other.durable = dict(self.live), dict(self.durable)
        other.lane = copy_lane(self.lane)
        return other

    def key(self) -> object:
        lane = self.lane
        runs = tuple((e.run.id, e.run.state, e.run.cancel_requested, e.run.into, e.taken) for e in lane.entries)
        budget = (self.accepted, self.cancels, self.crashes)
        return budget, self.active, runs, tuple(self.live.values())

    # -- what may happen ----------------------------------------------------------------------------------------------

    def moves(self) -> Iterator[Move]:
        if self.accepted < self.prompts:
            yield from (("accept", kind) for kind in self.kinds)
        if self.cancels:
            yield ("cancel",)
            yield from (("cancel_run", id) for id in self.live)
            if self.queue_commands:
                yield ("clear",)
                yield from (("remove", id) for id in self._unstarted())
        if self.crashes:
            yield ("crash",)
        yield from self.driving_moves()

    def driving_moves(self) -> Iterator[Move]:
        """What the executor of the active run, or the runner on its behalf, may do."""
        if not self.active:
            if self.live:
                yield ("end_unstarted",) if next(iter(self.live.values())).covered else ("start",)
            return
        yield from (("executor_returns", outcome) for outcome in ("completed", "failed"))
        run = self.live[self.active]
        if not run.covered:  # a covered run is stopped: nothing is taken from its executor any more
            yield from (("take", id) for id, other in self.live.items() if self._may_be_taken(other))
            if self.waits:
                yield ("wait", "" if run.state == "waiting" else "yes")

    def _unstarted(self) -> list[str]:
        return [id for id, run in self.live.items() if id != self.active and not run.taken]

    def _may_be_taken(self, run: Expected) -> bool:
        return run.into == self.active != "" and not run.taken and not run.covered

    # -- letting it happen --------------------------------------------------------------------------------------------

    def apply(self, move: Move) -> None:
        match move:
            case ("accept", "enqueue" | "steer" | "interrupt" as kind):
                self._accept(kind)
            case ("cancel",):
                self._cover(list(self.live), self.lane.cancel(BY))
            case ("clear",):
                self._cover(self._unstarted(), self.lane.clear(BY))
            case ("cancel_run", id):
                self._cover([id], self.lane.cancel_run(id, BY))
            case ("remove", id):
                self._cover([id], self.lane.remove(id, BY))
            case ("crash",):
                self._crash()
            case ("start",):
                self._start()
            case ("end_unstarted",):
                self._end(self._head(), "completed")
            case ("executor_returns", "completed" | "failed" as outcome):
                assert self.lane.active is not None
                self._end(self.lane.active, outcome)
            case ("take", id):
                taken = self.lane.steer_taken(id, "")
                assert taken is not None, "B14: the active run may take a prompt that was steered into it"
                self.live[id] = self.live[id]._replace(taken=True, state="running")
                self._commit(taken)
            case ("wait", yes):
                self.live[self.active] = self.live[self.active]._replace(state="waiting" if yes else "running")
                self._commit(self.lane.set_waiting(self.active, bool(yes), BY))
            case _:
                raise ValueError(move)
        self.check()

    def _accept(self, kind: OnBusy) -> None:
        others = list(self.live)
        self.accepted += 1
        id = f"r{self.accepted}"
        if kind == "interrupt":
            self.live = {other: run._replace(covered=True) for other, run in self.live.items()}
        steers = kind == "steer" and self.active != "" and not self.live[self.active].covered
        self.live[id] = Expected(into=self.active if steers else "")
        acceptance = self.lane.accept(Request(id, "p", kind), BY, "")
        assert not self._commit(acceptance.facts), "nothing ends by accepting"
        assert acceptance.stopped == (others if kind == "interrupt" else []), "I5: interrupt covers what was there"
        expected = "steered" if steers else "queued" if others else "started"
        assert acceptance.run.disposition == expected, f"told {acceptance.run.disposition}, is {expected}"
        assert acceptance.position == len(others)

    def _cover(self, ids: list[str], cover: Cover) -> None:
        assert cover.run_ids == ids, f"I5 I6: told that {cover.run_ids} are covered, should be {ids}"
        self.cancels -= 1
        for id in ids:
            self.live[id] = self.live[id]._replace(covered=True)
        assert not self._commit(cover.facts), "a cancel marks, it does not end"

    def _start(self) -> None:
        head = self._head()
        assert not self.active, "I2 R7: a run starts only when none is active"
        assert head.run.id == next(iter(self.live)), "I4: the oldest that has not ended starts first"
        self.active = head.run.id
        self.live[self.active] = self.live[self.active]._replace(state="running")
        self._commit(self.lane.start(head, ""))

    def _head(self) -> Entry:
        head = self.lane.head()
        assert head is not None, "B11: a queue is stranded with nobody active"
        return head

    def _end(self, entry: Entry, executor_says: Outcome) -> None:
        expected = self._expected_endings(entry.run.id, executor_says)
        ending = Ending(self.lane.verdict(entry, executor_says), "m", "text", "what went wrong")
        for id, run in self.live.items():
            if run.into == entry.run.id and not run.taken:
                self.live[id] = run._replace(into="")
        self.active = ""
        ended = self._commit(self.lane.finish(entry, ending, ""))
        assert ended == expected, f"I5 I6 R8 R14: ended {ended}, expected {expected}"

    def _expected_endings(self, id: str, executor_says: Outcome) -> list[tuple[str, Outcome]]:
        own: Outcome = "canceled" if self.live[id].covered else executor_says
        endings = [(id, own)]
        for other, run in self.live.items():
            if run.taken and run.into == id:
                endings.append((other, "canceled" if run.covered else own))
        return endings

    def _crash(self) -> None:
        """Memory is gone. Recovery restores what is not terminal, then ends what was running, before anything else."""
        self.crashes -= 1
        self.lane = Lane("s", self.accepted + 1)
        for id in self.live:
            fact = self.durable[id]
            self.lane.restore(Entry(fact.body, fact.private))
        self.check()
        if self.lane.active is not None:
            self._end(self.lane.active, "interrupted")

    def _commit(self, facts: list[Fact]) -> list[tuple[str, Outcome]]:
        """One atomic commit. Returns the runs it ended, and how."""
        ended = read_facts(facts, set(self.live), self.durable)
        for id, _ in ended:
            del self.live[id], self.durable[id]
        return ended

    # -- what must be true in every state -----------------------------------------------------------------------------

    def check(self) -> None:
        lane = self.lane
        assert [e.run.id for e in lane.entries] == list(self.live), "R14 R15: the lane holds exactly what has not ended"
        assert lane.is_busy == bool(self.live), "R9: a session with a run that has not ended looks busy"
        assert (lane.active.run.id if lane.active else "") == self.active, "I2: the active run is the one that started"
        running = [id for id, f in self.durable.items() if f.body.state in ("running", "waiting") and not f.body.into]
        assert running == ([self.active] if self.active else []), f"I2: on disk {running} are running"
        for entry in lane.entries:
            self._check_run(entry, self.live[entry.run.id])
        queued = [id for id in self._unstarted() if not self.live[id].covered]
        assert [e.run.id for e in lane.queued] == queued, "B13: the queue is what will run"
        if self.active:
            assert lane.head() is None, "I2: nothing is next while a run is active"
        if self.active and not self.live[self.active].covered:
            takeable = [id for id, run in self.live.items() if self._may_be_taken(run)]
            assert [e.run.id for e in lane.pending_steers(self.active)] == takeable, "B14: what may be taken"
        for id, run in self.live.items():
            if not self._may_be_taken(run):
                assert lane.steer_taken(id, "") is None, f"I5 I6: {id} was taken by a run that may not take it"

    def _check_run(self, entry: Entry, expected: Expected) -> None:
        run = entry.run
        assert self.lane.covered(entry) == expected.covered, f"B07 I5 I6 R4 R5 R10: {run.id} covered is wrong"
        assert run.cancel_requested == expected.covered, f"I5: the cancel of {run.id} would not survive a crash"
        assert self.durable[run.id].body == run, f"I1: a crash would find {run.id} in another state"
        assert run.into == expected.into, f"B14: {run.id} is steered into {run.into!r}, should be {expected.into!r}"
        assert entry.taken == expected.taken, f"R14: {run.id} taken is wrong"
        state = run.state if run.state in ("running", "waiting") else "unstarted"
        assert state == expected.state, f"B15: {run.id} is {run.state}, should be {expected.state}"
