"""The Responses protocol of OpenAI: what its newer models speak best, because their thoughts go on from step to step.

`ResponsesModel` joins three smaller pieces: `responses_request` turns our conversation into the provider's body, `http`
sends it and reads events, `responses_chunks` turns those into our chunks. Nothing is stored at the provider.
"""

import functools
import re

from windlass.models.bodies import made
from windlass.models.openai import OpenAIModel
from windlass.models.responses_chunks import ResponsesReader
from windlass.models.responses_request import encode_request
from windlass.wire.model import ModelError, ModelRequest, Take

_SUMMARIES = re.compile(r"reasoning[ .]summar", re.IGNORECASE)


class ResponsesModel(OpenAIModel):
    """One provider. Any number of requests may stream at once; they share its connections."""

    _summaries = True  # whether it gives us its thoughts in words

    async def stream(self, request: ModelRequest, take: Take) -> None:
        """Send the request and hand on what comes back; raise ModelError. Cancelling drops the connection."""
        try:
            await self._ask(request, take)
        except ModelError as error:
            if not self._summaries or not _forbids_summaries(error):
                raise
            # Only for organisations that are verified; for all others the model may still think, unseen.
            self._summaries = False
            await self._ask(request, take)

    async def _ask(self, request: ModelRequest, take: Take) -> None:
        encode = functools.partial(encode_request, request, provider=self._provider, summaries=self._summaries)
        body = await made(request, encode)
        reader = ResponsesReader(self._provider, self._refusals, take)
        await self._connections().post("/responses", body, request.model, reader.read)
        reader.finish()


def _forbids_summaries(error: ModelError) -> bool:
    """A refusal of the request as a whole, so nothing of an answer has been handed on."""
    return error.kind == "refused" and _SUMMARIES.search(error.message) is not None
