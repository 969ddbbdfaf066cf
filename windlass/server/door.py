"""The door: everything a request must pass before it reaches a route.

In this order: Host, Origin, credential, size, content type. A request that fails one is answered here, and nothing more
of it is looked at.
"""

import asyncio
import ipaddress
import re
import secrets
import time
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

import structlog

from windlass import limits
from windlass.errors import (
    BadRequest,
    Forbidden,
    Misdirected,
    TooLarge,
    TooMany,
    TooSlow,
    Unauthorized,
    UnsupportedMedia,
    WindlassError,
)
from windlass.server.refusals import NO_CREDENTIAL, is_person, refuse
from windlass.server.tickets import COOKIE
from windlass.server.tokens import Identity, TokenStore

logger = structlog.get_logger("windlass.http")
OPEN_PATHS = frozenset({"/v1/health"})
# A POST for its body's sake only: it changes nothing, so that a token that may only read may send it.
READING_POSTS = frozenset({("POST", "/v1/markdown")})
_SAFE_METHODS = frozenset({"GET", "HEAD"})
_ONCE = frozenset({b"host", b"authorization", b"content-length", b"origin", b"content-type", b"cookie"})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")
_SIMPLE_TYPES = frozenset({b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data"})
_UNWELCOME = frozenset({401, 403, 421, 429})
Headers = dict[bytes, bytes]


class Door:
    """An ASGI app around the routes. `trusted`: a Unix socket, whose file mode is the credential."""

    def __init__(self, app: Any, tokens: TokenStore, allow_hosts: Iterable[str] = (), *, trusted: bool = False) -> None:
        self._app = app
        self._tokens = tokens
        self._allowed = frozenset(host.lower() for host in allow_hosts)
        self._trusted = trusted
        self._failures: dict[str, tuple[float, int]] = {}  # by peer: start of the window, count

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        request_id = secrets.token_hex(8)
        scope["windlass.request_id"] = request_id
        started = time.perf_counter()
        status = 0

        async def watched_send(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode()), *_HEADERS]
            await send(message)

        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        name = "-"
        try:
            identity = self._admit(scope)
            name = identity.name
            scope["windlass.identity"] = identity
            await self._app(scope, _Body(receive).receive, watched_send)
        except WindlassError as error:
            accept = dict(scope["headers"]).get(b"accept", b"")
            to_person = is_person(scope["method"], scope["path"], accept)
            await refuse(error, request_id, watched_send, to_person=to_person)
        finally:
            self._log(scope, status, started, name)

    def _log(self, scope: Any, status: int, started: float, name: str) -> None:
        milliseconds = round((time.perf_counter() - started) * 1000, 1)
        quiet = status < 400 and scope["method"] in _SAFE_METHODS
        # What an operator wants to know of: our own failures, and people who should not be here.
        log = logger.warning if status >= 500 or status in _UNWELCOME else logger.debug if quiet else logger.info
        # The path only: a query may hold a ticket. Control characters are escaped when the line is written (A41).
        log("request", method=scope["method"], path=scope["path"], status=status, ms=milliseconds, token=name)

    # -- the checks ---------------------------------------------------------------------------------------------------

    def _admit(self, scope: Any) -> Identity:
        headers = self._headers(scope)
        own_origin = self._check_host(scope, headers)
        self._check_origin(headers, own_origin)
        identity = self._identify(scope, headers)
        self._check_scope(scope, identity)
        self._check_body(scope, headers)
        return identity

    def _headers(self, scope: Any) -> Headers:
        headers: Headers = {}
        for name, value in scope["headers"]:
            if name in headers and name in _ONCE:
                kind = Misdirected if name == b"host" else BadRequest
                raise kind(f"The request has two {name.decode()} headers. Send one.")
            headers[name] = value
        return headers

    def _check_host(self, scope: Any, headers: Headers) -> str:
        """A name that is not ours is a page elsewhere that had its name point here (A4, A8)."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if self._trusted:
            return ""
        if not answers_to(host_name(host), self._allowed):
            raise Misdirected(
                "This server does not answer to that Host. Use 127.0.0.1 or localhost, or start it with --allow-host."
            )
        return f"{scope['scheme']}://{host}"

    def _check_origin(self, headers: Headers, own_origin: str) -> None:
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() != own_origin:
            raise Forbidden("Requests from pages of another origin are refused.")

    def _identify(self, scope: Any, headers: Headers) -> Identity:
        if self._trusted:
            return Identity("unix-socket", "admin")
        if scope["path"] in OPEN_PATHS and scope["method"] in _SAFE_METHODS:
            return Identity("anyone", "read")
        if scope["path"] == "/" and scope["method"] == "GET" and (ticket := _ticket(scope["query_string"])):
            scope["windlass.ticket"] = ticket
            return Identity("ticket", "read")
        identity = self._from_bearer(headers) or self._from_cookie(scope, headers)
        if identity is None:
            # Counted after looking: who floods us with guesses must not lock out those who know a token (A9).
            self._count_guess((scope.get("client") or ("-", 0))[0])
            raise Unauthorized(NO_CREDENTIAL)
        return identity

    def _from_bearer(self, headers: Headers) -> Identity | None:
        scheme, _, secret = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        return self._tokens.identify(secret) if scheme == "Bearer" and secret else None

    def _from_cookie(self, scope: Any, headers: Headers) -> Identity | None:
        """The browser sends a cookie by itself, so the page it comes from must be ours too (A3)."""
        try:
            cookie = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE)
        except CookieError:
            return None
        identity = self._tokens.identify(cookie.value) if cookie is not None else None
        if identity is None:
            return None
        site = headers.get(b"sec-fetch-site", b"")
        if site not in (b"", b"same-origin", b"none"):
            raise Forbidden("Requests from pages of another site are refused.")
        if scope["method"] not in _SAFE_METHODS and b"origin" not in headers:
            raise Forbidden("A request with a cookie needs an Origin.")
        return identity

    def _count_guess(self, peer: str) -> None:
        now = time.monotonic()
        since, count = self._failures.get(peer, (now, 0))
        if now - since > limits.AUTH_FAILURE_WINDOW_SECONDS:
            since, count = now, 0
        if count >= limits.AUTH_FAILURES_PER_PEER:
            left = since + limits.AUTH_FAILURE_WINDOW_SECONDS - now
            raise TooMany("Too many attempts with a wrong token.", retry_after=int(left) + 1)
        if len(self._failures) >= 10_000:
            self._failures.clear()  # bounded: an attacker with that many addresses is not slowed by this anyway
        self._failures[peer] = (since, count + 1)

    def _check_scope(self, scope: Any, identity: Identity) -> None:
        if identity.scope == "worker":
            raise Forbidden("A worker's token opens no client route.")
        only_reads = scope["method"] in _SAFE_METHODS or (scope["method"], scope["path"]) in READING_POSTS
        if identity.scope == "read" and not only_reads:
            raise Forbidden(f"The token {identity.name} may only read. Use one with the scope operate.")

    def _check_body(self, scope: Any, headers: Headers) -> None:
        length = headers.get(b"content-length", b"0")
        has_body = length != b"0" or b"transfer-encoding" in headers
        if scope["method"] in _SAFE_METHODS:
            if has_body:
                raise BadRequest(f"A {scope['method']} request has no body. Send it without one.")
            return
        if not length.isdigit() or int(length) > limits.REQUEST_BODY_BYTES:
            raise TooLarge(f"The body is larger than {limits.REQUEST_BODY_BYTES // limits.MIB} MiB.")
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        # Also without a body: a form or text/plain post is what a foreign page can send without asking (A7).
        if (has_body and kind != b"application/json") or kind in _SIMPLE_TYPES:
            raise UnsupportedMedia("Send JSON, with the header 'Content-Type: application/json'.")


class _Body:
    """Counts what is received and how long it takes, so that a body without a length, or an end, is bounded too."""

    def __init__(self, receive: Any) -> None:
        self._receive = receive
        self._size = 0
        self._complete = False
        self._deadline = asyncio.get_running_loop().time() + limits.REQUEST_BODY_SECONDS

    async def receive(self) -> Any:
        if self._complete:  # what comes now is only that the client has gone, and a stream waits for it for hours
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise TooSlow("The body took too long to arrive. Send it again.") from None
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            if self._size > limits.REQUEST_BODY_BYTES:
                raise TooLarge(f"The body is larger than {limits.REQUEST_BODY_BYTES // limits.MIB} MiB.")
        self._complete = not message.get("more_body", False)
        return message


_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)


def _ticket(query: bytes) -> str:
    """The ticket in a query. Read here only: who passes for having one must be asked for the same one."""
    return parse_qs(query.decode("latin-1")).get("ticket", [""])[0]


def host_name(host: str) -> str:
    """The name or address in a Host header, in lower case as it comes; "" when it is none."""
    match = _HOST.fullmatch(host)
    return match[1].strip("[]") if match else ""


def answers_to(name: str, allowed: frozenset[str]) -> bool:
    """Whether requests for this host are ours to answer. What is no name at all never is, whatever was allowed."""
    return name != "" and (is_loopback(name) or name in allowed)


def is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
