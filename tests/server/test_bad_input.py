"""Bodies and parameters that are wrong: each is told what is wrong, in words, and changes nothing."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from door_client import DoorClient
from route_table import CHANGING, WITH_BODY, Route, W
from world import World

from windlass import limits

pytestmark = pytest.mark.asyncio(loop_scope="session")
NEEDING_BODY = [route for route in WITH_BODY if route.required]

MALFORMED = {
    "half of an object": b'{"title": ',
    "not json": b"title=x",
    "two values": b"{}{}",
    "a comment": b"{} // x",
    "a trailing comma": b'{"title": "x",}',
    "single quotes": b"{'title': 'x'}",
    "an array": b"[]",
    "an array of objects": b"[{}]",
    "a text": b'"title"',
    "a number": b"17",
    "a huge number": b"1" + b"0" * 100_000,
    "a number beyond all floats": b"1e999999999",
    "not a number": b"NaN",
    "true": b"true",
    "invalid utf-8": b'{"title": "\xff\xfe"}',
    "utf-16": '{"title": "x"}'.encode("utf-16"),
    "nested a million deep": b"[" * 1_000_000,
    "an unknown field nested a million deep": b'{"unknown": ' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}",
    "objects nested a million deep": b'{"a":' * 1_000_000,
}


@pytest.mark.parametrize("route", WITH_BODY, ids=str)
async def test_a_malformed_body_is_refused(route: Route, world: World, door: DoorClient) -> None:
    """A broken client would be told nothing it can act on, or break the server (A38 A40)."""
    before = await world.state()
    target, _ = route.filled(world.ids)
    surrogates = ", ".join(f'"{name}": "\\ud800"' for name in route.body or {})
    for name, body in {**MALFORMED, "lone surrogates": f"{{{surrogates}}}".encode()}.items():
        answer = await door.send(route.method, target, body, token=world.server.token)
        assert (answer.status, name) == (400, name), answer.text[:200]
        assert is_helpful(answer.message), answer.message
    assert await world.state() == before


@pytest.mark.parametrize("body", [b"", b"null", b"{}"], ids=["empty", "null", "no fields"])
@pytest.mark.parametrize("route", NEEDING_BODY, ids=str)
async def test_an_empty_body_is_refused_where_fields_are_needed(
    route: Route, body: bytes, world: World, door: DoorClient
) -> None:
    """A client that forgot its body would be told that all went well (A40)."""
    before = await world.state()
    target, _ = route.filled(world.ids)
    answer = await door.send(route.method, target, body, token=world.server.token)
    assert answer.status == 400, answer.text
    assert is_helpful(answer.message), answer.message
    assert await world.state() == before


@pytest.mark.parametrize(
    ("route", "field"), [(route, name) for route in NEEDING_BODY for name in route.required], ids=str
)
async def test_a_missing_field_is_named(route: Route, field: str, world: World, door: DoorClient) -> None:
    """Whoever writes a client would have to guess which field it lacks (A40)."""
    before = await world.state()
    target, body = route.filled(world.ids)
    fields = json.loads(body or b"{}")
    del fields[field]
    answer = await door.send(route.method, target, json.dumps(fields).encode(), token=world.server.token)
    assert answer.status == 400, answer.text
    assert field in answer.message, answer.message
    assert await world.state() == before


WRONG: dict[type, list[Any]] = {
    str: [None, 1, 1.5, True, [], {}, ["x"], 10**30],
    bool: [None, 0, 1, "true", "", [], {}],
    int: [None, 1.5, "80", True, [], {}, 10**30],
    list: [None, 1, "x", True, {}, [1], [None], [[]]],
    dict: [None, 1, "x", True, []],
}
NULLABLE = {"env"}  # http.md gives it no meaning, and clients send null for none


def wrong_bodies(fields: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The body with one field of a wrong type, for every field and every type it is not; also inside of fields."""
    for name, value in fields.items():
        for wrong in WRONG[type(value)]:
            if not (wrong is None and name in NULLABLE):
                yield name, {**fields, name: wrong}
        if isinstance(value, dict):
            for inner, changed in wrong_bodies(value):
                yield inner, {**fields, name: changed}
        if isinstance(value, list) and value and not isinstance(value[0], dict):
            yield from ((name, {**fields, name: [wrong]}) for wrong in WRONG[type(value[0])])
        elif isinstance(value, list) and value:
            for inner, changed in wrong_bodies(value[0]):
                yield inner, {**fields, name: [changed]}


