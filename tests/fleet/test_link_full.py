"""A run over a link to a worker that speaks windlass.1: every frame of the wire, in both directions."""

import asyncio
import uuid
from collections.abc import Awaitable
from typing import Any

import pytest
from aiohttp import web

from tests.fleet.recorder import World
from tests.fleet.scripted_worker import Talk, scripted_worker, served
from windlass import limits
from windlass.fleet.parent.link import RemoteExecutor
from windlass.wire.delegation import AgentStatus, OwnerReply, StartAgent
from windlass.wire.execution import PermissionAsk, RunOutcome
from windlass.wire.run_events import Delta, MessageEnd, MessageStart, RunEvent, SteerTaken


async def run(url: str, world: World, secret: str = "") -> RunOutcome:
    async with asyncio.timeout(20):
        return await RemoteExecutor(url, secret).run(world.spec, world.events, world.steer, world.cancel)


def approval(tool: str = "bash", **body: Any) -> dict[str, Any]:
    return {
        "id": f"sa-{uuid.uuid4()}",
        "body": {"tool_name": tool, "permission_type": "execute", "resource": "ls -l", "question": "Run ls?", **body},
    }


# -- a run ------------------------------------------------------------------------------------------------------------


async def test_events_come_in_order_and_the_terminal_after_them() -> None:
    """B51 I20: an answer would be shuffled, or a run told as over while it still speaks."""

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.message("m1", "one")
        await talk.message("m2", "two")
        await talk.terminal(result="two", transcript={"steps": 2})
        await talk.gone()

    world = World()
    async with scripted_worker(script) as url:
        outcome = await run(url, world)
    assert outcome == RunOutcome("completed", result="two", transcript={"steps": 2})
    assert world.events.events == [
        event
        for id, text in (("m1", "one"), ("m2", "two"))
        for event in (
            MessageStart(id, "assistant"),
            Delta(id, 0, "text", text, "text"),
            MessageEnd(id, "end_turn"),
        )
    ]


async def test_the_worker_is_told_the_whole_run() -> None:
    """B73: a run in a worker would know less than one in this process."""
    told: dict[str, Any] = {}

    async def script(talk: Talk) -> None:
        told.update(await talk.start())
        await talk.terminal()
        await talk.gone()

    world = World("and now?", earlier=("first", "answer"))
    async with scripted_worker(script) as url:
        await RemoteExecutor(url, workspace_path="/elsewhere").run(world.spec, world.events, world.steer, world.cancel)
    assert (told["run_id"], told["attempt"], told["assignment"]) == (world.spec.run_id, 1, "and now?")
    assert [message["parts"][0]["data"]["text"] for message in told["messages"]] == ["first", "answer", "and now?"]
    assert (told["session_id"], told["model"]) == (world.spec.session_id, "local/some-model")
    assert told["workspace_path"] == "/elsewhere"


@pytest.mark.parametrize(
    ("terminal", "expected"),
    [
        ({"status": "error", "error": "No such model."}, RunOutcome("failed", "No such model.")),
        ({"status": "cancelled"}, RunOutcome("canceled")),
        ({"status": "completed"}, RunOutcome("completed")),
    ],
    ids=["error", "cancelled", "completed"],
)
async def test_a_terminal_becomes_an_outcome(terminal: dict[str, Any], expected: RunOutcome) -> None:
    """A run that failed would be told as done."""

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.terminal(**terminal)
        await talk.gone()

    async with scripted_worker(script) as url:
        assert await run(url, World()) == expected


async def test_the_secret_goes_into_a_header() -> None:
    """A worker would refuse its own parent."""
    headers: list[str] = []

    async def script(talk: Talk) -> None:
        headers.append(talk.request.headers["Authorization"])
        await talk.start()
        await talk.terminal()
        await talk.gone()

    async with scripted_worker(script) as url:
        await run(url, World(), "the secret")
    assert headers == ["Bearer the secret"]


# -- durable events ---------------------------------------------------------------------------------------------------


