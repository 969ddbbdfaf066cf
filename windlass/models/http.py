"""The HTTP side of a provider: send one JSON request, hand on the data of its server-sent events.

This is the only module of `models/` that imports aiohttp, and it is itself imported at the first request: a server with
the scripted model never pays for it. Everything that goes wrong leaves here as a ModelError.
"""

import asyncio
from collections.abc import Callable

import aiohttp

from windlass import limits
from windlass.models.refusals import Refusals
from windlass.models.sse import DONE, EventDecoder, LineTooLong
from windlass.wire.model import ModelError


class Silence:
    """Gives an answer up when nothing came for `seconds`. One timer that looks when it is due, not one per packet."""

    def __init__(self, response: aiohttp.ClientResponse, seconds: float) -> None:
        self._response = response
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._heard_at = self._loop.time()
        self._timer = self._loop.call_later(seconds, self._look)

    def broken(self) -> None:
        self._heard_at = self._loop.time()

    def over(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        left = self._heard_at + self._seconds - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        else:
            self._response.content.set_exception(TimeoutError())


class EventStreams:
    """One pool of connections to one provider."""

    def __init__(
        self,
        provider: str,
        base_url: str,
        headers: dict[str, str],
        refusals: Refusals,
        *,
        connect_seconds: float,
        silence_seconds: float,
    ) -> None:
        self._provider = provider
        self._base_url = base_url
        self._refusals = refusals
        self._connect_seconds = connect_seconds
        self._silence_seconds = silence_seconds
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=limits.MODEL_CONNECTIONS),
            timeout=aiohttp.ClientTimeout(
                # No sock_read: that one sets a timer for every packet, a fifth of what a token costs. See Silence.
                total=None,
                connect=connect_seconds,
                sock_connect=connect_seconds,
            ),
            # A proxy in somebody's environment must not see prompts and keys that the config did not send there.
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            # Compressed events sit in the compressor's window until it is full: words would come in bursts.
            headers={**headers, "Accept": "text/event-stream", "Accept-Encoding": "identity"},
        )

    async def aclose(self) -> None:
        await self._session.close()

    async def post(self, url: str, body: bytes, model: str, take: Callable[[bytes], None]) -> None:
        """Send and call `take` with each event's data. Cancelling the caller drops the connection at once."""
        try:
            # No redirects: the next address would be handed the prompt and the key.
            async with asyncio.timeout(self._silence_seconds):
                response = await self._session.post(
                    url, data=body, headers={"Content-Type": "application/json"}, allow_redirects=False
                )
            try:
                # A task of its own: each arrival wakes it, and awaited here directly it would wake with it every frame
                # up to the run's. A cancel of the caller passes on to it, and comes back when it has ended.
                await asyncio.create_task(self._read(response, model, take), name=f"events of {self._provider}")
            finally:
                # close, not release: release would wait for what is still being sent before it lets go.
                response.close()
        except (aiohttp.ConnectionTimeoutError, TimeoutError) as error:
            raise self._timed_out(error) from None
        except aiohttp.ClientConnectorError as error:
            raise ModelError(
                f"{self._provider} cannot be reached at {self._base_url} ({error.os_error.strerror or error}). "
                f"Check that the server runs and that providers.{self._provider}.base_url is right.",
                retryable=True,
                kind="unreachable",
            ) from None
        except aiohttp.InvalidURL:
            raise ModelError(
                f"{self._base_url!r} is not an address. Correct providers.{self._provider}.base_url.",
                kind="unreachable",
            ) from None
        except (aiohttp.ClientError, ConnectionError) as error:
            raise self._dropped(error) from None

    async def _read(self, response: aiohttp.ClientResponse, model: str, take: Callable[[bytes], None]) -> None:
        silence = Silence(response, self._silence_seconds)
        try:
            if await self._is_stream(response, model, take):
                await self._read_events(response, silence, take)
        finally:
            silence.over()

    async def _is_stream(self, response: aiohttp.ClientResponse, model: str, take: Callable[[bytes], None]) -> bool:
        """Whether events follow; what is instead of them is dealt with here."""
        if response.status != 200:
            body = await self._bounded_body(response, limits.MODEL_ERROR_BYTES)
            raise self._refusals.from_status(response.status, response.headers, body, model)
        if response.content_type == "text/html":
            raise ModelError(
                f"{self._base_url} answers with a web page. Check providers.{self._provider}.base_url.",
                kind="refused",
            )
        if response.content_type == "application/json":
            # A server that ignores `stream`: its whole answer is one event.
            take(await self._bounded_body(response, limits.MODEL_LINE_BYTES))
            take(DONE)
            return False
        return True

    async def _read_events(
        self, response: aiohttp.ClientResponse, silence: "Silence", take: Callable[[bytes], None]
    ) -> None:
        decoder = EventDecoder(limits.MODEL_LINE_BYTES)
        taken = 0
        try:
            while received := await response.content.readany():
                silence.broken()
                for data in decoder.feed(received):
                    take(data)
                    if data == DONE:
                        return await self._read_trailer(response)
                    taken += 1
                    if taken % limits.STREAM_YIELD_EVENTS == 0:
                        # A provider faster than we are never lets the loop wait, and everyone else would stand still.
                        await asyncio.sleep(0)
            for data in decoder.finish():
                take(data)
        except LineTooLong as error:
            raise ModelError(f"{self._provider} sent {error}; the answer was dropped.") from None

    async def _read_trailer(self, response: aiohttp.ClientResponse) -> None:
        """Wait a moment for the end of the body: only a body read to its end leaves the connection to the next step."""
        try:
            async with asyncio.timeout(limits.MODEL_TRAILER_SECONDS):
                await response.content.readany()
        except (TimeoutError, aiohttp.ClientError):
            pass

    async def _bounded_body(self, response: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
        body = bytearray()
        async for received in response.content.iter_any():
            body += received
            if len(body) > limit_bytes:
                break
        return bytes(body[:limit_bytes])

    def _timed_out(self, error: Exception) -> ModelError:
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return ModelError(
                f"{self._provider} did not answer at {self._base_url} within {self._connect_seconds:g} s. Check that "
                f"the server runs and that providers.{self._provider}.base_url is right.",
                retryable=True,
                kind="unreachable",
            )
        return ModelError(
            f"{self._provider} sent nothing for {self._silence_seconds:g} s; the request was given up.", retryable=True
        )

    def _dropped(self, error: Exception) -> ModelError:
        reason = self._refusals.wash(str(error)) or type(error).__name__
        return ModelError(f"The connection to {self._provider} broke off ({reason}).", retryable=True)
