"""A connection over streamable HTTP: the SDK's transport, on a client of ours that bounds what a server may send."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from windlass import limits
from windlass.mcp.ending import Ending
from windlass.mcp.spec import ServerSpec

_GOODBYE_SECONDS = 2.0  # for the end of a session: it is polite, and nobody waits for it


@contextlib.asynccontextmanager
async def http_streams(spec: ServerSpec, ending: Ending) -> AsyncIterator[TransportStreams]:
    """The two streams of an MCP session. What breaks on the way is raised when it is left, in a group."""
    # In a thread: the certificates of this machine are read from its disk.
    client = await asyncio.to_thread(_client, spec, ending)
    async with (
        client,
        streamable_http_client(spec.url, http_client=client, max_sse_event_size=limits.MCP_MESSAGE_BYTES) as streams,
    ):
        yield streams


def _client(spec: ServerSpec, ending: Ending) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=_BoundedTransport(ending),
        # Not compressed: a thousand times as much could come out of what we counted.
        headers={**spec.headers, "accept-encoding": "identity"},
        # No bound on a silence: a stream may be quiet for hours, and a call has a clock of its own.
        timeout=httpx2.Timeout(spec.connect_seconds, read=None),
        trust_env=False,  # a proxy or a password out of the environment is not what the user wrote down for this server
    )


class _BoundedTransport(httpx2.AsyncBaseTransport):
    """Counts the bytes of an answer, and notices when the server has forgotten us."""

    def __init__(self, ending: Ending) -> None:
        # No bound on connections here: a call that found none free would take the others with it. Calls are counted.
        self._plain = httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_keepalive_connections=4))
        self._ending = ending

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "DELETE":
            names = ("connect", "read", "write", "pool")
            request.extensions["timeout"] = dict.fromkeys(names, _GOODBYE_SECONDS)
        response = await self._plain.handle_async_request(request)
        self._notice(request, response)
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _BoundedStream(response.stream)
        return response

    def _notice(self, request: httpx2.Request, response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise httpx2.RemoteProtocolError("The answer is compressed, although we said that we do not take that.")
        if response.status_code == 404 and "mcp-session-id" in request.headers:
            self._ending.set("It has forgotten our session; it was probably started anew.")
        elif response.status_code in (401, 403):
            self._ending.set(f"It answered {response.status_code}: check its headers in the configuration.")
        elif response.status_code >= 300:
            # Not an end: a single call may be refused like this. It says more than what a failed start is told with.
            self._ending.hint = f"It answered {response.status_code}: check its url in the configuration."

    async def aclose(self) -> None:
        await self._plain.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, plain: httpx2.AsyncByteStream) -> None:
        self._plain = plain

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = limits.MCP_MESSAGE_BYTES
        async for piece in self._plain:
            left -= len(piece)
            if left < 0:
                raise httpx2.StreamError(f"the answer has more than {limits.MCP_MESSAGE_BYTES // limits.MIB} MiB")
            yield piece

    async def aclose(self) -> None:
        await self._plain.aclose()
