"""One page of the web: fetched with bounds, from the address that was judged and no other.

The judgement stands where the socket is made, with the very address it is then connected to: no name can be looked up
once for the judge and once more for the connection (rebinding, A35). Nothing of the environment is used: no proxy, no
cookie, no password. Only `fetch.py` imports this file, in a thread: its libraries take a quarter of a second.
"""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import yarl
from aiohttp.abc import AbstractResolver

from windlass import __version__, limits
from windlass.tools.addresses import Target, check_url, is_public, private_address
from windlass.wire.tools import ToolError

_REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = {
    "User-Agent": f"windlass/{__version__}",
    "Accept": "text/html, text/markdown, text/plain, application/json, text/*;q=0.9, */*;q=0.1",
    "Accept-Encoding": "identity",  # a thousand times as much could come out of what was counted
}


@dataclass(frozen=True, slots=True)
class Page:
    """`elsewhere` is where it redirects to, when that is another host: whoever allowed this one did not allow that."""

    url: str
    status: int
    content_type: str = ""
    charset: str = ""
    body: bytes = b""
    is_whole: bool = True
    elsewhere: str = ""


class Web:
    """`is_allowed` judges IP addresses. `resolver` looks names up: the system's, unless a test brings its own."""

    def __init__(
        self,
        allow_private: bool = False,
        is_allowed: Callable[[str], bool] | None = None,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._allow_private = allow_private
        self._is_allowed = is_allowed or (lambda address: allow_private or is_public(address))
        self._resolver = resolver

    async def get(self, url: str) -> Page:
        """The page behind the URL; raises ToolError. Redirects are followed on the same host only."""
        target = check_url(url, self._allow_private)
        refused: list[str] = []
        try:
            async with asyncio.timeout(limits.FETCH_SECONDS), self._session(refused) as session:
                return await self._follow(session, url, target)
        except TimeoutError:
            raise ToolError(f"{target.host} did not answer within {limits.FETCH_SECONDS:g} s.") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if refused:
                raise ToolError(private_address(target.host)) from None
            raise ToolError(f"The page cannot be fetched: {_why(error)}.") from None

    def _session(self, refused: list[str]) -> aiohttp.ClientSession:
        def judged_socket(address: Any) -> socket.socket:
            family, kind, protocol, _, (ip, *_) = address
            if not self._is_allowed(ip):
                refused.append(ip)
                raise OSError("a private address")
            return socket.socket(family, kind, protocol)

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=self._resolver, socket_factory=judged_socket, force_close=True, use_dns_cache=False
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=_HEADERS,
            trust_env=False,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=limits.FETCH_SECONDS),
        )

    async def _follow(self, session: aiohttp.ClientSession, url: str, first: Target) -> Page:
        for _ in range(limits.FETCH_REDIRECTS + 1):
            parsed = yarl.URL(url)
            if (parsed.host or "").rstrip(".") != first.host.rstrip("."):
                raise ToolError("This URL can be read in two ways. Write it more plainly.")
            async with session.get(parsed, allow_redirects=False) as response:
                location = response.headers.get("Location", "")
                if response.status not in _REDIRECTS or not location:
                    return await _page(url, response)
            # Joined by the library, and then judged by us as if it had come from the model.
            url = str(parsed.join(yarl.URL(location)))
            target = check_url(url, self._allow_private)
            if not _is_same_place(first, target):
                return Page(str(parsed), response.status, elsewhere=url)
        raise ToolError(f"The page redirects more than {limits.FETCH_REDIRECTS} times.")


def _is_same_place(first: Target, target: Target) -> bool:
    """Also when it goes over to https. Another port is another server, even on the same machine."""
    went_over = (first.scheme, first.port, target.scheme, target.port) == ("http", 80, "https", 443)
    return target == first or (target.host == first.host and went_over)


async def _page(url: str, response: aiohttp.ClientResponse) -> Page:
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise ToolError("The server sends this page compressed, although it was asked not to.")
    body = bytearray()
    is_whole = True
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > limits.FETCH_BYTES:
            del body[limits.FETCH_BYTES :]
            is_whole = False
            break
    kind = response.content_type if "Content-Type" in response.headers else ""
    return Page(url, response.status, kind, response.charset or "", bytes(body), is_whole)


def _why(error: BaseException) -> str:
    match error:
        case aiohttp.ClientConnectorDNSError():
            return "its host is not known"
        case aiohttp.ClientSSLError():
            return "its certificate cannot be trusted, or it does not speak TLS"
        case OSError():
            return "nobody answers there"
        case _:
            return f"its server does not speak HTTP as it should ({type(error).__name__})"
