"""The Messages protocol of Anthropic.

`AnthropicModel` joins three smaller pieces: `anthropic_request` turns our conversation into the provider's body, `http`
sends it and reads events, `anthropic_chunks` turns those into our chunks.
"""

import functools

from windlass import limits
from windlass.models.anthropic_chunks import ChunkReader
from windlass.models.anthropic_request import encode_request
from windlass.models.bodies import made
from windlass.models.http import EventStreams
from windlass.models.refusals import Refusals
from windlass.wire.model import ModelError, ModelRequest, Take

API_VERSION = "2023-06-01"  # what servers that imitate this wire know too


class AnthropicModel:
    """One provider. Any number of requests may stream at once; they share its connections.

    `base_url` may end with `/v1` or not: both are written in the manuals of those who speak this protocol.
    """

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
        self._base_url = base_url.rstrip("/").removesuffix("/v1")
        self._api_key = api_key
        self._connect_seconds = connect_seconds
        self._silence_seconds = silence_seconds
        self._refusals = Refusals(provider_name, self._base_url, api_key)
        self._streams: EventStreams | None = None

    def __repr__(self) -> str:
        # Not the default one of a dataclass or struct: a repr ends up in logs, and a key must not (A39).
        return f"AnthropicModel({self._provider!r}, {self._base_url!r})"

    async def stream(self, request: ModelRequest, take: Take) -> None:
        """Send the request and hand on what comes back; raise ModelError. Cancelling drops the connection."""
        reader = ChunkReader(self._provider, self._refusals, take)
        try:
            await self._answer(request, reader)
            reader.finish()
        except ModelError:
            reader.tell_usage()  # of half an answer, too: it is said at the beginning what was sent
            raise

    async def _answer(self, request: ModelRequest, reader: ChunkReader) -> None:
        try:
            await self._ask(request, reader, with_thoughts=True)
        except ModelError as error:
            if reader.has_begun or not _refuses_thoughts(error):
                raise
            # Newer models bind their thoughts to all that was said before them. Once the oldest steps were left out,
            # or the key belongs to another account, they are refused for ever: without them the session can go on.
            await self._ask(request, reader, with_thoughts=False)

    async def aclose(self) -> None:
        """Close idle connections. The object must not be used afterwards."""
        if self._streams is not None:
            await self._streams.aclose()

    async def _ask(self, request: ModelRequest, reader: ChunkReader, *, with_thoughts: bool) -> None:
        encode = functools.partial(encode_request, request, self._provider, with_thoughts=with_thoughts)
        body = await made(request, encode)
        await self._connections().post("/v1/messages", body, request.model, reader.read)

    def _connections(self) -> EventStreams:
        if self._streams is None:
            key = {"x-api-key": self._api_key} if self._api_key else {}
            self._streams = EventStreams(
                self._provider,
                self._base_url,
                {**key, "anthropic-version": API_VERSION},
                self._refusals,
                connect_seconds=self._connect_seconds,
                silence_seconds=self._silence_seconds,
            )
        return self._streams


def _refuses_thoughts(error: ModelError) -> bool:
    """Whether it says "Invalid `signature` in `thinking` block", in any of its variants, or that a block "cannot be
    modified"."""
    if error.kind != "refused" or "thinking" not in error.message:
        return False
    return "signature" in error.message or "cannot be modified" in error.message