async def test_a_durable_event_is_acknowledged_when_it_is_on_disk() -> None:
    """I10: a tool would run before the fact that says so is safe."""
    world = World()
    world.events.disk.clear()

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.message("m1", "one")
        # Behind the event, and answered: a slow disk does not hold up the reader.
        await talk.send_of_run("approval_request", **approval())
        await talk.receive("approval_reply")
        assert "ack" not in [frame["kind"] for frame in talk.heard]
        world.events.disk.set()
        assert (await talk.receive("ack"))["seq"] == 3
        await talk.terminal()
        await talk.gone()

    async with scripted_worker(script) as url:
        assert (await run(url, world)).status == "completed"


async def test_many_commits_are_told_by_one_ack() -> None:
    """A run of many events would be answered frame by frame, and a slow link would fall behind."""
    world = World()
    world.events.disk.clear()
    acks: list[int] = []

    async def script(talk: Talk) -> None:
        await talk.start()
        for number in range(100):
            await talk.event({"type": "step", "number": number}, durable=True)
        await world.events.until(lambda: len(world.events.events) == 100)
        world.events.disk.set()
        while not acks or acks[-1] < 100:
            acks.append((await talk.receive("ack"))["seq"])
        await talk.terminal()
        await talk.gone()

    async with scripted_worker(script) as url:
        await run(url, world)
    assert len(acks) <= 3


async def test_a_run_is_not_over_before_its_events_are_on_disk() -> None:
    """The ending would be written before what it ends."""
    world = World()
    world.events.disk.clear()
    sent = asyncio.Event()

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.message("m1", "one")
        await talk.terminal()
        sent.set()
        await talk.gone()

    async with scripted_worker(script) as url:
        running = asyncio.create_task(run(url, world))
        await sent.wait()
        await world.events.until(lambda: len(world.events.events) == 3)
        done, _ = await asyncio.wait({running}, timeout=0.05)
        assert not done
        world.events.disk.set()
        assert (await running).status == "completed"


async def test_a_disk_that_fails_ends_the_run_with_its_error() -> None:
    """The run would wait for an ack for ever, on a server whose journal is lost."""

    class Broken(Exception):
        pass

    world = World()

    async def fail() -> None:
        raise Broken

    world.events.durable = lambda event: fail()  # type: ignore[method-assign]

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.message("m1", "one")
        await talk.gone()

    async with scripted_worker(script) as url:
        with pytest.raises(Broken):
            await run(url, world)


async def test_a_disk_that_fails_behind_the_terminal_fails_the_run() -> None:
    """The run would be told as completed, and its last message would not exist."""

    class Broken(Exception):
        pass

    world = World()
    world.events.disk.clear()

    async def fail() -> None:
        await world.events.disk.wait()
        raise Broken

    def durable(event: RunEvent) -> Awaitable[None]:
        world.events.emit(event)
        return fail()

    world.events.durable = durable  # type: ignore[method-assign]

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.message("m1", "one")
        await talk.terminal()
        await talk.gone()

    async with scripted_worker(script) as url:
        running = asyncio.create_task(run(url, world))
        await world.events.until(lambda: len(world.events.events) == 3)
        await asyncio.wait({running}, timeout=0.05)
        world.events.disk.set()
        with pytest.raises(Broken):
            await running


# -- people -----------------------------------------------------------------------------------------------------------


async def test_an_approval_is_asked_for_and_answered() -> None:
    """B55: a gated tool in a worker would hang, or run without having asked."""
    request = approval(tool_call_id="call_1", params={"command": "ls -l"}, path="/home/me/space")
    replies: list[dict[str, Any]] = []

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.send_of_run("approval_request", **request)
        replies.append(await talk.receive("approval_reply"))
        await talk.terminal()
        await talk.gone()

    world = World()
    async with scripted_worker(script) as url:
        await run(url, world)
    assert world.events.asked == [
        PermissionAsk("call_1", "bash", "execute", "Run ls?", "/home/me/space", "ls -l", {"command": "ls -l"})
    ]
    assert (replies[0]["id"], replies[0]["approved"], replies[0]["verdict"]) == (request["id"], True, "granted")


