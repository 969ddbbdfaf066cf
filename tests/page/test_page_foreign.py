"""A page of someone else's, in a browser that is signed in here: it can neither read, nor write, nor frame ours."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import Page, Request, Response

from tests.page.browser import REBINDING
from tests.page.foreign_site import ForeignSite
from tests.page.page_world import PageWorld
from tests.page.profile import Profile
from windlass.testing.server_process import WAIT_SECONDS, ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Each returns when the browser has said how it went; what it says is compared below.
READING = {
    "fetch": """(url) => fetch(url, {credentials: "include"}).then(() => "read", () => "refused")""",
    "fetch without cors": """(url) => fetch(url, {credentials: "include", mode: "no-cors"})
        .then((answer) => answer.type + answer.status, () => "refused")""",
    "event source": """(url) => new Promise((done) => {
        const source = new EventSource(url, {withCredentials: true});
        source.onmessage = () => { source.close(); done("read"); };
        source.onerror = () => { source.close(); done("refused"); };
    })""",
    "web socket": """(url) => new Promise((done) => {
        const socket = new WebSocket(url.replace("http:", "ws:"));
        socket.onopen = () => done("read");
        socket.onerror = () => done("refused");
    })""",
    "image": """(url) => new Promise((done) => {
        const image = new Image();
        image.onload = () => done("read"); image.onerror = () => done("refused");
        image.src = url;
    })""",
    "script": """(url) => new Promise((done) => {
        const script = document.createElement("script");
        script.onload = () => done("read"); script.onerror = () => done("refused");
        script.src = url; document.body.append(script);
    })""",
    "style sheet": """(url) => new Promise((done) => {
        const link = document.createElement("link");
        link.onload = () => done("read"); link.onerror = () => done("refused");
        link.rel = "stylesheet"; link.href = url; document.body.append(link);
    })""",
}
REFUSED = {"refused", "opaque0"}  # an opaque answer can be neither read nor told from any other

WRITING = {
    "text without cors": """([url, body]) => fetch(url, {method: "POST", credentials: "include", mode: "no-cors",
        headers: {"Content-Type": "text/plain"}, body}).then(() => "sent", () => "refused")""",
    "json": """([url, body]) => fetch(url, {method: "POST", credentials: "include",
        headers: {"Content-Type": "application/json"}, body}).then(() => "sent", () => "refused")""",
    "no type": """([url, body]) => fetch(url, {method: "POST", credentials: "include", mode: "no-cors",
        body: new Blob([body])}).then(() => "sent", () => "refused")""",
    "form": """([url, body]) => new Promise((done) => {
        const frame = Object.assign(document.createElement("iframe"), {name: "sink"});
        const form = Object.assign(document.createElement("form"), {
            method: "POST", action: url, enctype: "text/plain", target: "sink"});
        const name = body.slice(0, -1) + ', "x": "';  // with the = that a form puts in between it is JSON again
        const field = Object.assign(document.createElement("input"), {name, value: '"}'});
        document.body.append(frame, form); form.append(field);
        frame.addEventListener("load", () => done("sent"));
        form.submit();
    })""",
    "beacon": """async ([url, body]) => {
        navigator.sendBeacon(url, new Blob([body], {type: "text/plain"}));
        return "sent";
    }""",
}


class Attack:
    """A signed-in browser that looks at a foreign page, and what the server answered to it."""

    def __init__(self, world: PageWorld, profile: Profile, page: Page) -> None:
        self.world = world
        self.profile = profile
        self.page = page
        self.answers: list[Response] = []
        self.tried = asyncio.Event()  # a request to the server is over, however it ended
        profile.context.on("response", self._on_response)
        profile.context.on("requestfinished", self._on_over)
        profile.context.on("requestfailed", self._on_over)

    def _on_response(self, response: Response) -> None:
        if response.url.startswith(self.world.server.url):
            self.answers.append(response)

    def _on_over(self, request: Request) -> None:
        if request.url.startswith(self.world.server.url):
            self.tried.set()


async def attack(world: PageWorld, origin: str) -> Attack:
    profile = await world.person()
    profile.visits(origin)
    profile.visits(world.server.url.replace("http:", "ws:"))
    profile.expect(".*")  # the browser reports each refusal as an error, which is what is wanted
    page = await profile.context.new_page()
    await page.goto(origin)
    return Attack(world, profile, page)


async def state(world: PageWorld) -> Any:
    client = await world.client()
    sessions = await client.ok("GET", "W/sessions")
    return [
        [(session["id"], session["title"], session["message_count"]) for session in sessions],
        await client.ok("GET", "W/runs"),
        await client.ok("GET", "W/permissions/skip"),
    ]


@pytest.mark.parametrize("way", READING)
async def test_a_foreign_page_reads_nothing_although_the_browser_has_the_cookie(world: PageWorld, way: str) -> None:
    """Any page a person visits could read their conversations (A5 A6)."""
    client = await world.client()
    await client.new_session("secret")
    async with ForeignSite() as site:
        foreign = await attack(world, site.origin)
        path = f"W/events?client_id={client.client_id}" if way == "event source" else "W/sessions"
        said = await foreign.page.evaluate(READING[way], client.address(path))
        await foreign.profile.context.close()
    assert said in REFUSED
    assert {answer.status for answer in foreign.answers} <= {401, 403}


@pytest.mark.parametrize("way", WRITING)
async def test_a_foreign_page_writes_nothing_although_the_browser_has_the_cookie(world: PageWorld, way: str) -> None:
    """Any page a person visits could have the agent run commands in their name (A5 A7)."""
    client = await world.client()
    session_id = await client.new_session("ours")
    before = await state(world)
    async with ForeignSite() as site:
        foreign = await attack(world, site.origin)
        body = f'{{"session_id": "{session_id}", "prompt": "touch a file"}}'
        await foreign.page.evaluate(WRITING[way], [client.address("W/agent"), body])
        await asyncio.wait_for(foreign.tried.wait(), WAIT_SECONDS)
        await foreign.profile.context.close()
    assert {answer.status for answer in foreign.answers} <= {401, 403, 415}
    assert await state(world) == before


async def test_a_foreign_page_cannot_frame_the_page(world: PageWorld) -> None:
    """A person could be made to click on "Allow" without seeing it."""
    async with ForeignSite() as site:
        foreign = await attack(world, site.origin)
        await foreign.page.evaluate(
            """(url) => new Promise((done) => {
                const frame = document.createElement("iframe");
                frame.addEventListener("load", done);
                frame.src = url; document.body.append(frame);
            })""",
            world.server.url + "/",
        )
        shown = [await frame.content() for frame in foreign.page.frames[1:]]
        await foreign.profile.context.close()
    assert len(shown) == 1 and "windlass" not in shown[0].lower()
    assert {answer.status for answer in foreign.answers} <= {401, 403}


async def test_a_window_that_a_foreign_page_opened_tells_it_nothing(world: PageWorld) -> None:
    """A page elsewhere could open ours and look into it, or steer it."""
    async with ForeignSite() as site:
        foreign = await attack(world, site.origin)
        async with foreign.profile.context.expect_page() as opened:
            await foreign.page.evaluate("(url) => { window.opened = window.open(url); }", world.server.url + "/")
        await (await opened.value).wait_for_load_state()
        said = await foreign.page.evaluate(
            "() => { try { return window.opened.document.title; } catch { return 'refused'; } }"
        )
        await foreign.profile.context.close()
    assert said in ("refused", "")
    assert {answer.status for answer in foreign.answers} <= {401, 403}


async def test_a_name_that_was_pointed_at_this_machine_is_misdirected(world: PageWorld) -> None:
    """A page whose name suddenly means this machine would count as ours in every browser (A4 A8)."""
    origin = world.server.url.replace("127.0.0.1", REBINDING)
    profile = await world.person()
    profile.visits(origin)
    profile.expect("421")
    page = await profile.context.new_page()
    answer = await page.goto(origin)
    assert answer is not None and answer.status == 421


async def test_a_page_whose_name_is_rebound_to_the_server_while_it_is_open_reads_nothing(
    world: PageWorld, tmp_path: Any
) -> None:
    """The attack that loopback servers fall to: same origin for the browser, another machine than before (A8)."""
    async with ForeignSite() as site:
        origin = f"http://{REBINDING}:{site.port}"
        profile = await world.person()
        profile.visits(origin)
        profile.expect("421")
        page = await profile.context.new_page()
        await page.goto(origin)
    server = ServerProcess(tmp_path / "rebound", "--drain", "0", listen=f"127.0.0.1:{site.port}")
    async with server:
        statuses = await page.evaluate(
            """() => Promise.all([
                fetch("/v1/workspaces"), fetch("/"), fetch("/v1/health"), fetch("/page/main.js"),
                fetch("/v1/workspaces", {method: "POST", headers: {"Content-Type": "application/json"}, body: "{}"}),
            ].map((asked) => asked.then((answer) => answer.status)))"""
        )
        await page.close()
    assert statuses == [421] * 5
