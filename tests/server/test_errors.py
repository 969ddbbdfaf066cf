"""What a refusal or a failure says: enough for a person to act on, nothing of the server's insides."""

import json
from pathlib import Path

import pytest
from door_client import DoorClient, raw_to
from own_listener import listening
from structlog.testing import capture_logs
from world import World

from windlass.testing.server_process import ServerProcess, until


class BrokenRegistry:
    """Fails as nobody foresaw, with what must not be told in its message."""

    @property
    def workspaces(self) -> list[object]:
        raise RuntimeError("SELECT secret FROM /var/lib/private.db")


async def test_an_unforeseen_error_is_told_as_an_id_that_is_in_the_log(tmp_path: Path) -> None:
    """A person could not find what went wrong for them, or a stranger would read a stack trace (A40)."""
    async with listening(tmp_path, BrokenRegistry()) as address:
        with capture_logs() as logs:
            request = address.head("GET", "/v1/workspaces", "Connection: close")
            answer = await raw_to(address.host, address.port, request)
    assert answer.status == 500
    body = json.loads(answer.body)
    assert set(body) == {"message", "request_id"} and body["request_id"] in body["message"]
    assert not any(word in answer.body for word in ("SELECT", "/var", "Traceback", "RuntimeError"))
    logged = [entry for entry in logs if entry.get("request_id") == body["request_id"] and "exc_info" in entry]
    assert [str(entry["exc_info"]) for entry in logged] == ["SELECT secret FROM /var/lib/private.db"]
    assert f"x-request-id: {body['request_id']}" in answer.head


@pytest.mark.asyncio(loop_scope="session")
async def test_an_unknown_address_is_said_to_be_one(door: DoorClient) -> None:
    """A client with a wrong path would be told nothing (A40)."""
    for method in ("GET", "POST", "PUT", "DELETE"):
        answer = await door.send(method, "/v1/nowhere", token=door.server.token)
        assert answer.status == 404 and "/docs" in answer.message


@pytest.mark.asyncio(loop_scope="session")
async def test_a_wrong_method_is_said_to_be_one(door: DoorClient) -> None:
    """A client would look for a typing error in the path (A40)."""
    for method, target in (
        ("PUT", "/v1/workspaces"),
        ("DELETE", "/v1/version"),
        ("PATCH", "/"),
        ("HEAD", "/v1/version"),
    ):
        answer = await door.send(method, target, token=door.server.token)
        assert answer.status == 405
        assert method == "HEAD" or "method" in answer.message


@pytest.mark.asyncio(loop_scope="session")
async def test_forbidden_and_unknown_look_the_same_to_a_stranger(world: World, door: DoorClient) -> None:
    """Without a token one could find out which workspaces and sessions there are (A40)."""
    known = await door.send("GET", f"/v1/workspaces/{world.ids['workspace_id']}/sessions/{world.ids['session_id']}")
    unknown = await door.send("GET", "/v1/workspaces/wsp_0/sessions/ses_0")
    nowhere = await door.send("GET", "/v1/nowhere")
    assert known.status == 401
    assert (known.status, known.text) == (unknown.status, unknown.text) == (nowhere.status, nowhere.text)


@pytest.mark.asyncio(loop_scope="session")
async def test_every_answer_forbids_sniffing_framing_and_referring(door: DoorClient) -> None:
    """A browser could be made to run an answer as a page, or to tell others where it was (A41)."""
    for target in ("/", "/docs", "/v1/version", "/v1/nowhere"):
        for token in (None, door.server.token):
            answer = await door.send("GET", target, token=token)
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["x-frame-options"] == "DENY"
            assert answer.headers["referrer-policy"] == "no-referrer"


@pytest.mark.asyncio(loop_scope="session")
async def test_the_documentation_may_load_nothing_at_all(door: DoorClient) -> None:
    """Whoever serves the other end could run scripts beside the cookie (A41)."""
    answer = await door.send("GET", "/docs", token=door.server.token)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "http://" not in answer.text and "https://" not in answer.text and "<script" not in answer.text


ODD_TEXT = "a\r\nb\nX-Injected: 1\r\n\r\n\x00\x1b[31m\u2028\u202e</script><b>\U0001f600'; DROP TABLE facts; --"


@pytest.mark.asyncio(loop_scope="session")
async def test_odd_text_in_a_title_comes_back_as_it_was(fresh_world: World) -> None:
    """A title would break the answer, the stream or the log it is written into (A41)."""
    api = fresh_world.api
    async with api.stream() as tap:
        session = await api.ok("POST", "W/sessions", {"title": ODD_TEXT})
        event = await tap.wait_for("session", lambda event: event.body["id"] == session["id"])
    assert session["title"] == ODD_TEXT == event.body["title"]
    assert (await api.ok("GET", f"W/sessions/{session['id']}"))["title"] == ODD_TEXT


@pytest.mark.asyncio(loop_scope="session")
async def test_a_line_break_in_a_request_forges_no_line_of_the_log(server: ServerProcess, door: DoorClient) -> None:
    """Someone could write lines into the log that never happened (A41)."""
    marker = "forged-by-test"
    await door.send("GET", f"/v1/%0d%0a{marker}%1b%5b31m", token=server.token)
    await until(lambda: marker in server.log(), "the request is logged")
    lines = [line for line in server.log().splitlines() if marker in line]
    assert [json.loads(line)["path"] for line in lines] == [f"/v1/\r\n{marker}\x1b[31m"]


@pytest.mark.asyncio(loop_scope="session")
async def test_a_refusal_at_the_door_is_logged_without_the_credential(server: ServerProcess, door: DoorClient) -> None:
    """A person would not see that someone is trying, or the log would hand out what was tried (A1 A39)."""
    await door.send("GET", "/v1/runs-refused-by-test", token="wl_wrong-secret-of-test")
    await until(lambda: "/v1/runs-refused-by-test" in server.log(), "the refusal is logged")
    line = next(line for line in server.log().splitlines() if "/v1/runs-refused-by-test" in line)
    assert json.loads(line)["status"] == 401
    assert "wrong-secret-of-test" not in server.log() and server.token not in server.log()