@pytest.mark.parametrize("verdict", ["denied", "withdrawn", "expired"])
async def test_anything_but_granted_is_no(verdict: Any) -> None:
    """I10: a question that ran out of time would let the tool run."""
    replies: list[dict[str, Any]] = []

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.send_of_run("approval_request", **approval())
        replies.append(await talk.receive("approval_reply"))
        await talk.terminal()
        await talk.gone()

    world = World()
    world.events.verdict = verdict
    async with scripted_worker(script) as url:
        await run(url, world)
    assert (replies[0]["approved"], replies[0]["verdict"]) == (False, verdict)


async def test_an_approval_that_cannot_be_asked_for_is_no() -> None:
    """I10: an error of ours would leave the worker waiting, or let the tool run."""
    replies: list[dict[str, Any]] = []

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.send_of_run("approval_request", **approval())
        replies.append(await talk.receive("approval_reply"))
        await talk.terminal()
        await talk.gone()

    async def fail(ask: PermissionAsk) -> Any:
        raise RuntimeError("nobody is there")

    world = World()
    world.events.approve = fail  # type: ignore[method-assign]
    async with scripted_worker(script) as url:
        await run(url, world)
    assert (replies[0]["approved"], replies[0]["verdict"]) == (False, "denied")


async def test_a_withdrawn_approval_is_taken_back() -> None:
    """B25: people would be asked about a tool that nobody wants to run any more."""
    world = World()
    world.events.people.clear()

    async def script(talk: Talk) -> None:
        await talk.start()
        request = approval()
        await talk.send_of_run("approval_request", **request)
        await world.events.until(lambda: bool(world.events.asked))
        await talk.send_of_run("approval_withdrawn", id=request["id"])
        await talk.send_of_run("approval_withdrawn", id="sa-unknown")  # a race, and no error
        await world.events.until(lambda: bool(world.events.withdrawn))
        await talk.terminal()
        await talk.gone()
        assert [frame["kind"] for frame in talk.heard] == ["hello", "run"]

    async with scripted_worker(script) as url:
        assert (await run(url, world)).status == "completed"


async def test_a_run_that_ends_takes_its_questions_with_it() -> None:
    """I11: a person would be asked by a run that is over."""
    world = World()
    world.events.people.clear()

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.send_of_run("approval_request", **approval())
        await world.events.until(lambda: bool(world.events.asked))
        await talk.terminal("error", error="enough")
        await talk.gone()

    async with scripted_worker(script) as url:
        await run(url, world)
    assert world.events.withdrawn == 1


async def test_a_steering_message_goes_out_at_once_and_its_taking_comes_back() -> None:
    """B54: what people say into a run would wait for its end, or be told as taken when it was not."""
    world = World()

    async def script(talk: Talk) -> None:
        await talk.start()
        id = world.steer.say("the other way")
        frame = await talk.receive("message")
        assert (frame["id"], frame["text"], frame["run_id"]) == (id, "the other way", world.spec.run_id)
        await talk.event({"type": "steer_taken", "run_id": id})
        await world.events.until(lambda: world.events.events == [SteerTaken(id)])
        await talk.terminal()
        await talk.gone()

    async with scripted_worker(script) as url:
        assert (await run(url, world)).status == "completed"


async def test_what_was_said_before_the_run_goes_with_it() -> None:
    """B54: sent behind the run it could come after the first step, which was to take it."""
    world = World()
    id = world.steer.say("before it begins")

    async def script(talk: Talk) -> None:
        [message] = (await talk.start())["steering"]
        assert (message["run_id"], message["text"]) == (id, "before it begins")
        await talk.event({"type": "steer_taken", "run_id": id})
        await talk.terminal()
        await talk.gone()

    async with scripted_worker(script) as url:
        assert (await run(url, world)).status == "completed"
    assert world.events.events == [SteerTaken(id)]


async def test_a_steering_message_that_missed_its_run_is_nobodys_error() -> None:
    """The owner of the run lets it run next; the link must not fail a run for it."""
    world = World()

    async def script(talk: Talk) -> None:
        await talk.start()
        world.steer.say("too late")
        frame = await talk.receive("message")
        await talk.send_of_run("undelivered", id=frame["id"])
        await talk.terminal()
        await talk.gone()

    async with scripted_worker(script) as url:
        assert (await run(url, world)).status == "completed"
    assert world.events.events == []


