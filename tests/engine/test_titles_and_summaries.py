"""What a run brings its session: a name while nobody gave it one, and a summary that stands for what was before."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cast import Cast, Stage
from engine_world import BY, EngineWorld

from windlass import limits
from windlass.engine import reading
from windlass.wire.delegation import WaitForAgents
from windlass.wire.http import Prompt
from windlass.wire.messages import Message
from windlass.wire.run_events import Delta, MessageEnd, MessageStart, TitleSuggested, UsageGained
from windlass.wire.runs import Usage
from windlass.wire.sessions import Session


async def titled(tmp_path: Path, suggestion: str, name: str = "") -> str:
    """What a session is called after a run suggested this; `name` is what a person had called it."""

    async def root(stage: Stage) -> None:
        assert stage.spec.wants_title == (not name)
        await stage.events.durable(TitleSuggested(suggestion))

    async with EngineWorld(tmp_path, Cast(root=root)) as world:
        workspace = await world.open()
        session = await workspace.create_session(name, BY)
        await workspace.prompt(Prompt(session.id, "root"), BY)
        await world.idle(workspace)
        return (await reading.session(workspace, session.id)).title


async def test_a_session_without_a_name_takes_the_one_that_is_suggested(tmp_path: Path) -> None:
    """B16: people would look for their work among sessions that are called nothing."""
    assert await titled(tmp_path, "  Mending the sails \n") == "Mending the sails"


async def test_a_name_that_a_person_gave_stays(tmp_path: Path) -> None:
    """B16: they would not find again what they named."""
    assert await titled(tmp_path, "Mending the sails", "Mine") == "Mine"


async def test_a_name_that_a_person_gives_meanwhile_wins(tmp_path: Path) -> None:
    """B16: the same, in the moment in which a model thinks about it."""
    named = asyncio.Event()

    async def root(stage: Stage) -> None:
        assert stage.spec.wants_title
        await named.wait()
        await stage.events.durable(TitleSuggested("Too late"))

    async with EngineWorld(tmp_path, Cast(root=root)) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        await workspace.rename_session(session_id, "Mine", BY)
        named.set()
        await world.idle(workspace)
        assert workspace.sessions.get(session_id).title == "Mine"


@pytest.mark.parametrize("suggestion", ["", "\r\n \t", "\x1b\x00\u202e"])
async def test_a_suggestion_that_says_nothing_is_none(tmp_path: Path, suggestion: str) -> None:
    """The first line of the prompt is better than a blank."""
    assert await titled(tmp_path, suggestion) == "root"


async def test_a_suggestion_is_one_short_line_of_what_can_be_shown(tmp_path: Path) -> None:
    """A41: a model could write over people's terminals, or fill them."""
    title = await titled(tmp_path, "\x1b[31mred\u202e \ud800" + "long " * 1000)
    assert title.startswith("[31mred ?long long") and len(title) <= limits.TITLE_CHARACTERS


async def test_an_agent_is_asked_for_no_title(tmp_path: Path) -> None:
    """Its session was named by who started it, and a model call would be wasted."""
    wants: dict[str, bool] = {}

    async def root(stage: Stage) -> None:
        await stage.start("child")
        await stage.events.delegate(WaitForAgents())

    async def child(stage: Stage) -> None:
        wants["child"] = stage.spec.wants_title
        await stage.events.durable(TitleSuggested("Other"))

    async with EngineWorld(tmp_path, Cast(root=root, child=child)) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        await world.idle(workspace)
        assert [session.title for session in workspace.sessions.children(session_id)] == ["general: child"]
    assert wants == {"child": False}


# -- summaries --------------------------------------------------------------------------------------------------------


async def sum_up(stage: Stage, id: str = "summary", reason: Any = "end_turn") -> None:
    stage.events.emit(MessageStart(id, "assistant", is_summary=True))
    stage.events.emit(Delta(id, 0, "text", "In short: ropes.", "text"))
    await stage.events.durable(MessageEnd(id, reason))


