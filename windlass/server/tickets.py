"""Single-use tickets: how a browser that cannot send a header gets a cookie."""

import asyncio
import secrets
from pathlib import Path

from windlass import limits
from windlass.clock import Clock
from windlass.errors import TooMany
from windlass.server.tokens import Scope, TokenStore

COOKIE = "windlass"
_BROWSER = "browser-"


class Tickets:
    """Outstanding tickets, in memory: a restart voids them, which costs a second click."""

    def __init__(self, tokens: TokenStore, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock
        self._tickets: dict[str, tuple[float, Scope]] = {}

    def issue(self, scope: Scope) -> str:
        """A ticket worth at most what its issuer may do."""
        now = self._clock.now()
        for ticket in [t for t, (until, _) in self._tickets.items() if until <= now]:
            del self._tickets[ticket]
        if len(self._tickets) >= limits.TICKETS:
            raise TooMany("Too many tickets are waiting to be used.", retry_after=60)
        ticket = secrets.token_urlsafe(24)
        self._tickets[ticket] = (now + limits.TICKET_SECONDS, "read" if scope == "read" else "operate")
        return ticket

    async def redeem(self, ticket: str) -> str | None:
        """The cookie for a ticket, once; None for one that was used, is too old, or never was."""
        entry = self._tickets.pop(ticket, None)
        if entry is None or entry[0] <= self._clock.now():
            return None
        # In a thread: it waits for the disk, and for a lock that the command line may hold.
        return await asyncio.to_thread(_new_cookie, self._tokens.directory, entry[1])


def _new_cookie(data_dir: Path, scope: Scope) -> str:
    tokens = TokenStore(data_dir)  # the loop's own is not for two threads; it will see that the file has changed
    browsers = [info.name for info in tokens.list() if info.name.startswith(_BROWSER)]
    for name in browsers[: -limits.BROWSER_TOKENS + 1]:
        tokens.revoke(name)  # the oldest: a browser that still needs it asks for a ticket again
    # The cookie is a token of its own, so that it survives a restart and can be revoked by its name.
    return tokens.create(f"{_BROWSER}{secrets.token_hex(4)}", scope)