async def test_a_steering_message_that_was_taken_back_is_withdrawn() -> None:
    """I6: a prompt that was cancelled before anyone read it would still be read."""
    world = World()

    async def script(talk: Talk) -> None:
        await talk.start()
        id = world.steer.say("never mind")
        await talk.receive("message")
        world.steer.withdraw(id)
        withdrawn = await talk.receive("message_withdrawn")
        assert (withdrawn["id"], withdrawn["run_id"]) == (id, world.spec.run_id)
        await talk.terminal()
        await talk.gone()

    async with scripted_worker(script) as url:
        assert (await run(url, world)).status == "completed"


async def test_a_request_about_agents_is_answered_by_the_owner() -> None:
    """B72: an agent in a worker could start no agents."""
    world = World()
    world.events.reply = OwnerReply((AgentStatus("ses_1", "scout", "running"),))
    replies: list[dict[str, Any]] = []

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.send_of_run("agents_request", id="a1", request={"action": "start", "prompt": "look around"})
        replies.append(await talk.receive("agents_reply"))
        await talk.terminal()
        await talk.gone()

    async with scripted_worker(script) as url:
        await run(url, world)
    assert world.events.requests == [StartAgent("look around")]
    assert (replies[0]["id"], replies[0]["reply"]["agents"][0]["id"]) == ("a1", "ses_1")


# -- stopping ---------------------------------------------------------------------------------------------------------


async def test_the_cancel_token_is_told_to_the_worker() -> None:
    """B52: a cancelled run would go on in its worker."""
    world = World()

    async def script(talk: Talk) -> None:
        await talk.start()
        world.cancel.set()
        await talk.receive("cancel")
        await talk.terminal("cancelled")
        await talk.gone()

    async with scripted_worker(script) as url:
        assert await run(url, world) == RunOutcome("canceled")


async def test_cancelling_the_coroutine_is_told_too_and_goes_on_to_the_caller() -> None:
    """B52: the owner cancels its task; swallowed, it would take the run for completed."""
    world = World()
    started = asyncio.Event()
    ended: list[str] = []

    async def script(talk: Talk) -> None:
        await talk.start()
        started.set()
        ended.append((await talk.receive("cancel"))["kind"])
        await talk.message("m1", "last words")
        await talk.terminal("cancelled")
        await talk.gone()

    async with scripted_worker(script) as url:
        running = asyncio.create_task(run(url, world))
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert (ended, world.events.text) == (["cancel"], "last words")


async def test_a_worker_that_does_not_stop_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """B58: a cancel would take as long as the worker likes; nobody would be told to end its process."""
    monkeypatch.setattr(limits, "STOP_ASK_SECONDS", 0.1)
    world = World()
    lost: list[bool] = []

    async def script(talk: Talk) -> None:
        await talk.start()
        world.cancel.set()
        await talk.gone()

    async with scripted_worker(script) as url:
        executor = RemoteExecutor(url, on_lost=lambda: lost.append(True))
        outcome = await executor.run(world.spec, world.events, world.steer, world.cancel)
    assert (outcome.status, lost) == ("canceled", [True])


async def test_a_second_cancel_does_not_wait() -> None:
    """B35: a server that leaves would wait for every worker's patience."""
    world = World()
    started = asyncio.Event()
    cancelled = asyncio.Event()

    async def script(talk: Talk) -> None:
        await talk.start()
        started.set()
        await talk.receive("cancel")
        cancelled.set()
        await talk.gone()

    async with scripted_worker(script) as url:
        running = asyncio.create_task(run(url, world))
        await started.wait()
        running.cancel()
        await cancelled.wait()
        running.cancel()
        async with asyncio.timeout(limits.STOP_ASK_SECONDS / 2):
            with pytest.raises(asyncio.CancelledError):
                await running


async def test_a_run_that_is_cancelled_before_it_begins_reaches_no_worker() -> None:
    """I5: a run that was cancelled in the queue would still cost a model call."""
    world = World()
    world.cancel.set()
    reached: list[bool] = []

    async def serve(request: web.Request) -> web.Response:
        reached.append(True)
        await asyncio.Event().wait()
        return web.Response()

    async with served(serve) as url:
        assert await run(url, world) == RunOutcome("canceled")
