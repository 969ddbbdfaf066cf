"""Answers to questions over HTTP: the first one counts, one that does not fit names its field and decides nothing."""

import json
from typing import Any

import pytest
from door_client import DoorClient
from world import World

from windlass import limits

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def post(door: DoorClient, world: World, what: str, body: Any, token: str = "") -> tuple[int, Any]:
    path = f"/v1/workspaces/{world.ids['workspace_id']}/questions/{what}"
    answer = await door.send("POST", path, json.dumps(body).encode(), token=token or door.server.token)
    return answer.status, answer.json


def answer(world: World, *responses: dict[str, Any]) -> dict[str, Any]:
    return {"batch_request_id": world.ids["batch_id"], "responses": list(responses)}


async def waiting(world: World) -> list[str]:
    return [batch["id"] for batch in await world.api.ok("GET", "W/questions")]


async def test_the_first_answer_decides_and_later_ones_are_told_so(fresh_world: World, door: DoorClient) -> None:
    """Two people would both believe that they decided, or the second would see an error (I9 A17 B28)."""
    yes, no = ({"request_id": "q1", "yes": yes} for yes in (True, False))
    assert await post(door, fresh_world, "answer", answer(fresh_world, yes)) == (200, {"resolved": True})
    for body in (answer(fresh_world, no), answer(fresh_world)):
        assert await post(door, fresh_world, "answer", body) == (200, {"resolved": False})
    cancel = {"batch_request_id": fresh_world.ids["batch_id"]}
    assert await post(door, fresh_world, "cancel", cancel) == (200, {"resolved": False})


async def test_a_cancel_without_an_id_declines_all_that_waits(fresh_world: World, door: DoorClient) -> None:
    """Somebody who does not want to be asked would have to go through the list (B28)."""
    assert await post(door, fresh_world, "cancel", {}) == (200, {"resolved": True})
    assert await waiting(fresh_world) == []
    assert await post(door, fresh_world, "cancel", {}) == (200, {"resolved": False})


@pytest.mark.parametrize(
    ("responses", "status", "field"),
    [
        ([], 422, "responses"),
        ([{"request_id": "q9", "yes": True}], 422, "responses[0].request_id"),
        ([{"request_id": "q1", "yes": True}] * 2, 422, "responses[1].request_id"),
        ([{"request_id": "q1"}], 422, "responses[0].yes"),
        ([{"request_id": "q1", "yes": None}], 422, "responses[0].yes"),
        ([{"request_id": "q1", "yes": True, "selected_ids": ["c1"]}], 422, "responses[0].selected_ids"),
        (
            [{"request_id": "q1", "yes": True, "fill_in_text": "x" * (limits.ANSWER_CHARACTERS + 1)}],
            422,
            "responses[0].fill_in_text",
        ),
        ([{"request_id": "q1", "yes": 1}], 400, "responses[0].yes"),
        ([{"yes": True}], 400, "responses[0]"),
    ],
)
async def test_an_answer_that_does_not_fit_is_refused_by_its_field_and_resolves_nothing(
    world: World, door: DoorClient, responses: list[dict[str, Any]], status: int, field: str
) -> None:
    """A client's mistake would be told to the agent as the word of a person (B28)."""
    refused, body = await post(door, world, "answer", answer(world, *responses))
    assert (refused, body["message"].partition(":")[0]) == (status, field)
    assert await waiting(world) == [world.ids["batch_id"]]


async def test_a_token_that_may_only_read_answers_nothing(
    world: World, door: DoorClient, tokens: dict[str, str]
) -> None:
    """Who may look on would decide (A12)."""
    fits = answer(world, {"request_id": "q1", "yes": True})
    for what, body in (("answer", fits), ("cancel", {})):
        assert (await post(door, world, what, body, tokens["read"]))[0] == 403
    assert await waiting(world) == [world.ids["batch_id"]]


async def test_an_id_of_another_kind_of_request_answers_no_question(world: World, door: DoorClient) -> None:
    """An id of a permission, or of another workspace, could be used to answer what was never shown (A17)."""
    for id in (world.ids["permission_id"], world.ids["run_id"], "", "ask_" + "0" * 32):
        body = {"batch_request_id": id, "responses": [{"request_id": "q1", "yes": True}]}
        assert await post(door, world, "answer", body) == (200, {"resolved": False})
    assert await waiting(world) == [world.ids["batch_id"]]