@pytest.mark.parametrize("route", WITH_BODY, ids=str)
async def test_a_field_of_a_wrong_type_is_named(route: Route, world: World, door: DoorClient) -> None:
    """A value that is bent into shape would do something nobody asked for (A40)."""
    before = await world.state()
    target, body = route.filled(world.ids)
    for field, fields in wrong_bodies(json.loads(body or b"{}")):
        answer = await door.send(route.method, target, json.dumps(fields).encode(), token=world.server.token)
        # A list of options says that the value is well-formed but none of them: 422.
        assert answer.status in (400, 422), (fields, answer.text)
        assert field in answer.message, (fields, answer.message)
    assert await world.state() == before


P = f"{W}/agent"
SHELL = f"{W}/agent/sessions/{{session_id}}/shell"
LONG = "a" * (limits.TITLE_CHARACTERS + 1)
PROMPT = {"session_id": "{session_id}", "prompt": "Hello."}
FILE = {"file_path": "a.png", "file_name": "a.png", "mime_type": "image/png", "content": "aGk="}
# Well-formed, and not acceptable: the status and the word that must be in the message.
REFUSED = [
    (400, "prompt", Route("POST", P, "operate", body={**PROMPT, "prompt": ""})),
    (400, "prompt", Route("POST", P, "operate", body={**PROMPT, "prompt": " \n\t "})),
    (400, "session_id", Route("POST", P, "operate", body={**PROMPT, "session_id": ""})),
    (404, "session", Route("POST", P, "operate", body={**PROMPT, "session_id": "ses_unknown"})),
    (422, "prompt", Route("POST", P, "operate", body={**PROMPT, "prompt": "a" * (limits.PROMPT_CHARACTERS + 1)})),
    (422, "on_busy", Route("POST", P, "operate", body={**PROMPT, "on_busy": "whatever"})),
    (422, "on_busy", Route("POST", P, "operate", body={**PROMPT, "on_busy": ""})),
    (422, "run_id", Route("POST", P, "operate", body={**PROMPT, "run_id": "has space"})),
    (422, "run_id", Route("POST", P, "operate", body={**PROMPT, "run_id": "../x"})),
    (422, "run_id", Route("POST", P, "operate", body={**PROMPT, "run_id": "x\n"})),
    (422, "run_id", Route("POST", P, "operate", body={**PROMPT, "run_id": "a" * 65})),
    (422, "content", Route("POST", P, "operate", body={**PROMPT, "attachments": [{**FILE, "content": "not base64!"}]})),
    (422, "allow[1]", Route("POST", P, "operate", body={**PROMPT, "allow": ["view", "bash:a\nb"]})),
    (422, "allow", Route("POST", P, "operate", body={**PROMPT, "allow": ["view"] * (limits.RUN_RULES + 1)})),
    (422, "allow", Route("POST", P, "operate", body={**PROMPT, "allow": ["view"], "on_busy": "steer"})),
    (422, "max_cost", Route("POST", P, "operate", body={**PROMPT, "max_cost": -1})),
    (422, "max_cost", Route("POST", P, "operate", body={**PROMPT, "max_cost": 1, "on_busy": "steer"})),
    (409, "run_id", Route("POST", P, "operate", body={**PROMPT, "run_id": "{run_id}"})),
    (409, "busy", Route("POST", P, "operate", body={**PROMPT, "on_busy": "reject"})),
    (422, "title", Route("POST", f"{W}/sessions", "operate", body={"title": LONG})),
    (400, "command", Route("POST", SHELL, "operate", body={"command": " \n"})),
    (422, "command", Route("POST", SHELL, "operate", body={"command": "x" * (limits.SHELL_COMMAND_CHARACTERS + 1)})),
    (422, "command", Route("POST", SHELL, "operate", body={"command": "echo \0"})),
    (422, "term_width", Route("POST", SHELL, "operate", body={"command": "true", "term_width": -1})),
    (422, "term_width", Route("POST", SHELL, "operate", body={"command": "true", "term_width": 1_001})),
    (422, "run_id", Route("POST", f"{W}/sessions/{{session_id}}/undo", "operate", body={"run_id": "../x"})),
    (404, "run", Route("POST", f"{W}/sessions/{{session_id}}/undo", "operate", body={"run_id": "run_unknown"})),
    (404, "run", Route("POST", f"{W}/sessions/{{idle_session_id}}/undo", "operate", body={"run_id": "{run_id}"})),
    (422, "title", Route("PUT", f"{W}/sessions/{{session_id}}", "operate", body={"title": LONG})),
    (
        400,
        "action",
        Route("POST", f"{W}/permissions/grant", "operate", body={"permission": {"id": "x"}, "action": "yes"}),
    ),
    (400, "action", Route("POST", f"{W}/permissions/grant", "operate", body={"permission": {"id": "x"}, "action": ""})),
    (422, "command", Route("POST", "/v1/control", "operate", body={"command": "reboot"})),
    (400, "client_id", Route("POST", "/v1/workspaces", "operate", body={"path": "{directory}", "client_id": ""})),
    (400, "client_id", Route("POST", "/v1/workspaces", "operate", body={"path": "{directory}", "client_id": "me"})),
    (400, "path", Route("POST", "/v1/workspaces", "operate", body={"path": "", "client_id": "{client_id}"})),
    (400, "client_id", Route("POST", f"{W}/current-session", "operate", body={"session_id": ""})),
    (
        404,
        "session",
        Route("POST", f"{W}/current-session", "operate", 404, {"session_id": "ses_x"}, (), "client_id={client_id}"),
    ),
    (400, "client_id", Route("DELETE", W, "operate")),
    (400, "client_id", Route("DELETE", W, "operate", query="client_id=me")),
    (400, "client_id", Route("DELETE", "/v1/clients/me", "operate")),
    (400, "limit", Route("GET", f"{W}/runs", "read", query="limit=0")),
    (400, "limit", Route("GET", f"{W}/runs", "read", query="limit=-1")),
    (400, "limit", Route("GET", f"{W}/runs", "read", query="limit=many")),
    (400, "limit", Route("GET", f"{W}/runs", "read", query="limit=1e3")),
    (400, "limit", Route("GET", f"{W}/runs", "read", query=f"limit={limits.RUNS_PER_PAGE + 1}")),
    (400, "limit", Route("GET", f"{W}/runs", "read", query="limit=99999999999999999999")),
    (400, "limit", Route("GET", f"{W}/sessions/{{session_id}}/messages", "read", query="limit=0")),
    (400, "state", Route("GET", f"{W}/runs", "read", query="state=asleep")),
    (404, "run", Route("GET", f"{W}/runs", "read", query="after=run_unknown")),
    (404, "message", Route("GET", f"{W}/sessions/{{session_id}}/messages", "read", query="after=msg_unknown")),
]


