"""Nobody is there to answer: a permission expires after its time, and nothing ever turns into an allow."""

import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Starter

from windlass.testing.model_call import ModelCall
from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import Api, EventTap, ServerProcess, until

DENY = 'unattended = "deny"'
SHORT = 'unattended = "wait"\nunattended_timeout = "300ms"'
LONG = 'unattended = "wait"\nunattended_timeout = "1h"'


async def prompt_and_leave(server: ServerProcess, model: ModelServer, directory: Path) -> tuple[str, ModelCall]:
    """A client sends a prompt and says goodbye; the run, and the model's first call."""
    async with Api(server) as api:
        await api.open(directory)
        accepted = await api.prompt(await api.new_session(), "Touch the file.")
        call = await model.next_call()
        await api.ok("DELETE", f"/v1/clients/{api.client_id}")
        return accepted["run_id"], call


async def ask_for_bash(call: ModelCall) -> None:
    await call.tool("bash", {"command": "touch touched"})
    await call.end()


def tool_result(call: ModelCall) -> str:
    message = call.request["messages"][-1]
    assert message["role"] == "tool"
    return str(message["content"])


def was_touched(directory: Path) -> bool:
    return (directory / "touched").exists()


@pytest.mark.parametrize("rule", [DENY, SHORT], ids=["deny", "a short wait"])
async def test_with_nobody_there_the_tool_does_not_run_and_the_model_is_told_why(
    start_server: Starter, model: ModelServer, directory: Path, rule: str
) -> None:
    """A29 I10: else a question that nobody saw counts as a yes, or the run hangs for ever."""
    server = await start_server(permissions=rule)
    run_id, call = await prompt_and_leave(server, model, directory)
    await ask_for_bash(call)
    call = await model.next_call()
    assert "Expired" in tool_result(call)
    assert not was_touched(directory)
    await call.say("Then not.")
    await call.end()
    async with Api(server) as api:
        await api.open(directory)
        assert (await api.run_over(run_id))["state"] == "completed"


async def test_a_client_that_comes_later_sees_that_the_question_expired(
    start_server: Starter, model: ModelServer, directory: Path
) -> None:
    """A29 B23 B46: else people are shown a question that is no longer open, or none at all."""
    server = await start_server(permissions=DENY)
    _, call = await prompt_and_leave(server, model, directory)
    await ask_for_bash(call)
    call = await model.next_call()
    async with Api(server) as api:
        await api.open(directory)
        async with api.stream(after="0") as tap:
            told = await tap.wait_for("permission_notification", lambda event: event.body["outcome"] == "expired")
            assert (told.body["granted"], told.body["denied"]) == (False, False)
            assert told.by == {"name": "server"}
            assert tap.events[0].body["permissions"] == []
            assert await api.ok("GET", "W/permissions") == []
            assert await answer(api, told.body["id"]) == {"resolved": False}
        await call.say("Then not.")
        await call.end()


async def test_a_question_waits_its_whole_time_before_it_expires(
    start_server: Starter, model: ModelServer, directory: Path
) -> None:
    """A29: else who is out for a moment finds the question gone."""
    server = await start_server(permissions='unattended = "wait"\nunattended_timeout = "800ms"')
    _, call = await prompt_and_leave(server, model, directory)
    began = time.monotonic()
    await ask_for_bash(call)
    call = await model.next_call()
    assert time.monotonic() - began >= 0.8
    await call.say("Then not.")
    await call.end()


@pytest.mark.parametrize("rule", [DENY, SHORT], ids=["deny", "a short wait"])
async def test_while_somebody_is_attached_a_question_does_not_expire(
    start_server: Starter, model: ModelServer, directory: Path, rule: str
) -> None:
    """A29: else a person who thinks before answering is overtaken."""
    server = await start_server(permissions=rule)
    async with Api(server) as api:
        await api.open(directory)
        async with api.stream() as tap:
            await api.prompt(await api.new_session(), "Touch the file.")
            await ask_for_bash(await model.next_call())
            asked = await tap.wait_for("permission_request")
            await nothing_expires(tap, seconds=1.0)
            assert await answer(api, asked.body["id"]) == {"resolved": True}
            call = await model.next_call()
            assert was_touched(directory)
            await call.say("Done.")
            await call.end()


async def test_a_question_of_a_client_that_leaves_while_it_waits_expires_too(
    start_server: Starter, model: ModelServer, directory: Path
) -> None:
    """A29: else closing the window leaves the run waiting for ever."""
    server = await start_server(permissions=SHORT)
    async with Api(server) as api:
        await api.open(directory)
        async with api.stream() as tap:
            await api.prompt(await api.new_session(), "Touch the file.")
            await ask_for_bash(await model.next_call())
            await tap.wait_for("permission_request")
            await api.ok("DELETE", f"/v1/clients/{api.client_id}")
    call = await model.next_call()
    assert "Expired" in tool_result(call)
    assert not was_touched(directory)
    await call.say("Then not.")
    await call.end()


@pytest.mark.parametrize("arguments", [(), ("--exit-when-idle",)], ids=["resident", "exit-when-idle"])
async def test_a_client_that_comes_back_in_time_can_still_answer(
    start_server: Starter, model: ModelServer, directory: Path, arguments: tuple[str, ...]
) -> None:
    """A29 B24: else a question does not survive the walk from the desk to the phone."""
    server = await start_server(*arguments, permissions=LONG)
    run_id, call = await prompt_and_leave(server, model, directory)
    await ask_for_bash(call)
    async with Api(server) as api:
        await api.open(directory)

        async def is_waiting() -> bool:
            return (await api.run(run_id))["state"] == "waiting"

        await until(is_waiting, "the run waits for an answer")
        async with api.stream() as tap:
            (pending,) = tap.events[0].body["permissions"]
            assert await answer(api, pending["id"]) == {"resolved": True}
            call = await model.next_call()
            assert was_touched(directory)
            await call.say("Done.")
            await call.end()
            await tap.complete(run_id)


async def test_a_client_that_comes_back_stops_the_clock(
    start_server: Starter, model: ModelServer, directory: Path
) -> None:
    """A29 R31: else a timer that was set while nobody was there fires in front of somebody who is."""
    server = await start_server(permissions='unattended = "wait"\nunattended_timeout = "3s"')
    _, call = await prompt_and_leave(server, model, directory)
    await ask_for_bash(call)
    async with Api(server) as api:
        await api.open(directory)
        async with api.stream(after="0") as tap:
            asked = await tap.wait_for("permission_request")
            await nothing_expires(tap, seconds=3.2)
            assert await answer(api, asked.body["id"]) == {"resolved": True}
            call = await model.next_call()
            await call.say("Done.")
            await call.end()


async def answer(api: Api, permission_id: str) -> Any:
    return await api.ok("POST", "W/permissions/grant", {"permission": {"id": permission_id}, "action": "allow"})


async def nothing_expires(tap: EventTap, seconds: float) -> None:
    """Fail if a question expires within this time."""

    def has_expired() -> bool:
        outcomes = [event.body["outcome"] for event in tap.events if event.kind == "permission_notification"]
        return "expired" in outcomes

    with pytest.raises(AssertionError, match="in vain"):
        await until(has_expired, "a question expires", seconds)
