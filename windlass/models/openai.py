"""The chat-completions protocol of OpenAI, which most hosted and nearly all local model servers speak.

`OpenAIModel` joins three smaller pieces: `openai_request` turns our conversation into the provider's body, `http` sends
it and reads events, `openai_chunks` turns those into our chunks.
"""

import functools

from windlass import limits
from windlass.models.bodies import made
from windlass.models.http import EventStreams
from windlass.models.openai_chunks import ChunkReader
from windlass.models.openai_request import encode_request
from windlass.models.refusals import Refusals
from windlass.wire.model import ModelError, ModelRequest, Take


class OpenAIModel:
    """One provider. Any number of requests may stream at once; they share its connections."""

    def __init__(
        self,
        provider_name: str,
        base_url: str,
        api_key: str,
        *,
        connect_seconds: float = limits.MODEL_CONNECT_SECONDS,
        silence_seconds: float = limits.MODEL_SILENCE_SECONDS,
    ) -> None:
        self._provider = provider_name
        self._base_url = base_url.rstrip("/")
        self._api_key = api_key
        self._connect_seconds = connect_seconds
        self._silence_seconds = silence_seconds
        self._refusals = Refusals(provider_name, self._base_url, api_key)
        self._streams: EventStreams | None = None
        self._asks_for_usage = True

    def __repr__(self) -> str:
        # Not the default one of a dataclass or struct: a repr ends up in logs, and a key must not (A39).
        return f"{type(self).__name__}({self._provider!r}, {self._base_url!r})"

    async def stream(self, request: ModelRequest, take: Take) -> None:
        """Send the request and hand on what comes back; raise ModelError. Cancelling drops the connection."""
        try:
            await self._ask(request, take)
        except ModelError as error:
            if not self._asks_for_usage or error.kind != "refused" or "stream_options" not in error.message:
                raise
            # Mistral and other strict servers, which send usage without being asked. The request as a whole was
            # refused, so nothing of an answer has been handed on.
            self._asks_for_usage = False
            await self._ask(request, take)

    async def _ask(self, request: ModelRequest, take: Take) -> None:
        encode = functools.partial(
            encode_request,
            request,
            provider=self._provider,
            openai_itself="//api.openai.com" in self._base_url,
            usage=self._asks_for_usage,
        )
        body = await made(request, encode)
        reader = ChunkReader(self._provider, self._refusals, take)
        await self._connections().post("/chat/completions", body, request.model, reader.read)
        reader.finish()

    async def aclose(self) -> None:
        """Close idle connections. The object must not be used afterwards."""
        if self._streams is not None:
            await self._streams.aclose()

    def _connections(self) -> EventStreams:
        if self._streams is None:
            headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
            self._streams = EventStreams(
                self._provider,
                self._base_url,
                headers,
                self._refusals,
                connect_seconds=self._connect_seconds,
                silence_seconds=self._silence_seconds,
            )
        return self._streams