@pytest.mark.parametrize(("status", "word", "route"), REFUSED, ids=lambda value: str(value)[:60])
async def test_a_value_that_is_not_acceptable_is_named(
    status: int, word: str, route: Route, world: World, door: DoorClient
) -> None:
    """People would be told that something failed, and not what to do about it (A40)."""
    before = await world.state()
    target, body = route.filled(world.ids)
    answer = await door.send(route.method, target, body, token=world.server.token)
    assert answer.status == status, answer.text
    assert word in answer.message and is_helpful(answer.message), answer.message
    assert await world.state() == before


# These leave no record of who did it.
UNRECORDED = ("/v1/control", "/v1/tickets", "/v1/clients/{client_id}", f"{W}/agent/init")


@pytest.mark.parametrize(
    "route", [route for route in CHANGING if route.path not in UNRECORDED and not route.query], ids=str
)
async def test_a_malformed_client_id_is_refused_on_every_change(route: Route, world: World, door: DoorClient) -> None:
    """The record of who did it would hold whatever a client cares to write (B46)."""
    before = await world.state()
    target, body = route.filled(world.ids)
    answer = await door.send(route.method, f"{target}?client_id=%0aforged", body, token=world.server.token)
    assert answer.status == 400, answer.text
    assert "client_id" in answer.message
    assert await world.state() == before


async def test_unknown_fields_are_ignored(fresh_world: World) -> None:
    """A newer client could not speak to an older server."""
    status, session = await fresh_world.api.call("POST", "W/sessions", {"title": "x", "colour": {"deep": [1]}})
    assert (status, session["title"]) == (200, "x")


def is_helpful(message: str) -> bool:
    """A sentence for a person: no class names, no quotes of the decoder's, and not empty."""
    return len(message) > 10 and message.endswith(".") and not any(word in message for word in NOISE)


NOISE = ("Exception", "Error", "Traceback", "msgspec", "litestar", "kwargs", "$.", "None", "0x")
