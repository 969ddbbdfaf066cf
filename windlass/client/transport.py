"""One connection pool to one server: requests that are sent again where that is safe, and raw streams.

Everything above speaks in wire types; everything about sockets, statuses and retries is here.
"""

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from yarl import URL

from windlass import limits
from windlass.client.errors import ProtocolError, ServerUnreachable, refusal, retry_after_seconds
from windlass.errors import Invalid, TooMany, Unavailable, WindlassError

Answer = TypeVar("Answer")
Query = Mapping[str, str | int | None]

UNIX_PREFIX = "unix:"
_BROKEN = (aiohttp.ClientError, TimeoutError, ConnectionError)


class _Attempt(Exception):
    """One try failed. `again` says whether nothing can have happened on the server, or nothing bad if it did."""

    def __init__(self, error: WindlassError, *, again: bool, wait: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.again = again
        self.wait = wait


class Transport:
    """`url` is http://, https:// or unix:/path/of/socket; the last needs no token. `certificate`: see `Client`."""

    def __init__(
        self,
        url: str,
        token: str | None,
        client_id: str,
        retries: int = limits.CLIENT_RETRIES,
        certificate: str = "",
    ) -> None:
        self.url = url
        self.client_id = client_id
        self._retries = retries
        self._token = token
        self._trust: ssl.SSLContext | bool = trust_in(certificate) if certificate else True
        self._session: aiohttp.ClientSession | None = None
        self._base = _base(url)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(
        self,
        method: str,
        path: str,
        answer: type[Answer],
        *,
        body: msgspec.Struct | None = None,
        query: Query | None = None,
        repeatable: bool | None = None,
        seconds: float = limits.CLIENT_REQUEST_SECONDS,
    ) -> Answer:
        """Send one request and return its decoded answer, or raise what the server refused it with.

        `repeatable` says that doing it twice is doing it once (a GET is): then it is sent again, a bounded number of
        times, when the connection broke or the server asked for patience. `seconds` is how long one answer may take.
        """
        again = method == "GET" if repeatable is None else repeatable
        for attempt in range(self._retries + 1):
            try:
                return await self._once(method, path, answer, body, query, again, seconds)
            except _Attempt as failed:
                if not failed.again or attempt == self._retries:
                    raise failed.error from failed
                await asyncio.sleep(backoff(attempt) if failed.wait is None else failed.wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _once(
        self,
        method: str,
        path: str,
        answer: type[Answer],
        body: msgspec.Struct | None,
        query: Query | None,
        again: bool,
        seconds: float,
    ) -> Answer:
        headers = self._headers()
        content: bytes | None = None
        if method in ("POST", "PUT"):
            # Also without a body: a POST that does not say it is JSON is refused, so that no page can forge one (A7).
            headers["Content-Type"] = "application/json"
            content = b"{}" if body is None else msgspec.json.encode(body)
        try:
            async with self._pool().request(
                method,
                self._address(method, path, query),
                data=content,
                headers=headers,
                # A redirect could carry the token to another host.
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=limits.CLIENT_CONNECT_SECONDS),
            ) as response:
                received = await _read_all(response)
                if response.status >= 300:
                    raise _refused(response, received, again)
        except _BROKEN as error:
            # A connection that was never made carried nothing: sending again is safe whatever the request is.
            never_sent = isinstance(error, aiohttp.ClientConnectorError)
            raise _Attempt(self.unreachable(error), again=again or never_sent) from error
        return _decode(received, answer)

    @asynccontextmanager
    async def stream(
        self, path: str, query: Query | None, headers: Mapping[str, str]
    ) -> AsyncIterator[aiohttp.StreamReader]:
        """An open event stream. Raises the server's refusal; what reads from it must bound its own waiting."""
        wanted = {
            **self._headers(),
            "Accept": "text/event-stream",
            # A compressor in between would hold back a heartbeat until its block is full.
            "Accept-Encoding": "identity",
            **headers,
        }
        try:
            # Only the way to the first byte is timed here; a socket timer would also run while the reader is busy.
            async with asyncio.timeout(limits.CLIENT_SILENCE_SECONDS):
                response = await self._pool().get(
                    self._address("GET", path, query),
                    headers=wanted,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=limits.CLIENT_CONNECT_SECONDS),
                )
                if response.status >= 300:
                    content = await _read_all(response)
                    raise refusal(response.status, content, response.headers.get("Retry-After"))
        except _BROKEN as error:
            raise self.unreachable(error) from error
        try:
            yield response.content
        except TimeoutError as error:
            raise ServerUnreachable(f"{self.url} has been silent for too long.") from error
        except _BROKEN as error:
            raise ServerUnreachable(f"{self.url} broke the connection.") from error
        finally:
            response.close()

    def unreachable(self, error: BaseException) -> ServerUnreachable:
        reason = "it took too long" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        return ServerUnreachable(
            f"No server answers at {self.url} ({reason}). Start one with `windlass serve`, or name another with --url."
        )

    def _pool(self) -> aiohttp.ClientSession:
        # Made on first use: aiohttp wants a running loop.
        if self._session is None:
            connector: aiohttp.BaseConnector = aiohttp.TCPConnector(ssl=self._trust)
            if self.url.startswith(UNIX_PREFIX):
                connector = aiohttp.UnixConnector(path=self.url.removeprefix(UNIX_PREFIX))
            self._session = aiohttp.ClientSession(connector=connector)
        return self._session

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def _address(self, method: str, path: str, query: Query | None) -> URL:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        if method != "GET":
            given["client_id"] = self.client_id  # so that every fact says who caused it (B46)
        return URL(f"{self._base}/v1{path}" + (f"?{urlencode(given)}" if given else ""), encoded=True)


