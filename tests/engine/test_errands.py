"""What people ask of a session and wait for: each is a run in its lane, and whoever asked may leave."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from cast import Cast, Stage, forever
from engine_world import BY, EngineWorld

from windlass import limits
from windlass.engine import reading
from windlass.engine.workspace import Workspace
from windlass.errors import Conflict, NotFound, TooMany, Unavailable
from windlass.guardian.handle import Guardian
from windlass.ids import new_id
from windlass.testing.processes import marked
from windlass.testing.server_process import until
from windlass.tools.environment import child_environment
from windlass.tools.shell import ShellExecutor
from windlass.wire.execution import Executor, RunSpec
from windlass.wire.http import Prompt
from windlass.wire.messages import Message, ShellCommand
from windlass.wire.run_events import Delta, MessageEnd, MessageStart

SUMMARIZE = "Sum up the conversation so far."


async def answer(stage: Stage) -> None:
    await stage.say("an answer")


async def sum_up(stage: Stage) -> None:
    assert stage.spec.purpose == "summarize" and not stage.spec.wants_title
    id = f"summary_{stage.spec.run_id}"
    stage.events.emit(MessageStart(id, "assistant", is_summary=True))
    stage.events.emit(Delta(id, 0, "text", "In short.", "text"))
    await stage.events.durable(MessageEnd(id, "end_turn"))


async def talked(world: EngineWorld, workspace: Workspace) -> str:
    """A session with a conversation in it."""
    session_id, _ = await world.prompted(workspace, "root")
    await world.idle(workspace)
    return session_id


# -- summaries ---------------------------------------------------------------------------------------------------------


async def test_a_summary_is_a_run_whose_end_is_waited_for(tmp_path: Path) -> None:
    """B16: whoever asked would be told too early, and prompt into a conversation that is still too long."""
    async with EngineWorld(tmp_path, Cast(**{"root": answer, SUMMARIZE: sum_up})) as world:
        workspace = await world.open()
        session_id = await talked(world, workspace)
        done = await workspace.errands.summarize(session_id, BY)
        assert (done.summary, done.message_id) == ("In short.", workspace.sessions.get(session_id).summary_message_id)
        assert (await workspace.run(done.run_id)).state == "completed"
        assert [message.text for message in await workspace.conversation(session_id)] == ["In short."]


async def test_a_summary_waits_for_its_turn(tmp_path: Path) -> None:
    """I2 I4: two models would write into one conversation."""
    go = asyncio.Event()

    async def slow(stage: Stage) -> None:
        await go.wait()
        await stage.say("late")

    async with EngineWorld(tmp_path, Cast(**{"root": slow, SUMMARIZE: sum_up})) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        asked = asyncio.create_task(workspace.errands.summarize(session_id, BY))
        await asyncio.sleep(0)  # its first step: it is accepted
        assert len(workspace._lanes[session_id].entries) == 2
        go.set()
        assert (await asked).summary == "In short."
        assert [state for _, state in await world.ends(workspace)] == ["completed", "completed"]


async def test_a_summary_that_is_cancelled_is_told_so(tmp_path: Path) -> None:
    """B16: a cancel during compaction ends the work, and whoever waits for it hears of it."""
    cast = Cast(**{"root": answer, SUMMARIZE: forever})
    async with EngineWorld(tmp_path, cast) as world:
        workspace = await world.open()
        session_id = await talked(world, workspace)
        asked = asyncio.create_task(workspace.errands.summarize(session_id, BY))
        await cast.on_stage(SUMMARIZE)
        await workspace.cancel(session_id, BY)
        with pytest.raises(Conflict, match="cancelled"):
            await asked
        assert workspace.sessions.get(session_id).summary_message_id == ""


async def test_a_summary_that_fails_says_why(tmp_path: Path) -> None:
    """People could not do anything about it."""

    async def broken(stage: Stage) -> None:
        raise RuntimeError("no money left")

    async with EngineWorld(tmp_path, Cast(**{"root": answer, SUMMARIZE: broken})) as world:
        workspace = await world.open()
        session_id = await talked(world, workspace)
        with pytest.raises(Conflict, match="no money left"):
            await workspace.errands.summarize(session_id, BY)


async def test_who_leaves_does_not_stop_a_summary(tmp_path: Path) -> None:
    """B02: a phone that loses its connection would end the work of a minute."""
    go = asyncio.Event()

    async def slow(stage: Stage) -> None:
        await go.wait()
        await sum_up(stage)

    cast = Cast(**{"root": answer, SUMMARIZE: slow})
    async with EngineWorld(tmp_path, cast) as world:
        workspace = await world.open()
        session_id = await talked(world, workspace)
        asked = asyncio.create_task(workspace.errands.summarize(session_id, BY))
        await cast.on_stage(SUMMARIZE)
        asked.cancel()
        await asyncio.wait({asked})
        go.set()
        await world.idle(workspace)
        assert workspace.sessions.get(session_id).summary_message_id
        assert workspace.errands._waiters == {}


async def test_an_empty_session_has_nothing_to_sum_up(tmp_path: Path) -> None:
    """A model would be paid for summing up nothing."""
    async with EngineWorld(tmp_path, Cast()) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        with pytest.raises(Conflict, match="nothing to sum up"):
            await workspace.errands.summarize(session.id, BY)
        with pytest.raises(NotFound):
            await workspace.errands.summarize("ses_unknown", BY)
        assert await world.facts(workspace, "run") == []


async def test_what_waits_when_the_server_leaves_is_told_so_and_done_after_the_restart(tmp_path: Path) -> None:
    """I1 B13: it would be forgotten; or whoever asked would hang until the connection breaks."""
    cast = Cast(**{"root": forever, SUMMARIZE: sum_up})
    async with EngineWorld(tmp_path, cast) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        await cast.on_stage("root")
        asked = asyncio.create_task(workspace.errands.summarize(session_id, BY))
        await asyncio.sleep(0)  # its first step: it is accepted
        assert len(workspace._lanes[session_id].entries) == 2
        await world.registry.drain(0.0)
        with pytest.raises(Unavailable):
            await asked
    async with EngineWorld(tmp_path, Cast(**{SUMMARIZE: sum_up})) as world:
        workspace = await world.open()
        await world.idle(workspace)
        assert workspace.sessions.get(session_id).summary_message_id
        assert [state for _, state in await world.ends(workspace)] == ["interrupted", "completed"]


async def test_an_errand_is_refused_by_a_full_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop of them would fill the memory."""
    monkeypatch.setattr(limits, "QUEUE_PER_SESSION", 1)
    async with EngineWorld(tmp_path, Cast(root=forever)) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        with pytest.raises(TooMany):
            await workspace.errands.shell(session_id, "true", 0, BY)


