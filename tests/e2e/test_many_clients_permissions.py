"""A tool that needs permission asks everyone; the first answer decides, and all see it."""

from typing import Any

import pytest
from shared_world import Client, World, together

from windlass.testing.server_process import EventTap

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def ask(world: World, api: Client, tap: EventTap, command: str, session_id: str = "") -> dict[str, Any]:
    """A run that asks whether it may run this command; the request as everyone sees it."""
    session_id = session_id or await api.new_session()
    run_id = (await api.prompt(session_id, "hello"))["run_id"]
    call = await world.call()
    await call.tool("bash", {"command": command})
    await call.end()
    event = await tap.wait_for("permission_request", lambda event: event.body["run_id"] == run_id)
    return event.body


async def outcome(tap: EventTap, permission: dict[str, Any]) -> dict[str, Any]:
    """The notification that says how a request ended."""
    event = await tap.wait_for(
        "permission_notification", lambda e: e.body["id"] == permission["id"] and e.body["outcome"] != "asked"
    )
    return event.body


async def test_a_permission_is_asked_of_every_client_with_what_will_be_done(world: World) -> None:
    """If it failed, the one person at the keyboard would not be the one who is asked, or would not see what for. B23"""
    api, tap = await world.attached()
    _, other_tap = await world.attached()
    permission = await ask(world, api, tap, "touch made")
    seen = (await other_tap.wait_for("permission_request")).body
    asked = [event.body["outcome"] for event in other_tap.events if event.kind == "permission_notification"]
    assert (seen, asked) == (permission, ["asked"])
    assert (seen["tool_name"], seen["action"], seen["params"]["command"]) == ("bash", "execute", "touch made")


async def test_the_first_answer_wins_and_the_later_one_is_told_so_without_an_error(world: World) -> None:
    """If it failed, the second person to click would see an error, or would change what the first decided. B23 I9"""
    api, tap = await world.attached()
    other = await world.client()
    permission = await ask(world, api, tap, "touch made")
    answers = [await api.answer(permission, "allow"), await other.answer(permission, "deny")]
    await world.call()
    assert (answers, (world.directory / "made").exists()) == ([True, False], True)


async def test_of_answers_at_the_same_moment_exactly_one_decides_and_all_see_which(world: World) -> None:
    """If it failed, a deny and an allow would both count, and the command would run though somebody refused it.
    B23 I9 I10 R43"""
    clients = [await world.client() for _ in range(4)]
    tap, other_tap = await world.tap(clients[0]), await world.tap(clients[1])
    for number in range(5):
        permission = await ask(world, clients[0], tap, f"touch made-{number}")
        actions = ["allow", "deny", "allow", "deny"]
        told = await together(
            *(client.answer(permission, action) for client, action in zip(clients, actions, strict=True))
        )
        result = await outcome(tap, permission)
        await world.call()
        winner = told.index(True)
        decided = {"allow": "granted", "deny": "denied"}[actions[winner]]
        assert told.count(True) == 1
        assert (result["outcome"], result["by"]["client_id"]) == (decided, clients[winner].client_id)
        assert (world.directory / f"made-{number}").exists() == (decided == "granted")
        assert await outcome(other_tap, permission) == result


async def test_a_denied_command_is_not_run_and_the_model_is_told(world: World) -> None:
    """If it failed, a refusal would not stop the command, or would leave the model without an answer. B23 I10"""
    api, tap = await world.attached()
    permission = await ask(world, api, tap, "touch made")
    await api.answer(permission, "deny")
    request = (await world.call()).request
    assert "denied" in request["messages"][-1]["content"].lower()
    assert not (world.directory / "made").exists()


async def test_an_answer_to_an_unknown_request_decides_nothing(world: World) -> None:
    """If it failed, a client with an old list of questions would see errors for what is long decided. B23"""
    api = await world.client()
    assert await api.answer({"id": "perm_there_is_no_such_request"}, "allow") is False