async def test_from_a_summary_on_a_run_is_sent_it_and_what_came_after(tmp_path: Path) -> None:
    """B16 B17: each request would carry the whole conversation again, and soon be too long; or people would lose it."""
    sent: list[list[tuple[str, str]]] = []

    async def root(stage: Stage) -> None:
        await stage.say("a long answer")

    async def again(stage: Stage) -> None:
        await sum_up(stage)
        await stage.say("and an answer")

    async def last(stage: Stage) -> None:
        sent.append([(message.role, message.text) for message in stage.spec.messages])

    async with EngineWorld(tmp_path, Cast(root=root, again=again, last=last)) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        for prompt in ("again", "last"):
            await workspace.prompt(Prompt(session_id, prompt), BY)
        await world.idle(workspace)
        everything = await reading.messages(workspace, session_id)
        session = workspace.sessions.get(session_id)
    assert sent == [[("assistant", "In short: ropes."), ("assistant", "and an answer"), ("user", "last")]]
    assert len(everything) == session.message_count == 7
    marked = [message for body in everything if (message := msgspec.json.decode(body, type=Message)).is_summary_message]
    assert [message.id for message in marked] == ["summary"] == [session.summary_message_id]


async def test_the_summary_and_who_names_it_are_one_commit(tmp_path: Path) -> None:
    """B16: a crash in between would leave a summary that is sent together with all that it sums up."""

    async def root(stage: Stage) -> None:
        await sum_up(stage)

    async with EngineWorld(tmp_path, Cast(root=root)) as world:
        workspace = await world.open()
        await world.prompted(workspace)
        await world.idle(workspace)
        named = [msgspec.json.decode(row.body, type=Session) for row in await world.facts(workspace, "session")]
        facts = await world.facts(workspace, "session")
        first = next(row.seq for row, body in zip(facts, named, strict=True) if body.summary_message_id)
        ends = [row.seq for row in await world.facts(workspace, "message") if b'"finish"' in row.body]
    assert first == ends[0] + 1


@pytest.mark.parametrize("reason", ["max_tokens", "canceled", "error"])
async def test_a_summary_that_did_not_end_well_stands_for_nothing(tmp_path: Path, reason: Any) -> None:
    """B16: half a summary in place of everything would make the model forget what it was doing."""

    async def root(stage: Stage) -> None:
        await sum_up(stage, reason=reason)

    async with EngineWorld(tmp_path, Cast(root=root)) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        await world.idle(workspace)
        assert workspace.sessions.get(session_id).summary_message_id == ""
        assert (await workspace.conversation(session_id))[0].role == "user"


async def test_a_person_cannot_be_summed_up_by_a_message_of_their_own(tmp_path: Path) -> None:
    """I7: a summary is an answer; anything else could not be sent."""

    async def root(stage: Stage) -> None:
        stage.events.emit(MessageStart("forged", "user", is_summary=True))

    async with EngineWorld(tmp_path, Cast(root=root)) as world:
        workspace = await world.open()
        _, run_id = await world.prompted(workspace)
        await world.idle(workspace)
        assert (await workspace.run(run_id)).state == "failed"


async def test_what_came_out_of_a_cache_is_counted_for_the_session_and_the_run(tmp_path: Path) -> None:
    """B16: people could not tell whether caching works, which is most of the price."""

    async def root(stage: Stage) -> None:
        stage.events.emit(UsageGained(Usage(10, 1, 8, 2)))
        await stage.events.durable(UsageGained(Usage(20, 1, 18, 2)))

    async with EngineWorld(tmp_path, Cast(root=root)) as world:
        workspace = await world.open()
        session_id, run_id = await world.prompted(workspace)
        await world.idle(workspace)
        assert workspace.sessions.get(session_id).cache_read_tokens == 26
        assert (await workspace.run(run_id)).usage == Usage(30, 2, 26, 4)
