"""`allow_session` answers the same question for the rest of the session, and no other question."""

import asyncio
import uuid
from typing import Any

import pytest
from shared_world import Client, World

from windlass.testing.server_process import EventTap

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


class Talk:
    """A conversation in which the model asks for one command after the other."""

    def __init__(self, world: World, api: Client, tap: EventTap, session_id: str) -> None:
        self.world = world
        self.api = api
        self.tap = tap
        self.session_id = session_id

    async def elsewhere(self) -> "Talk":
        """The same client in another session."""
        return Talk(self.world, self.api, self.tap, await self.api.new_session())

    async def ask(self, command: str) -> dict[str, Any] | None:
        """Let the model ask for a command: the request people see, or None when it went on without asking anyone."""
        await self.api.prompt(self.session_id, "go on")
        call, call_id = await self.world.call(), f"call_{uuid.uuid4()}"
        await call.tool("bash", {"command": command}, id=call_id)
        await call.end()
        asked = asyncio.create_task(
            self.tap.wait_for("permission_request", lambda event: event.body["tool_call_id"] == call_id)
        )
        went_on = asyncio.create_task(self.world.call())
        _, open_ones = await asyncio.wait({asked, went_on}, return_when=asyncio.FIRST_COMPLETED)
        for task in open_ones:
            task.cancel()
        if asked in open_ones:
            await self._end(went_on.result())
            return None
        return asked.result().body

    async def answer(self, permission: dict[str, Any] | None, action: str) -> None:
        """Answer what was asked, and let the run come to its end."""
        assert permission is not None, "nobody was asked"
        assert await self.api.answer(permission, action)
        await self._end(await self.world.call())

    async def _end(self, call: Any) -> None:
        await call.say("Done.")
        await call.end()


async def _talk(world: World) -> Talk:
    api, tap = await world.attached()
    return Talk(world, api, tap, await api.new_session())


async def test_the_same_command_asks_nobody_after_allow_session(world: World) -> None:
    """If it failed, people would be asked the same again and again, and would stop reading what they allow. B26"""
    talk = await _talk(world)
    await talk.answer(await talk.ask("echo x >> log"), "allow_session")
    assert [await talk.ask("echo x >> log"), await talk.ask("echo x >> log")] == [None, None]
    assert (world.directory / "log").read_text() == "x\nx\nx\n"


async def test_a_single_allow_does_not_answer_the_same_command_again(world: World) -> None:
    """If it failed, "this once" would mean "always". B26"""
    talk = await _talk(world)
    await talk.answer(await talk.ask("echo x >> log"), "allow")
    assert await talk.ask("echo x >> log") is not None
    assert (world.directory / "log").read_text() == "x\n"


@pytest.mark.parametrize("other", ["echo x >> log; rm -rf keep", "echo  x >> log", "ECHO x >> log", "echo x >> log\n:"])
async def test_another_command_asks_although_one_was_allowed_for_the_session(world: World, other: str) -> None:
    """If it failed, an answer for one command would open the door to others that begin like it. B26 A28"""
    talk = await _talk(world)
    await talk.answer(await talk.ask("echo x >> log"), "allow_session")
    asked = await talk.ask(other)
    assert asked is not None and asked["params"]["command"] == other


async def test_the_same_command_asks_in_another_session(world: World) -> None:
    """If it failed, an answer given in one conversation would count in another, with another purpose. B26"""
    talk = await _talk(world)
    await talk.answer(await talk.ask("echo x >> log"), "allow_session")
    assert await (await talk.elsewhere()).ask("echo x >> log") is not None


async def test_a_changed_copy_of_the_request_widens_nothing(world: World) -> None:
    """If it failed, a client could allow for the session what was never shown to anyone. B26"""
    talk = await _talk(world)
    asked = await talk.ask("echo x >> log")
    assert asked is not None
    forged = {**asked, "params": {"command": "touch forged"}, "action": "*", "path": "/", "tool_name": "write"}
    await talk.answer(forged, "allow_session")
    assert await talk.ask("touch forged") is not None
    assert (world.directory / "log").read_text() == "x\n"


async def test_an_allow_session_that_came_second_leaves_no_grant_behind_a_deny(world: World) -> None:
    """If it failed, a command that was refused would run the next time without a question. B26 R44"""
    talk = await _talk(world)
    permission = await talk.ask("echo x >> log")
    await talk.answer(permission, "deny")
    assert permission is not None
    assert await talk.api.answer(permission, "allow_session") is False
    assert await talk.ask("echo x >> log") is not None
    assert not (world.directory / "log").exists()


async def test_an_allow_session_after_the_withdrawal_leaves_no_grant_behind(world: World) -> None:
    """If it failed, a late click on a question that was withdrawn would decide later ones. B26 B25 R44"""
    talk = await _talk(world)
    permission = await talk.ask("echo x >> log")
    assert permission is not None
    await talk.api.cancel(talk.session_id)
    assert await talk.api.answer(permission, "allow_session") is False
    assert await talk.ask("echo x >> log") is not None


async def test_everyone_is_told_of_a_command_that_ran_on_an_earlier_answer(world: World) -> None:
    """If it failed, people would see a command run and not know who allowed it. B26 B23"""
    talk = await _talk(world)
    await talk.answer(await talk.ask("echo x >> log"), "allow_session")
    await talk.ask("echo x >> log")
    told = [event.body["outcome"] for event in talk.tap.events if event.kind == "permission_notification"]
    assert told == ["asked", "granted", "granted"]