# -- commands ----------------------------------------------------------------------------------------------------------


class Sleepers:
    """Processes that can be told from all others by what they were started with."""

    def __init__(self) -> None:
        self._mark = f"30.{secrets.randbelow(10**15):015d}"
        self.command = f"sleep {self._mark}"

    async def found(self) -> list[str]:
        """Their command lines, but for the shells that start them."""
        lines = (await asyncio.to_thread(marked, self._mark)).values()
        return [line for line in lines if line.startswith("sleep ")]

    async def appear(self) -> None:
        async def is_there() -> bool:
            return bool(await self.found())

        await until(is_there, "the command runs")


class Shelled:
    """Agents are played by a cast; commands run through a real guardian, as in a server."""

    def __init__(self, guardian: Guardian, cast: Cast, seconds: float = 20.0) -> None:
        self._guardian = guardian
        self._cast = cast
        self._seconds = seconds

    def __call__(self, workspace: Workspace, config: object, spec: RunSpec) -> Executor:
        if spec.purpose != "shell":
            return self._cast
        environment = child_environment({"PATH": "/usr/bin:/bin", "OPENAI_API_KEY": "canary"})
        return ShellExecutor(self._guardian, environment, lambda: new_id("msg"), self._seconds)


@pytest.fixture
async def guardian() -> AsyncIterator[Guardian]:
    guardian = await Guardian.start()
    yield guardian
    await guardian.aclose()


async def test_a_command_runs_in_the_workspace_and_is_part_of_the_conversation(
    tmp_path: Path, guardian: Guardian
) -> None:
    """The model would not know what a person just did; or it would be done elsewhere."""
    async with EngineWorld(tmp_path, Shelled(guardian, Cast())) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        done = await workspace.errands.shell(session.id, "pwd; echo oops >&2; exit 3", 0, BY)
        assert (done.output, done.exit_code) == (f"{world.path}\noops\n", 3)
        user, assistant = await workspace.conversation(session.id)
        assert (user.role, user.text) == ("user", "! pwd; echo oops >&2; exit 3")
        (part, _) = assistant.parts
        assert isinstance(part, ShellCommand) and assistant.finish is not None
        assert (part.data.command, part.data.exit_code) == ("pwd; echo oops >&2; exit 3", 3)
        assert [state for _, state in await world.ends(workspace)] == ["completed"]
        assert workspace.sessions.get(session.id).title == "", "a command is no name for a conversation"


