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

    async def answer(self, permission: dict[str, Any] | None, action: str, pattern: str = "") -> None:
        """Answer what was asked, and let the run come to its end."""
        assert permission is not None, "nobody was asked"
        body = {"permission": permission, "action": action, "pattern": pattern}
        assert await self.api.send("POST", "W/permissions/grant", body) == {"resolved": True}
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


# -- a pattern that a person types ------------------------------------------------------------------------------------

# What looks like it and is not (A28). `./tool` is a program of the workspace that only this test knows.
WIDER = [
    "./tool run && touch wider", "./tool run; touch wider", "./tool run\ntouch wider", "./tool run | tee wider",
    "./tool run > wider", "./tool run $(touch wider)", "./tool run `touch wider`", "env X=1 ./tool run",
    "X=1 ./tool run", "./tool -c run", "./tool runs", "./tool run$IFS*", "xargs ./tool run", "sh -c './tool run'",
    "./tool run *", "./tool run" + " && ./tool run" * 60,
]  # fmt: skip


async def test_a_typed_pattern_allows_what_fits_it_and_nothing_wider(world: World) -> None:
    """If it failed, people would be asked for every variant of a command, or would have allowed the whole shell.
    B26 A28"""
    tool = world.directory / "tool"
    tool.write_text('#!/bin/sh\necho "$@" >> log\n')
    tool.chmod(0o755)
    talk = await _talk(world)
    await talk.answer(await talk.ask("./tool run"), "allow_session", "./tool run *")
    assert [await talk.ask("./tool run"), await talk.ask("./tool run 'a b' --fast")] == [None, None]
    assert (world.directory / "log").read_text() == "run\nrun\nrun a b --fast\n"
    for line in WIDER:
        asked = await talk.ask(line)
        assert asked is not None and asked["params"]["command"] == line
        await talk.answer(asked, "deny")
    assert not (world.directory / "wider").exists()
    assert (world.directory / "log").read_text().count("\n") == 3


async def test_everyone_sees_which_pattern_was_typed_and_what_it_covered(world: World) -> None:
    """If it failed, one person could open a door that the others do not see. B23 B26"""
    talk = await _talk(world)
    await talk.answer(await talk.ask("echo a"), "allow_session", "echo *")
    await talk.ask("echo b")
    told = [event.body for event in talk.tap.events if event.kind == "permission_notification"]
    assert [(body["outcome"], body["pattern"]) for body in told] == [
        ("asked", ""),
        ("granted", "echo *"),
        ("granted", "echo *"),
    ]
    assert [body["by"].get("client_id", body["by"]["name"]) for body in told[1:]] == [talk.api.client_id, "grant"]


async def test_what_a_rule_allows_is_told_with_the_rule(world: World) -> None:
    """If it failed, nobody could find out why a tool ran without a question. B46"""
    talk = await _talk(world)
    await talk.api.prompt(talk.session_id, "look")
    call = await world.call()
    await call.tool("ls", {"path": "."})
    await call.end()
    await talk._end(await world.call())
    told = (await talk.tap.wait_for("permission_notification")).body
    assert (told["outcome"], told["by"], told["pattern"]) == ("granted", {"name": "policy"}, "ls")
