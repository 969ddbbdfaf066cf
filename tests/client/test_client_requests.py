"""Requests: what is sent again and what is not, and what a refusal is raised as."""

from pathlib import Path

import pytest
from aiohttp import web
from fake_windlass import TOKEN, FakeWindlass, refusal

from windlass import errors
from windlass.client import Client, NotFound, ProtocolError, ServerFailed, ServerUnreachable, WorkspaceHandle


def count(server: FakeWindlass, method: str, ending: str) -> int:
    return sum(1 for verb, path in server.requests if verb == method and path.partition("?")[0].endswith(ending))


async def test_a_prompt_whose_answer_was_lost_is_the_same_run_when_sent_again(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """B12: else a connection that breaks at the wrong moment would run the prompt twice."""
    server.refuse("/agent", None)
    first = await workspace.prompt("ses_1", "Hello")
    assert list(server.runs) == [first.run_id]
    assert count(server, "POST", "/agent") == 2


async def test_a_get_is_sent_again_after_a_broken_connection(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """Else every blip would be an error in the caller's hands."""
    server.refuse("/sessions", None)
    assert await workspace.sessions() == []


async def test_creating_a_session_is_not_sent_again_after_a_broken_connection(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """Else a lost answer would leave two sessions."""
    server.refuse("/sessions", None)
    with pytest.raises(ServerUnreachable):
        await workspace.create_session("One")
    assert count(server, "POST", "/sessions") == 1


async def test_a_permission_answer_is_not_sent_again_after_a_broken_connection(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """Else the one who decided would be told that somebody else did (I9)."""
    server.refuse("/grant", None)
    with pytest.raises(ServerUnreachable):
        await workspace.grant("per_1", "allow")
    assert count(server, "POST", "/grant") == 1


async def test_a_server_that_asks_for_patience_is_asked_again(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """Else a full queue for a moment would fail a script."""
    server.refuse("/agent", refusal(429, "Too many.", Retry_After="0"))
    server.refuse("/agent", refusal(503, "Leaving."))
    assert (await workspace.prompt("ses_1", "Hello")).state == "accepted"


async def test_too_many_without_a_retry_after_is_raised_at_once(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """A queue that is full stays full: trying again would only hold the caller up."""
    server.refuse("/agent", refusal(429, "The queue is full."))
    with pytest.raises(errors.TooMany, match="queue is full"):
        await workspace.prompt("ses_1", "Hello")


async def test_a_server_that_stays_unavailable_is_given_up(server: FakeWindlass) -> None:
    """Retries are bounded: else a caller would hang on a server that never comes back."""
    async with Client(server.url, TOKEN, retries=2) as client:
        for _ in range(3):
            server.refuse("/version", refusal(503, "Leaving.", Retry_After="0"))
        with pytest.raises(errors.Unavailable, match="Leaving"):
            await client.version()
    assert count(server, "GET", "/version") == 3


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.BadRequest),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (413, errors.TooLarge),
        (421, errors.Misdirected),
        (422, errors.Invalid),
        (500, ServerFailed),
    ],
)
async def test_a_refusal_is_raised_by_its_status_with_the_servers_words(
    server: FakeWindlass, client: Client, status: int, kind: type[errors.WindlassError]
) -> None:
    """Else callers would have to read numbers, and people would not learn what to do."""
    server.refuse("/workspaces", refusal(status, "What is wrong, and what to do."))
    with pytest.raises(kind, match="What is wrong, and what to do") as caught:
        await client.workspaces()
    assert caught.value.status == status


async def test_a_wrong_token_is_unauthorized(server: FakeWindlass) -> None:
    """Else a person with an old token would look for the fault in the network."""
    async with Client(server.url, "another") as client:
        with pytest.raises(errors.Unauthorized):
            await client.workspaces()


async def test_nothing_listening_is_said_with_what_to_do(unused_tcp_port: int) -> None:
    """Else the first thing a new user sees would be an errno."""
    async with Client(f"http://127.0.0.1:{unused_tcp_port}", TOKEN, retries=0) as client:
        with pytest.raises(ServerUnreachable, match="windlass serve"):
            await client.health()


async def test_a_redirect_is_not_followed(server: FakeWindlass, client: Client) -> None:
    """Else a proxy could send the token to another host."""
    server.refuse("/version", web.Response(status=302, headers={"Location": f"{server.url}/v1/workspaces"}))
    with pytest.raises(ProtocolError):
        await client.version()
    assert count(server, "GET", "/workspaces") == 0


async def test_an_answer_that_is_no_json_is_a_protocol_error(server: FakeWindlass, client: Client) -> None:
    """Else a login page of a proxy would surface as a decoder's exception."""
    server.refuse("/version", web.Response(text="<html>"))
    with pytest.raises(ProtocolError, match="another version"):
        await client.version()


async def test_a_unix_socket_needs_no_token(tmp_path: Path) -> None:
    """The socket's mode is the credential there."""
    async with FakeWindlass().serve(tmp_path / "socket") as server, Client(server.url) as client:
        workspace = await client.open("/somewhere")
        assert workspace.id == "ws_1"


async def test_a_request_on_a_workspace_that_closed_opens_it_again(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """B31: else a client that was idle for a while would get 404 for ever."""
    server.is_open = False
    session = await workspace.create_session("Again")
    assert (session.title, server.creates) == ("Again", 2)


async def test_a_request_on_a_workspace_that_somebody_else_opens_again_is_sent_again(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """After a restart everyone who waits finds it closed, and one of them opens it: the others would be told 404."""
    server.refuse("/sessions", web.json_response({"message": "This workspace is not open."}, status=404))
    assert (await workspace.create_session("Again")).title == "Again"
    assert server.creates == 1


async def test_an_unknown_session_of_an_open_workspace_is_not_found(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """Opening again must not hide what is really unknown, nor loop."""
    with pytest.raises(NotFound, match="no such session"):
        await workspace.session("ses_unknown")
    assert server.creates == 1


async def test_an_id_with_a_slash_names_no_other_route(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """Else an id from somewhere else could turn one request into another."""
    with pytest.raises(NotFound):
        await workspace.session("../../health?x=")
    assert any("..%2F..%2Fhealth%3Fx%3D" in path for _, path in server.requests)


async def test_every_mutation_says_which_client_it_is_from(server: FakeWindlass, client: Client) -> None:
    """B46: else the facts could not say who caused them."""
    workspace = await client.open("/somewhere")
    await workspace.prompt("ses_1", "Hello")
    posts = [path for method, path in server.requests if method == "POST"]
    assert all(f"client_id={client.client_id}" in path for path in posts)


def test_a_client_id_that_is_no_uuid_is_refused_before_anything_is_sent() -> None:
    """Else the mistake would surface as a 400 far from where it was made."""
    with pytest.raises(errors.BadRequest, match="UUID"):
        Client("http://127.0.0.1:1", client_id="me")


def test_an_address_of_another_kind_is_refused_with_what_to_write() -> None:
    """Else `localhost:4747` without http:// would fail with a stack trace."""
    with pytest.raises(errors.Invalid, match="http://HOST:PORT"):
        Client("localhost:4747")


async def test_rules_and_a_cost_limit_go_with_the_prompt(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """A script would believe that its run may cost ten cents, and pay ten dollars."""
    run = await workspace.prompt("ses_1", "Hello", allow=["bash:npm test*"], max_cost=0.1)
    assert (server.prompts[0]["allow"], server.prompts[0]["max_cost"]) == (["bash:npm test*"], 0.1)
    assert repr(run) == f"RunHandle(id='{run.id}', session_id='ses_1', state='accepted')"
