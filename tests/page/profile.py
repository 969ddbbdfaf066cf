"""One person's browser: a profile with its own cookies, and its tabs, watched for everything that must never happen.

A profile fails its test when it is closed if a page of it reported an error, broke the content security policy, opened
a dialog nobody expected, or asked anyone but the server for anything.
"""

import re
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, ConsoleMessage, Dialog, Page, Request, WebError

from tests.page.contexts import Contexts
from windlass.testing.server_process import Api, ServerProcess

PATIENCE_MILLISECONDS = 15_000  # the longest a test waits for the page: four browsers may start on a full machine


# What waits for a person on a page, with what the page notes on it: whether it was answered, and held back.
_CARDS = """() => [...document.querySelectorAll("[data-testid$=-card]")].map(
    (card) => JSON.stringify({...card.dataset, classes: card.className, says: card.innerText.slice(0, 300)}))"""
_LATEST_REQUESTS = 12


class Profile:
    """`tab()` opens the page in one more tab; `errors` is what went wrong so far."""

    def __init__(self, server: ServerProcess, contexts: Contexts, context: BrowserContext) -> None:
        self.server = server
        self.context = context
        self._contexts = contexts
        self.errors: list[str] = []
        self.requests: list[Request] = []
        self._expected: list[str] = []
        self._origins = {server.url}
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        self._listeners = {
            "console": self._on_console,
            "weberror": self._on_error,
            "request": self._on_request,
            "dialog": self._on_dialog,
        }
        for event, listener in self._listeners.items():
            context.on(event, listener)  # type: ignore[call-overload]

    async def sign_in(self) -> None:
        """Trade a ticket for the cookie, as opening the link does that the server printed."""
        answer = await self.context.request.get(self.server.url + await ticket(self.server), max_redirects=0)
        assert answer.status == 303, await answer.text()

    async def tab(self, path: str = "/") -> Page:
        """The page in a new tab; `path` begins with `/`."""
        page = await self.context.new_page()
        await page.goto(self.server.url + path)
        return page

    def expect(self, pattern: str) -> None:
        """Errors that match are what this test is about."""
        self._expected.append(pattern)

    def visits(self, origin: str) -> None:
        """This test goes to another site on purpose."""
        self._origins.add(origin)

    async def shown(self) -> list[str]:
        """What stands on the pages of this browser, and its latest requests: for a test that waited in vain."""
        lines = [f"{page.url}: {card}" for page in self.context.pages for card in await page.evaluate(_CARDS)]
        for page in self.context.pages:
            lines += await page.evaluate("window.presses ?? []")
        for request in self.requests[-_LATEST_REQUESTS:]:
            answer = request.existing_response
            lines.append(f"{request.method} {request.url}: {answer.status if answer else request.failure}")
        return lines

    async def close(self) -> None:
        await self._contexts.give_back(self.context, self.server.url)
        for event, listener in self._listeners.items():
            self.context.remove_listener(event, listener)
        assert self.errors == [], "the browser reported:\n  " + "\n  ".join(self.errors)

    def _note(self, text: str) -> None:
        if not any(re.search(pattern, text) for pattern in self._expected):
            self.errors.append(text)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._note(f"{message.text} ({message.location.get('url', '')})")

    def _on_error(self, error: WebError) -> None:
        self._note(f"uncaught: {error.error}")

    def _on_request(self, request: Request) -> None:
        self.requests.append(request)
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and f"{parts.scheme}://{parts.netloc}" not in self._origins:
            self._note(f"a request to {request.url}")

    async def _on_dialog(self, dialog: Dialog) -> None:
        self._note(f"dialog: {dialog.message}")
        await dialog.dismiss()


async def ticket(server: ServerProcess) -> str:
    """The path with a new ticket in it."""
    async with Api(server) as api:
        return str((await api.ok("POST", "/v1/tickets"))["path"])