async def test_a_command_knows_how_wide_its_terminal_is_and_no_secret(tmp_path: Path, guardian: Guardian) -> None:
    """A30 A39: what it prints is sent to a model; and tables would be cut for another screen."""
    async with EngineWorld(tmp_path, Shelled(guardian, Cast())) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        assert (await workspace.errands.shell(session.id, "echo $COLUMNS", 132, BY)).output == "132\n"
        assert "canary" not in (await workspace.errands.shell(session.id, "env", 0, BY)).output


async def test_a_command_that_begins_with_a_dash_is_no_option_of_the_shell(tmp_path: Path, guardian: Guardian) -> None:
    """A26: `-i` would start another shell than meant, and `--version` print that of bash."""
    async with EngineWorld(tmp_path, Shelled(guardian, Cast())) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        done = await workspace.errands.shell(session.id, "--version", 0, BY)
        assert (done.exit_code, "--version" in done.output, "GNU" in done.output) == (127, True, False)


async def test_what_a_command_prints_is_bounded_and_the_rest_said(tmp_path: Path, guardian: Guardian) -> None:
    """A38: `yes` would fill the memory, the disk and the model's window."""
    async with EngineWorld(tmp_path, Shelled(guardian, Cast())) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        done = await workspace.errands.shell(session.id, "seq 1 200000", 0, BY)
        assert len(done.output) < limits.SHELL_OUTPUT_BYTES + 100 and "bytes left out" in done.output
        assert done.output.startswith("1\n2\n") and done.output.endswith("200000\n")


async def test_a_command_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path, guardian: Guardian) -> None:
    """B18: it would hold up its session for ever."""
    sleepers = Sleepers()
    async with EngineWorld(tmp_path, Shelled(guardian, Cast(), seconds=0.3)) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        done = await workspace.errands.shell(session.id, f"echo begun; {sleepers.command} & wait", 0, BY)
        assert done.output.startswith("begun\n") and "time limit of 0.3 s" in done.output and done.exit_code < 0
        assert await sleepers.found() == []


async def test_a_cancel_ends_a_command_and_all_it_started(tmp_path: Path, guardian: Guardian) -> None:
    """B18: what people stopped would go on in the background."""
    sleepers = Sleepers()
    async with EngineWorld(tmp_path, Shelled(guardian, Cast())) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        asked = asyncio.create_task(workspace.errands.shell(session.id, f"setsid {sleepers.command} & wait", 0, BY))
        await sleepers.appear()
        await workspace.cancel(session.id, BY)
        with pytest.raises(Conflict, match="cancelled"):
            await asked
        assert await sleepers.found() == []
        bodies = await reading.messages(workspace, session.id)
        finish = msgspec.json.decode(bodies[-1], type=Message).finish
        assert len(bodies) == 2 and finish is not None and finish.reason == "canceled"


async def test_a_command_that_waits_when_the_server_leaves_is_not_run_later(tmp_path: Path, guardian: Guardian) -> None:
    """Nobody is there any more to see what it does, and it may no longer be what they want."""
    cast = Cast(root=forever)
    async with EngineWorld(tmp_path, Shelled(guardian, cast)) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        await cast.on_stage("root")
        asked = asyncio.create_task(workspace.errands.shell(session_id, "touch ran", 0, BY))
        await asyncio.sleep(0)  # its first step: it is accepted
        assert len(workspace._lanes[session_id].entries) == 2
        await world.registry.drain(0.0)
        with pytest.raises(Unavailable):
            await asked
    async with EngineWorld(tmp_path, Shelled(guardian, cast)) as world:
        workspace = await world.open()
        await world.idle(workspace)
        assert await world.ends(workspace) == [("root", "interrupted"), ("! touch ran", "canceled")]
        assert not (Path(world.path) / "ran").exists()


# -- letting go --------------------------------------------------------------------------------------------------------


async def test_what_is_kept_for_a_session_is_let_go_with_it(tmp_path: Path) -> None:
    """I19: background jobs of a session that is gone would run until the server ends."""
    let_go: list[str] = []
    async with EngineWorld(tmp_path, Cast(root=answer), let_go=let_go.append) as world:
        workspace = await world.open()
        first, second = await talked(world, workspace), await talked(world, workspace)
        await workspace.delete_session(first, BY)
        assert let_go == [first]
        await workspace.prompt(Prompt(second, "root"), BY)
        world.registry.retire("client")
        await world.idle(workspace)
        assert workspace.closed and let_go == [first, second]
