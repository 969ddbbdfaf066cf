"""Routes that only look: rendered Markdown, a search, a run's timeline, the workspaces that were open once."""

import json

import pytest
from door_client import DoorClient
from world import World

from windlass import limits
from windlass.client import Client
from windlass.testing.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def rendered(door: DoorClient, texts: list[str], token: str = "") -> object:
    body = json.dumps({"texts": texts}).encode()
    answer = await door.send("POST", "/v1/markdown", body, token=token or door.server.token)
    assert answer.status == 200, answer.text
    return answer.json["html"]


async def test_each_text_is_rendered_in_its_place(door: DoorClient) -> None:
    """A page would show one message's words in another."""
    assert await rendered(door, ["*a*", "", "<b>", "*a*"]) == [
        "<p><em>a</em></p>\n",
        "",
        "<p>&lt;b&gt;</p>\n",
        "<p><em>a</em></p>\n",
    ]


async def test_a_reader_may_have_texts_rendered(door: DoorClient, tokens: dict[str, str]) -> None:
    """A dashboard with a read token would show marks instead of text (A12)."""
    assert await rendered(door, ["**b**"], tokens["read"]) == ["<p><strong>b</strong></p>\n"]


async def test_half_of_a_character_breaks_nothing(door: DoorClient) -> None:
    """One bad text would leave a whole conversation unrendered."""
    answer = await door.send("POST", "/v1/markdown", b'{"texts": ["\\ud800 *a*"]}', token=door.server.token)
    assert answer.status in (200, 400), answer.text


@pytest.mark.parametrize(
    "texts",
    [["a"] * (limits.MARKDOWN_TEXTS + 1), ["a" * limits.MARKDOWN_REQUEST_CHARACTERS, "b"]],
    ids=["many", "long"],
)
async def test_more_texts_than_fit_are_refused(texts: list[str], door: DoorClient) -> None:
    """One request could keep the server rendering for minutes (A38)."""
    answer = await door.send("POST", "/v1/markdown", json.dumps({"texts": texts}).encode(), token=door.server.token)
    assert answer.status == 422 and "Send fewer" in answer.message


async def test_a_search_finds_what_was_said(world: World, door: DoorClient) -> None:
    """People would scroll."""
    target = f"/v1/workspaces/{world.ids['workspace_id']}/search?q=TOUCH%20A%20file"
    (hit,) = (await door.send("GET", target, token=door.server.token)).json
    assert hit["session_id"] == world.ids["session_id"] and hit["message_id"] == world.ids["message_id"]
    assert (hit["excerpt"], hit["role"]) == ("touch a file", "user")


QUERIES = [
    ("", 400),
    ("q=", 400),
    ("q=a", 422),
    ("q=%20%20%20", 422),
    ("q=" + "a" * 201, 422),
    ("q=ab&limit=0", 400),
    ("q=ab&limit=x", 400),
    (f"q=ab&limit={limits.SEARCH_HITS + 1}", 400),
    ("q=ab", 200),
    ("q=" + "a" * 200, 200),
]


@pytest.mark.parametrize(("query", "status"), QUERIES)
async def test_what_is_looked_for_must_be_some_words(query: str, status: int, world: World, door: DoorClient) -> None:
    """One letter would bring everything, and a whole page nothing."""
    target = f"/v1/workspaces/{world.ids['workspace_id']}/search?{query}"
    assert (await door.send("GET", target, token=door.server.token)).status == status


async def test_a_percent_sign_is_looked_for_as_it_is(world: World, door: DoorClient) -> None:
    """It would find everything."""
    target = f"/v1/workspaces/{world.ids['workspace_id']}/search?q=%25%25"
    assert (await door.send("GET", target, token=door.server.token)).json == []


async def test_the_timeline_of_a_run_shows_what_it_waits_for(world: World, door: DoorClient) -> None:
    """Nobody could see that it is their turn."""
    target = f"/v1/workspaces/{world.ids['workspace_id']}/runs/{world.ids['waiting_run_id']}/timeline"
    timeline = (await door.send("GET", target, token=door.server.token)).json
    assert (timeline["end"], timeline["whole"]) == (0.0, True)
    kinds = [(span["kind"], "end" in span) for span in timeline["spans"]]
    assert kinds == [("model", True), ("tool", False), ("permission", False)]


async def test_an_unknown_run_has_no_timeline(world: World, door: DoorClient) -> None:
    """It would be told as a run in which nothing happened."""
    target = f"/v1/workspaces/{world.ids['workspace_id']}/runs/run_0/timeline"
    assert (await door.send("GET", target, token=door.server.token)).status == 404


async def test_a_closed_workspace_is_listed_when_all_are_asked_for(
    server: ServerProcess, world: World, door: DoorClient, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """After a restart the page would be empty, and people would have to remember their projects' paths."""
    directory = tmp_path_factory.mktemp("closed")
    async with World(server, directory) as other:
        workspace_id = other.ids["workspace_id"]
    every = (await door.send("GET", "/v1/workspaces?all=1", token=server.token)).json
    listed = {workspace["id"]: workspace for workspace in every}
    assert listed[workspace_id].pop("updated_at") > 0
    assert listed[workspace_id] == {"id": workspace_id, "path": str(directory), "closed": True}
    mine = listed[world.ids["workspace_id"]]
    assert "closed" not in mine and mine["config"]["models"] and mine["updated_at"] > 0
    only_open = (await door.send("GET", "/v1/workspaces", token=server.token)).json
    assert workspace_id not in {workspace["id"] for workspace in only_open}
    assert not any("updated_at" in workspace for workspace in only_open)


async def test_the_python_client_has_all_of_this(server: ServerProcess, fresh_world: World) -> None:
    """Whoever writes a program would have to speak HTTP for it."""
    async with Client(server.url, server.token) as client:
        workspace = await client.open(fresh_world.directory)
        assert await client.markdown(["*a*"]) == ["<p><em>a</em></p>\n"]
        assert workspace.id in {known.id for known in await client.workspaces(all=True)}
        assert (await client.ticket()).urls[0].startswith(server.url + "/?ticket=")
        assert [hit.excerpt for hit in await workspace.search("touch a", limit=1)] == ["touch a file"]
        timeline = await workspace.timeline(fresh_world.ids["waiting_run_id"])
        assert [span.kind for span in timeline.spans] == ["model", "tool", "permission"]
        await client.retire()