def segment(text: str) -> str:
    """An id as one segment of a path: a slash or question mark in it must not name another route."""
    return quote(text, safe="")


def backoff(attempt: int) -> float:
    """Growing pauses, each shortened by chance: a thousand clients must not come back in the same instant."""
    longest = min(limits.CLIENT_RETRY_BASE_SECONDS * 2.0 ** min(attempt, 16), limits.CLIENT_RETRY_MAX_SECONDS)
    return longest * random.uniform(0.5, 1.0)


def trust_in(certificate: str) -> ssl.SSLContext:
    """Trust whoever has this certificate's key, by whatever name it is reached, and nobody else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # it is known by its key: no authority and no name has to vouch for it
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # also one that some authority has signed
    try:
        context.load_verify_locations(cadata=certificate)
    except ssl.SSLError as error:
        raise Invalid(f"The server's certificate cannot be read ({error.reason}). Restart the server.") from None
    return context


def _base(url: str) -> str:
    if url.startswith(UNIX_PREFIX):
        return "http://localhost"
    if not url.startswith(("http://", "https://")) or not _has_host(url):
        raise Invalid(f"{url!r} is no server address; write http://HOST:PORT, https://HOST:PORT or unix:/PATH.")
    return url.rstrip("/")


def _has_host(url: str) -> bool:
    try:
        return bool(URL(url).host)
    except ValueError:  # brackets that are not closed, a port that is none
        return False


def _refused(response: aiohttp.ClientResponse, content: bytes, again: bool) -> _Attempt:
    header = response.headers.get("Retry-After")
    error = refusal(response.status, content, header)
    wait = retry_after_seconds(header)
    asks_for_patience = isinstance(error, Unavailable) or (isinstance(error, TooMany) and wait is not None)
    if wait is not None and wait > limits.CLIENT_RETRY_AFTER_SECONDS:
        asks_for_patience = False
    return _Attempt(error, again=again and asks_for_patience, wait=wait)


async def _read_all(response: aiohttp.ClientResponse) -> bytes:
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > limits.CLIENT_ANSWER_BYTES:
            raise ProtocolError(f"The answer is larger than {limits.CLIENT_ANSWER_BYTES} bytes.")
    return bytes(content)


def _decode(content: bytes, answer: type[Answer]) -> Answer:
    if answer is type(None):
        content = b"null"  # the caller wants nothing, whatever the body says
    try:
        return msgspec.json.decode(content, type=answer)
    except msgspec.MsgspecError as error:
        raise ProtocolError(f"The server's answer is not understood ({error}). Is it of another version?") from None
