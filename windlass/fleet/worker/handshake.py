"""The request that opens a link: read within bounds, judged before a byte of WebSocket is spoken (A6).

Origin first, then the secret, then whether it is a WebSocket at all: nobody without the secret learns more than that.
"""

import base64
import binascii
import hashlib
import hmac
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import quote

import httptools

from windlass import limits
from windlass.fleet.worker.websocket import accept_key
from windlass.wire.frames import SUBPROTOCOL


class Refusal(Exception):
    """The answer instead of a 101."""

    def __init__(self, status: HTTPStatus, reason: str, header: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.header = header


class Request(NamedTuple):
    """Names of headers are in lower case; a header that came twice has two values."""

    method: str
    path: str
    headers: dict[str, list[str]]

    def header(self, name: str) -> str:
        """Its one value, "" without one. Two are refused: which of them counts is what attacks are made of."""
        values = self.headers.get(name, [])
        if len(values) > 1:
            raise Refusal(HTTPStatus.BAD_REQUEST, f"more than one {name} header")
        return values[0] if values else ""


class RequestReader:
    """Reads one request's head. `rest` is what came behind it."""

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: dict[str, list[str]] = {}
        self._header_count = 0
        self._is_whole = False
        self._bytes = 0
        self.rest = b""

    def feed(self, data: bytes) -> Request | None:
        """The request once its head is whole; raises Refusal when it is none, or too large."""
        if self._bytes > limits.REQUEST_HEADER_BYTES:
            raise _too_large()
        self._bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.rest = data[upgrade.args[0] :]
        except httptools.HttpParserError:
            raise Refusal(HTTPStatus.BAD_REQUEST, "this is not an HTTP request") from None
        if self._header_count > limits.REQUEST_HEADER_COUNT:
            raise _too_large()
        if not self._is_whole:
            return None
        path = self._url.partition(b"?")[0].decode("latin-1")
        return Request(self._parser.get_method().decode("latin-1"), path, self._headers)

    # -- what httptools calls -----------------------------------------------------------------------------------------

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        if self._header_count <= limits.REQUEST_HEADER_COUNT:
            self._headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        self._is_whole = True


def _too_large() -> Refusal:
    return Refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request's headers are too large")


class Door:
    """Who may open a link to this worker: whoever knows its secret and is not a foreign web page."""

    def __init__(self, secret: str) -> None:
        self.path = "/" + quote(secret, safe="")
        self._bearer = _digest(secret)
        self._path = _digest(self.path)
        self._origins: set[str] = set()

    def listens_at(self, names: list[str], port: int) -> None:
        """Pages that came from these hosts at this port are our own."""
        self._origins = {f"{scheme}://{name}:{port}".lower() for scheme in ("http", "https") for name in names}

    def judge(self, request: Request) -> str:
        """The subprotocol that is spoken from here on, "" for plain frames; raises Refusal."""
        if "origin" in request.headers and request.header("origin").lower() not in self._origins:
            raise Refusal(HTTPStatus.FORBIDDEN, "a page from elsewhere may not open a link")
        if not self._knows_the_secret(request):
            raise Refusal(HTTPStatus.UNAUTHORIZED, "the worker's secret is required", "WWW-Authenticate: Bearer")
        _check_upgrade(request)
        offered = ",".join(request.headers.get("sec-websocket-protocol", []))
        return SUBPROTOCOL if SUBPROTOCOL in [name.strip() for name in offered.split(",")] else ""

    def _knows_the_secret(self, request: Request) -> bool:
        if "authorization" not in request.headers:
            return hmac.compare_digest(_digest(request.path), self._path)
        # A header that is there must be right, whatever the path says.
        scheme, _, token = request.header("authorization").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(_digest(token.strip()), self._bearer)


def _check_upgrade(request: Request) -> None:
    connection = [word.strip().lower() for word in request.header("connection").split(",")]
    if request.method != "GET" or request.header("upgrade").lower() != "websocket" or "upgrade" not in connection:
        raise Refusal(HTTPStatus.UPGRADE_REQUIRED, "this address speaks WebSocket", "Upgrade: websocket")
    if request.header("sec-websocket-version") != "13":
        raise Refusal(HTTPStatus.UPGRADE_REQUIRED, "only version 13 is spoken here", "Sec-WebSocket-Version: 13")
    try:
        length = len(base64.b64decode(request.header("sec-websocket-key"), validate=True))
    except (binascii.Error, ValueError):
        length = 0
    if length != 16:
        raise Refusal(HTTPStatus.BAD_REQUEST, "the Sec-WebSocket-Key is no key")


def accepted(request: Request, subprotocol: str) -> bytes:
    """The 101 that opens the link."""
    lines = [
        "HTTP/1.1 101 Switching Protocols",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Accept: {accept_key(request.header('sec-websocket-key'))}",
    ]
    lines += [f"Sec-WebSocket-Protocol: {subprotocol}"] if subprotocol else []
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def refused(refusal: Refusal) -> bytes:
    body = refusal.reason.capitalize() + ".\n"
    lines = [
        f"HTTP/1.1 {refusal.status.value} {refusal.status.phrase}",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(body.encode())}",
        "Connection: close",
    ]
    lines += [refusal.header] if refusal.header else []
    return ("\r\n".join(lines) + f"\r\n\r\n{body}").encode()


def _digest(text: str) -> bytes:
    """Compared instead of the text, so that the time it takes tells nothing of it, not even its length (A9)."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
