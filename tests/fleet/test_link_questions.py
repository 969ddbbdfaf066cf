"""A question from a run in a real worker to the people at its parent, and the way back (B28 B73)."""

import asyncio

from tests.fleet.own_worker import own_worker
from tests.fleet.recorder import Recorder, World
from windlass.fleet.parent.link import RemoteExecutor
from windlass.wire.delegation import AskQuestions, OwnerReply, OwnerRequest
from windlass.wire.execution import Cancel, Events, RunOutcome, RunSpec, Steer
from windlass.wire.questions import Choice, Question, QuestionResponse

ASK = AskQuestions(
    "call", (Question("q1", "multi_choice", "Which?", "Any", (Choice("c1", "One"), Choice("c2", "Two", "é"))),)
)
REPLY = OwnerReply(outcome="answered", answers=(QuestionResponse("q1", ("c2",), "and a third"),))


class Curious:
    """Asks, and says what it heard; `never`: changes its mind before it hears anything."""

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        asking = asyncio.ensure_future(events.delegate(ASK))
        if spec.prompt == "never":
            await asyncio.sleep(0.05)  # until the parent has it; whether it has makes no difference
            asking.cancel()
            await asyncio.wait([asking])
            return RunOutcome("completed", result="no")
        reply = await asking
        return RunOutcome("completed", result=f"{reply.outcome} {reply.answers == REPLY.answers}")


class People(Recorder):
    """They answer when the test lets them."""

    async def delegate(self, request: OwnerRequest) -> OwnerReply:
        self.requests.append(request)  # type: ignore[arg-type]
        self._changed.set()
        try:
            await self.people.wait()
        except asyncio.CancelledError:
            self.withdrawn += 1
            self._changed.set()
            raise
        return REPLY


def asked(prompt: str) -> World:
    world = World(prompt)
    world.events = People()
    return world


async def test_a_question_goes_over_a_link_whole_and_so_does_its_answer() -> None:
    """B28 B73: an agent in a worker could not ask, or would be told something else than what people said."""
    world = asked("once")
    async with own_worker(Curious) as worker, asyncio.timeout(20):
        outcome = await RemoteExecutor(worker.url).run(world.spec, world.events, world.steer, world.cancel)
    assert (world.events.requests, outcome.result) == ([ASK], "answered True")


async def test_a_question_that_a_worker_takes_back_is_taken_back_at_the_parent() -> None:
    """I11: people would go on looking at a question whose answer nobody reads."""
    world = asked("never")
    world.events.people.clear()
    async with own_worker(Curious) as worker, asyncio.timeout(20):
        outcome = await RemoteExecutor(worker.url).run(world.spec, world.events, world.steer, world.cancel)
    assert (outcome.result, world.events.withdrawn, len(world.events.requests)) == ("no", 1, 1)


async def test_a_cancel_ends_a_run_that_waits_for_an_answer() -> None:
    """B18: the run would hang in its worker until somebody answers a question that is withdrawn."""
    world = asked("once")
    world.events.people.clear()
    async with own_worker(Curious) as worker, asyncio.timeout(20):
        running = asyncio.create_task(
            RemoteExecutor(worker.url).run(world.spec, world.events, world.steer, world.cancel)
        )
        await world.events.until(lambda: bool(world.events.requests))
        world.cancel.set()
        outcome = await running
    assert (outcome.status, world.events.withdrawn) == ("canceled", 1)
