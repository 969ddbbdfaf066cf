"""Questions of a run to people: asked of everyone, answered once, and gone with the run."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cast import Cast, Stage
from engine_world import BY, EngineWorld, Playing

from windlass import limits
from windlass.config import Config, PermissionsConfig
from windlass.engine.workspace import Workspace
from windlass.errors import Invalid
from windlass.journal import view
from windlass.wire.delegation import AskQuestions, OwnerReply, WaitForAgents
from windlass.wire.execution import Events, PermissionAsk, RunOutcome
from windlass.wire.http import Prompt
from windlass.wire.permissions import By
from windlass.wire.questions import Question, QuestionBatch, QuestionResponse

ASK = AskQuestions("call", (Question("q1", "yes_no", "Go on?"), Question("q2", "free_text", "Called what?")))
ANSWERS = (QuestionResponse("q1", yes=True), QuestionResponse("q2", fill_in_text="Anchor"))
ANN = By("ann", "c1")


class Asking:
    """An executor that asks once and keeps what it was told."""

    def __init__(self, request: AskQuestions = ASK) -> None:
        self.replies: list[OwnerReply] = []
        self._request = request

    def __call__(self, *_: object) -> Playing:
        return Playing(self._play)

    async def _play(self, events: Events) -> RunOutcome:
        self.replies.append(await events.delegate(self._request))
        return RunOutcome("completed")


async def pending(workspace: Workspace, count: int = 1) -> list[QuestionBatch]:
    """What everyone is shown, when there is as much of it."""
    async with asyncio.timeout(10):
        while len(workspace.log.questions) < count:
            await workspace.log.changed(asyncio.get_running_loop().create_future())
    return [msgspec.json.decode(raw, type=QuestionBatch) for raw in workspace.log.questions.values()]


async def told(world: EngineWorld, workspace: Workspace, kind: str) -> list[dict[str, Any]]:
    return [msgspec.json.decode(row.body) for row in await world.facts(workspace, kind)]


async def states(world: EngineWorld, workspace: Workspace) -> list[str]:
    return [body["state"] for body in await told(world, workspace, "run")]


async def test_an_answer_reaches_the_asker_and_everyone_sees_it(tmp_path: Path) -> None:
    """B28 B15 B23: the whole way of a question; else the agent is told something else than what people said."""
    asking = Asking()
    async with EngineWorld(tmp_path, asking) as world:
        workspace = await world.open()
        session_id, run_id = await world.prompted(workspace)
        (batch,) = await pending(workspace)
        assert (batch.session_id, batch.root_session_id, batch.run_id) == (session_id, session_id, run_id)
        assert (batch.tool_call_id, batch.questions) == ("call", ASK.questions)
        assert await workspace.questions.answer(batch.id, ANSWERS[::-1], ANN)
        await world.idle(workspace)
        assert asking.replies == [OwnerReply(outcome="answered", answers=ANSWERS)]
        assert await states(world, workspace) == ["accepted", "running", "waiting", "running", "completed"]
        (end,) = await told(world, workspace, "question_batch_notification")
        assert (end["outcome"], end["by"], len(end["responses"])) == ("answered", {"name": "ann", "client_id": "c1"}, 2)
        assert not workspace.log.questions


async def test_the_first_end_counts_and_everyone_later_is_told_so(tmp_path: Path) -> None:
    """I9 A17: two people would both believe that they decided."""
    async with EngineWorld(tmp_path, Asking()) as world:
        workspace = await world.open()
        await world.prompted(workspace)
        (batch,) = await pending(workspace)
        desk = workspace.questions
        results = await asyncio.gather(
            desk.answer(batch.id, ANSWERS, ANN), desk.answer(batch.id, ANSWERS, BY), desk.cancel(batch.id, BY)
        )
        await world.idle(workspace)
        assert results == [True, False, False]
        assert await desk.answer("ask_unknown", (), BY) is False and await desk.cancel("", BY) is False


async def test_an_answer_that_does_not_fit_leaves_the_question_open(tmp_path: Path) -> None:
    """B28: a typing error of a client would let the run go on with nothing."""
    asking = Asking()
    async with EngineWorld(tmp_path, asking) as world:
        workspace = await world.open()
        await world.prompted(workspace)
        (batch,) = await pending(workspace)
        with pytest.raises(Invalid, match="q2 not answered"):
            await workspace.questions.answer(batch.id, ANSWERS[:1], ANN)
        assert (asking.replies, list(workspace.questions.questions.pending)) == ([], [batch.id])
        assert await workspace.questions.answer(batch.id, ANSWERS, ANN)
        await world.idle(workspace)


async def test_a_person_may_decline_every_batch_at_once(tmp_path: Path) -> None:
    """B28: the agents are told that it was a person, and which."""
    asking = Asking()
    async with EngineWorld(tmp_path, asking) as world:
        workspace = await world.open()
        for _ in range(2):
            await world.prompted(workspace)
        await pending(workspace, 2)
        assert await workspace.questions.cancel("", ANN)
        await world.idle(workspace)
        assert asking.replies == [OwnerReply(outcome="canceled")] * 2


async def test_no_prompt_and_no_steering_answers_a_question(tmp_path: Path) -> None:
    """B28: what a person types into the conversation would be taken for a yes to something else."""
    asking = Asking()
    async with EngineWorld(tmp_path, asking) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        (batch,) = await pending(workspace)
        await workspace.prompt(Prompt(session_id, "yes", on_busy="steer"), ANN)
        await workspace.prompt(Prompt(session_id, "yes"), ANN)
        assert (asking.replies, list(workspace.log.questions)) == ([], [batch.id])
        await workspace.cancel(session_id, BY)
        await world.idle(workspace)


async def test_a_cancel_of_the_run_withdraws_its_question(tmp_path: Path) -> None:
    """B25 I11: people would go on looking at a question whose answer does nothing."""
    async with EngineWorld(tmp_path, Asking()) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        (batch,) = await pending(workspace)
        await workspace.cancel(session_id, ANN)
        assert not workspace.log.questions
        assert await workspace.questions.answer(batch.id, ANSWERS, BY) is False
        await world.idle(workspace)
        (end,) = await told(world, workspace, "question_batch_notification")
        assert (end["outcome"], end["by"]["name"]) == ("withdrawn", "ann")


async def test_a_question_whose_asker_is_gone_is_withdrawn_while_its_run_goes_on(tmp_path: Path) -> None:
    """B25 I11: a worker takes back what its tool no longer needs; people would answer it, and nothing would happen."""

    async def play(events: Events) -> RunOutcome:
        asking = asyncio.ensure_future(events.delegate(ASK))
        await asyncio.sleep(0)  # its first step, in which it asks
        assert workspace.questions.has_pending
        asking.cancel()
        await asyncio.wait([asking])
        assert not workspace.questions.has_pending
        return RunOutcome("completed")

    async with EngineWorld(tmp_path, lambda *_: Playing(play)) as world:
        workspace = await world.open()
        await world.ran(workspace)
        (end,) = await told(world, workspace, "question_batch_notification")
        assert (end["outcome"], (await states(world, workspace))[2:]) == (
            "withdrawn",
            ["waiting", "running", "completed"],
        )


async def test_a_run_waits_until_all_it_asked_is_answered(tmp_path: Path) -> None:
    """B15: with a permission and a question pending, an answer to one would make it look as if it went on."""
    permission = PermissionAsk("call", "bash", "execute", "Run make", "/", "make")

    async def play(events: Events) -> RunOutcome:
        await asyncio.gather(events.approve(permission), events.delegate(ASK))
        return RunOutcome("completed")

    async with EngineWorld(tmp_path, lambda *_: Playing(play)) as world:
        workspace = await world.open()
        for first in ("question", "permission"):
            _, run_id = await world.prompted(workspace)
            (batch,) = await pending(workspace)
            (permission_id,) = workspace.permissions.pending
            if first == "question":
                await workspace.questions.answer(batch.id, ANSWERS, ANN)
            else:
                await workspace.desk.resolve(permission_id, "deny", ANN)
            assert (await workspace.run(run_id)).state == "waiting"
            await workspace.questions.cancel("", ANN)
            await workspace.desk.resolve(permission_id, "deny", ANN)
            await world.idle(workspace)
        once = ["accepted", "running", "waiting", "running", "completed"]
        assert await states(world, workspace) == once * 2


async def test_a_question_that_nobody_is_there_for_expires(tmp_path: Path) -> None:
    """A29: a run would wait for ever for people who left; and the agent is told that it was nobody, not a no."""
    asking = Asking()
    config = Config(model="x/y", permissions=PermissionsConfig(unattended="deny"))
    async with EngineWorld(tmp_path, asking, config) as world:
        workspace = await world.open()
        await world.prompted(workspace)
        await pending(workspace)
        assert asking.replies == []
        world.registry.retire("client")
        await world.idle(workspace)
        assert asking.replies == [OwnerReply(outcome="expired")]


async def test_the_question_of_an_agent_names_the_session_people_look_at(tmp_path: Path) -> None:
    """B28: a client that shows one conversation would not know that its agent's agent asks."""

    async def root(stage: Stage) -> None:
        await stage.start("child")
        await stage.events.delegate(WaitForAgents())

    async def child(stage: Stage) -> None:
        await stage.events.delegate(ASK)

    async with EngineWorld(tmp_path, Cast(root=root, child=child)) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        (batch,) = await pending(workspace)
        assert (batch.root_session_id, batch.session_id != session_id) == (session_id, True)
        await workspace.cancel(session_id, BY)
        assert not workspace.log.questions
        await world.idle(workspace)


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (AskQuestions("call", ()), "ask 1 to"),
        (AskQuestions("call", (Question("q1", "single_choice", "Which?"),)), "give 2 to"),
        (AskQuestions("call", (Question("q1", "yes_no", "\ud800"),)), "Unicode"),
    ],
)
async def test_what_cannot_be_asked_is_refused_and_the_run_goes_on(
    tmp_path: Path, request_: AskQuestions, why: str
) -> None:
    """B28: a model's mistake would end its run, or leave it waiting for an answer nobody can give."""
    asking = Asking(request_)
    async with EngineWorld(tmp_path, asking) as world:
        workspace = await world.open()
        _, run_id = await world.ran(workspace)
        (reply,) = asking.replies
        assert why in reply.error and not reply.outcome
        assert ((await workspace.run(run_id)).state, workspace.questions.has_pending) == ("completed", False)


async def test_too_many_batches_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent in a loop would bury the question that matters."""
    monkeypatch.setattr(limits, "PENDING_QUESTIONS", 0)
    asking = Asking()
    async with EngineWorld(tmp_path, asking) as world:
        await world.ran(await world.open())
        assert "Too many questions" in asking.replies[0].error


async def test_a_run_with_two_batches_goes_on_when_the_second_has_ended(tmp_path: Path) -> None:
    """B15: declined all at once, it would be told as going on while a batch of its own still waits."""

    async def play(events: Events) -> RunOutcome:
        await asyncio.gather(events.delegate(ASK), events.delegate(ASK))
        return RunOutcome("completed")

    async with EngineWorld(tmp_path, lambda *_: Playing(play)) as world:
        workspace = await world.open()
        await world.prompted(workspace)
        await pending(workspace, 2)
        await workspace.questions.cancel("", ANN)
        await world.idle(workspace)
        rows: Any = await world.journal.read(view.facts, workspace.id, 0, workspace.log.published)
        ends = [row.kind for row in rows if row.kind == "question_batch_notification" or b'"running"' in row.body]
        assert ends[-3:] == ["question_batch_notification", "question_batch_notification", "run"]
