"""Single-use tickets: how a browser that cannot send a header gets a cookie."""

import asyncio
import secrets
from pathlib import Path

from windlass import limits
from windlass.clock import Clock
from windlass.errors import TooMany
from windlass.server.tokens import Identity, Scope, TokenStore

COOKIE = "windlass"
_BROWSER = "browser-"


class Tickets:
    """Outstanding tickets, in memory: a restart voids them, which costs a second click."""

    def __init__(self, tokens: TokenStore, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock
        self._tickets: dict[str, tuple[float, Scope, Identity]] = {}

    def issue(self, issuer: Identity, scope: Scope = "operate") -> str:
        """A ticket worth at most what its issuer may do, and only as long as the issuer's token is good."""
        now = self._clock.now()
        for ticket in [t for t, (until, _, _) in self._tickets.items() if until <= now]:
            del self._tickets[ticket]
        if len(self._tickets) >= limits.TICKETS:
            raise TooMany("Too many tickets are waiting to be used.", retry_after=60)
        ticket = secrets.token_urlsafe(24)
        granted: Scope = "read" if "read" in (scope, issuer.scope) else "operate"
        self._tickets[ticket] = (now + limits.TICKET_SECONDS, granted, issuer)
        return ticket

    async def redeem(self, ticket: str) -> str | None:
        """The cookie for a ticket, once; None for one that was used, is too old, never was, or whose issuer's token was
        taken back (A10)."""
        if ticket not in self._tickets:
            return None
        until, scope, issuer = self._tickets.pop(ticket)
        self._tokens.refresh()
        if until <= self._clock.now() or not self._tokens.is_live(issuer):
            return None
        # In a thread: it waits for the disk, and for a lock that the command line may hold.
        return await asyncio.to_thread(_new_cookie, self._tokens.directory, scope)


def _new_cookie(data_dir: Path, scope: Scope) -> str:
    tokens = TokenStore(data_dir)  # the loop's own is not for two threads; it will see that the file has changed
    browsers = [info.name for info in tokens.list() if info.name.startswith(_BROWSER)]
    for name in browsers[: -limits.BROWSER_TOKENS + 1]:
        tokens.revoke(name)  # the oldest: a browser that still needs it asks for a ticket again
    # The cookie is a token of its own, so that it survives a restart and can be revoked by its name.
    return tokens.create(f"{_BROWSER}{secrets.token_hex(4)}", scope)