async def test_an_answer_that_is_none_is_refused_and_leaves_the_question_open(world: World) -> None:
    """If it failed, a typing error in a client could be taken for a yes. B23 I10"""
    api, tap = await world.attached()
    permission = await ask(world, api, tap, "touch made")
    status, _ = await api.call("POST", "W/permissions/grant", {"permission": permission, "action": "yes"})
    assert (status, [pending["id"] for pending in await api.permissions()]) == (400, [permission["id"]])


async def test_a_client_that_attaches_later_sees_what_still_waits_for_an_answer(world: World) -> None:
    """If it failed, a run would wait for ever for somebody who cannot see its question. B24"""
    api, tap = await world.attached()
    permission = await ask(world, api, tap, "touch made")
    late, late_tap = await world.attached()
    hello = (await late_tap.wait_for("hello")).body
    assert (hello["permissions"], await late.permissions()) == ([permission], [permission])
    assert await late.answer(permission, "allow") is True


async def test_a_client_that_attaches_later_is_not_asked_what_was_answered(world: World) -> None:
    """If it failed, people would be asked questions that are long decided. B24"""
    api, tap = await world.attached()
    permission = await ask(world, api, tap, "touch made")
    await api.answer(permission, "allow")
    late, late_tap = await world.attached()
    hello = (await late_tap.wait_for("hello")).body
    assert (hello["permissions"], await late.permissions()) == ([], [])


async def test_the_question_of_a_cancelled_run_is_withdrawn_everywhere(world: World) -> None:
    """If it failed, people would go on looking at a question whose answer does nothing. B25 I11"""
    api, tap = await world.attached()
    _, other_tap = await world.attached()
    permission = await ask(world, api, tap, "touch made")
    await api.cancel(permission["session_id"])
    ends = [await outcome(seen, permission) for seen in (tap, other_tap)]
    _, late_tap = await world.attached()
    assert [(end["outcome"], end["granted"], end["denied"]) for end in ends] == [("withdrawn", False, False)] * 2
    assert (await api.permissions(), (await late_tap.wait_for("hello")).body["permissions"]) == ([], [])


async def test_an_allow_after_the_cancel_decides_nothing_and_runs_nothing(world: World) -> None:
    """If it failed, a click a moment too late would run a command of a run that was stopped. B25 B23 I5 I10"""
    api, tap = await world.attached()
    other = await world.client()
    permission = await ask(world, api, tap, "touch made")
    await api.cancel(permission["session_id"])
    late = await other.answer(permission, "allow")
    await tap.complete(permission["run_id"])
    assert (late, (world.directory / "made").exists()) == (False, False)


async def test_an_allow_and_a_cancel_at_the_same_moment_never_end_otherwise_than_told(world: World) -> None:
    """If it failed, a command could run though its question was withdrawn. B25 I9 I10"""
    api, tap = await world.attached()
    other = await world.client()
    for number in range(5):
        permission = await ask(world, api, tap, f"touch made-{number}")
        resolved, _ = await together(other.answer(permission, "allow"), api.cancel(permission["session_id"]))
        end = await outcome(tap, permission)
        await tap.complete(permission["run_id"])
        assert end["outcome"] == ("granted" if resolved else "withdrawn")
        assert resolved or not (world.directory / f"made-{number}").exists()
        assert (await api.run(permission["run_id"]))["state"] == "canceled"


async def test_a_permission_of_one_session_does_not_wait_for_that_of_another(world: World) -> None:
    """If it failed, one unanswered question would hold up every other conversation of the workspace. B27"""
    api, tap = await world.attached()
    first = await ask(world, api, tap, "touch first")
    second = await ask(world, api, tap, "touch second")
    await api.answer(second, "allow")
    call = await world.call()
    await call.say("Done.")
    await call.end()
    complete = await tap.complete(second["run_id"])
    assert (complete.body["text"], (world.directory / "second").exists()) == ("Done.", True)
    assert [pending["id"] for pending in await api.permissions()] == [first["id"]]
    assert (await api.run(first["run_id"]))["state"] == "waiting"
