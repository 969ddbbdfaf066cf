"""Text that wants to be more than text, in every place where the page shows what others said: it stays text (A41)."""

import base64
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect

from tests.page.foreign_site import ForeignSite
from tests.page.page_world import PageWorld, address
from tests.page.screen import Screen

pytestmark = pytest.mark.asyncio(loop_scope="session")

MARK = "still-only-text"  # how a test knows that the text is shown at all
SVG = '<svg xmlns="http://www.w3.org/2000/svg" onload="window.__pwned=1"><script>window.__pwned=1</script></svg>'
FILE_NAME = f'{MARK} <img src=x onerror="window.__pwned=1">.txt'


class Lure:
    """A site elsewhere that must never be asked for anything, and markup that wants to reach it."""

    def __init__(self, site: ForeignSite) -> None:
        self.site = site

    @property
    def markup(self) -> str:
        """One line of HTML that runs a script or loads something in every way that there is."""
        leak = f"{self.site.origin}/leak"
        return (
            f"{MARK}<script>window.__pwned=1</script><img src=x onerror=window.__pwned=1><img src='{leak}'>"
            f"<svg onload=window.__pwned=1><iframe src='{leak}'></iframe><style>@import '{leak}';</style>"
            f"<link rel=stylesheet href='{leak}'><base href='{leak}'><meta http-equiv=refresh content='0;{leak}'>"
            f"<a href='javascript:window.__pwned=1'>here</a><form action='{leak}'><button>Go</button></form>"
        )

    @property
    def brief(self) -> str:
        """Short enough for a title, and for an answer to choose."""
        return f"{MARK}<script>window.__pwned=1</script><img src='{self.site.origin}/leak' onerror=window.__pwned=1>"

    @property
    def markdown(self) -> str:
        leak = f"{self.site.origin}/leak"
        data = base64.b64encode(SVG.encode()).decode()
        return "\n\n".join(
            [
                self.markup,
                "[script link](javascript:window.__pwned=1) [spaced](java\tscript:window.__pwned=1)",
                "[entity](&#106;avascript:window.__pwned=1) [vb](vbscript:x) [file](file:///etc/passwd)",
                "[data link](data:text/html;base64,PHNjcmlwdD53aW5kb3cuX19wd25lZD0xPC9zY3JpcHQ+)",
                f"![picture]({leak}.png) ![drawn](data:image/svg+xml;base64,{data})",
                f"<javascript:window.__pwned=1> <{leak}-auto>",
                '[titled](https://127.0.0.1/ "\\" onmouseover=window.__pwned=1 x=")',
                f"```html\n{self.markup}\n```",
                f"```<img/src=x/onerror=window.__pwned=1>\n{MARK}\n```",
                f"| {self.markup.replace('|', '')} | b |\n|---|---|\n| <b onclick=window.__pwned=1>c</b> | d |",
                "[ref]\n\n[ref]: javascript:window.__pwned=1",
            ]
        )


@pytest_asyncio.fixture(loop_scope="session")
async def lure(world: PageWorld) -> AsyncIterator[Lure]:
    """Afterwards: no script of anyone's has run in any tab, and nobody elsewhere was asked for anything."""
    async with ForeignSite() as site:
        yield Lure(site)
        for profile in world.profiles:
            for page in profile.context.pages:
                assert await page.evaluate("window.__pwned") is None, "a script of someone else's has run"
                assert await _dangerous(page.locator("body")) == []
        assert site.asked == [], "something was loaded from elsewhere"


async def _dangerous(body: Locator) -> list[str]:
    """Elements and attributes that only markup from elsewhere could have brought."""
    found: list[str] = await body.evaluate(
        """(body) => [...body.querySelectorAll("*")].flatMap((element) => [
            ...[...element.attributes].filter((one) => /^on/i.test(one.name)).map((one) => one.name),
            ...["href", "src", "action", "formaction"].map((name) => element.getAttribute(name) ?? "")
                .filter((value) => /^[\\s\\x00-\\x1f]*(javascript|vbscript|file|data:text)/i.test(value)),
            ...(element.matches("iframe, object, embed, base, meta, style, body script") ? [element.outerHTML] : []),
        ])"""
    )
    return found


async def test_a_title_and_a_directory_stay_text(world: PageWorld, lure: Lure) -> None:
    """Whoever may name a session could run scripts in everyone's browser. A41"""
    directory = world.directory / FILE_NAME
    directory.mkdir()
    client = await world.client_of(directory)
    session_id = await client.new_session(lure.brief)
    screen = await world.screen(address(client, session_id))
    await expect(screen("session-item").filter(has_text=MARK)).to_contain_text("<script>")
    await expect(screen("workspace-item").filter(has_text=MARK).first).to_contain_text("<img")
    await screen("menu").click()
    assert MARK in await screen.page.locator("header").first.inner_text()


