"""The browser's contexts: cookies, storage and cache of one person each, apart from everybody else's.

Most tests want someone who just looks at the page. They take turns at contexts that were used before: everything in
them is wiped but the cache, so that the seventy files of the page are not loaded anew for every test.
"""

from typing import Any

from playwright.async_api import Browser, BrowserContext

# Said again as an error, because a violation that the page itself swallows would otherwise go unseen.
_TELL_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy violation: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""


# The latest presses: for a test that waits in vain for what a click should have done.
_REMEMBER_PRESSES = """
window.presses = [];
for (const kind of ["pointerdown", "pointerup", "click"]) addEventListener(kind, (event) => {
  const place = `${Math.round(event.clientX)},${Math.round(event.clientY)}`;
  const name = event.target.closest?.("[data-testid]")?.dataset.testid ?? event.target.className;
  window.presses.push(`${Math.round(event.timeStamp)} ms ${kind} at ${place} on ${event.target.nodeName} ${name}`);
  window.presses.splice(0, window.presses.length - 9);
}, true);
"""


class Contexts:
    """Those of one browser."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self._free: list[BrowserContext] = []
        self._lent: set[BrowserContext] = set()

    async def new(self, **options: Any) -> BrowserContext:
        """One that nobody has used; it is closed when it is given back."""
        # Without motion: nobody watches, and drawing sixty pictures a second of something that turns is not for free.
        context = await self.browser.new_context(**{"reduced_motion": "reduce", **options})
        await context.add_init_script(_TELL_VIOLATIONS + _REMEMBER_PRESSES)
        return context

    async def lend(self) -> BrowserContext:
        """One that may have been used before; whoever has it must leave nothing on it but pages, and not close it."""
        context = self._free.pop() if self._free else await self.new()
        self._lent.add(context)
        return context

    async def give_back(self, context: BrowserContext, origin: str) -> None:
        """`origin`: the only site that was visited with a lent one."""
        if context not in self._lent:
            await context.close()
            return
        self._lent.remove(context)
        # A page of nobody's, so that the wiping comes after everything that the test's own pages may still store.
        blank = await context.new_page()
        for page in context.pages:
            if page is not blank:
                await page.close()
        session = await context.new_cdp_session(blank)
        await session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        await context.clear_cookies()
        await blank.close()
        self._free.append(context)
