"""What a person sees in one tab, and does there, by the names that the page gives its parts (`data-testid`)."""

from playwright.async_api import Locator, Page, expect

from tests.page.profile import PATIENCE_MILLISECONDS

expect.set_options(timeout=PATIENCE_MILLISECONDS)

# A headless browser never hides a tab, so the page is told that it is hidden.
_HIDE = """(hidden) => {
    Object.defineProperty(document, "visibilityState", {configurable: true, get: () => hidden ? "hidden" : "visible"});
    Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
    document.dispatchEvent(new Event("visibilitychange"));
}"""


class Screen:
    """One tab. `screen("prompt")` is the part of that name; the methods are what people do."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def __call__(self, name: str) -> Locator:
        return self.page.get_by_test_id(name)

    async def is_live(self) -> None:
        await expect(self("connection")).to_have_text("live", ignore_case=True)

    async def prompt(self, text: str) -> None:
        """Type a prompt and send it with Enter."""
        await self("prompt").fill(text)
        await self("prompt").press("Enter")

    async def shows(self, *texts: str) -> None:
        """Each of them is somewhere in the conversation."""
        for text in texts:
            await expect(self("conversation")).to_contain_text(text)

    async def shows_once(self, text: str) -> None:
        """Exactly one message has it."""
        await expect(self("message").filter(has_text=text)).to_have_count(1)

    async def look_away(self) -> None:
        """Another tab is in front now."""
        await self.page.evaluate(_HIDE, True)

    async def look_back(self) -> None:
        await self.page.evaluate(_HIDE, False)

    async def choose(self, item: str) -> None:
        """Open the menu of the session and take the item with these words."""
        await self("menu").click()
        await self.page.get_by_role("menuitem", name=item).click()