async def test_what_the_model_says_stays_text(world: PageWorld, lure: Lure) -> None:
    """A web page that the model read could have it say something that runs in everyone's browser. A41"""
    client = await world.client()
    screen = await world.screen(await world.session(client))
    await screen.is_live()
    await screen.prompt(lure.markup)
    call = await world.call()
    await call.think(lure.markup)
    for piece in lure.markdown.splitlines(keepends=True):
        await call.say(piece)  # also half of it must do nothing
    await screen.shows("<script>window.__pwned=1</script>")
    await call.end()
    await expect(screen("run-end")).to_have_count(1)
    links = screen("conversation").get_by_role("link")
    for link in await links.all():
        href = str(await link.get_attribute("href"))
        assert href.startswith(("http://", "https://", "mailto:", "#")), href
        if not href.startswith("#"):
            assert await link.get_attribute("rel") == "noopener noreferrer"
    await screen.page.reload()
    await screen.shows("<script>window.__pwned=1</script>")


async def test_what_tools_say_and_files_are_called_stays_text(world: PageWorld, lure: Lure) -> None:
    """A file in a cloned project could run scripts in everyone's browser. A41 A26"""
    (world.directory / FILE_NAME).write_text(lure.markup)
    client = await world.client()
    screen = await world.screen(await world.session(client))
    await screen.is_live()
    await screen.prompt("Look around.")
    await world.use("ls", {"path": "."})
    await world.use("view", {"file_path": FILE_NAME})
    await world.use("no<img src=x onerror=window.__pwned=1>", {"x": lure.markup})
    await (await world.call()).fail(400, {"error": {"message": lure.markup}})
    await expect(screen("run-end")).to_have_count(1)
    for fold in await screen("tool-call").all():
        await fold.locator("summary").first.click()
    await screen.shows('<img src=x onerror="window.__pwned=1">.txt', "<script>window.__pwned=1</script>")


async def test_what_is_asked_stays_text(world: PageWorld, lure: Lure) -> None:
    """The card on which a person decides would be drawn by whom it is about. A26 A41"""
    client = await world.client()
    screen = await world.screen(await world.session(client))
    await screen.is_live()
    await screen.prompt("Ask me.")
    choice = {"label": lure.brief, "description": lure.brief}
    question = {"type": "single_choice", "question": lure.brief, "choices": [choice, {"label": "No"}]}
    await world.use("question", {"questions": [question]})
    await expect(screen("question-card")).to_contain_text("<script>")
    await screen("question-card").get_by_role("radio").first.check()
    await screen("answer-send").click()
    await world.use("bash", {"command": f"echo '{MARK}' <img> # \u202egnihton \u200b {lure.markup}"})
    await expect(screen("permission-card")).to_contain_text("<script>")
    shown = await screen("permission-card").inner_text()
    assert "\u202e" not in shown and "\u200b" not in shown  # what could hide a part of the command is made visible
    await screen("deny").click()
    await world.use("write", {"file_path": FILE_NAME, "content": lure.markup})
    await expect(screen("permission-card")).to_contain_text("<script>")
    await screen("deny").click()
    await world.answer("Good.")


async def test_attachments_searches_and_pictures_of_a_run_stay_text(world: PageWorld, lure: Lure) -> None:
    """A picture that someone sent could be a program. A41"""
    client = await world.client()
    session_id = await client.new_session(lure.brief)
    attached = [
        {"file_path": FILE_NAME, "file_name": FILE_NAME, "mime_type": kind, "content": base64.b64encode(body).decode()}
        for kind, body in (("image/svg+xml", SVG.encode()), ("text/plain", lure.markup.encode()))
    ]
    accepted = await client.prompt(session_id, f"Keep this: {lure.markup}", attachments=attached)
    await world.use("ls", {"path": lure.markup})
    await world.answer(f"Kept. {lure.markup}")
    await client.run_over(accepted["run_id"])
    screen = await world.screen(address(client, session_id) + f"/run/{accepted['run_id']}")
    await expect(screen("timeline")).to_be_visible()
    await screen.shows(MARK)
    await search_for(screen, MARK)
    await expect(screen("search-hit").first).to_contain_text(MARK)


async def search_for(screen: Screen, text: str) -> None:
    await screen.page.keyboard.press("Control+k")
    await screen("search-input").fill(text)
