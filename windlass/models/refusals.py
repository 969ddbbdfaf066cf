"""What a provider's refusal means: an HTTP status and a body become a ModelError that a person can act on.

Keys never get into a message: providers echo parts of them in their own errors, so everything they say is washed.
"""

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from windlass.wire.model import ModelError

_OVERFLOW = re.compile(
    r"context.{0,12}(length|window|size)|maximum context|prompt is too long|too many (input )?tokens",
    re.IGNORECASE,
)
_BROKE = re.compile(r"insufficient_quota|billing|credit balance", re.IGNORECASE)
_BUSY = re.compile(r"overloaded|rate.?limit|server_error|timeout|unavailable|internal", re.IGNORECASE)
_KEY_LIKE = re.compile(r"\b(?:sk|pk|key|gsk|xai)-[A-Za-z0-9_*.\-]+")
_DETAIL_CHARACTERS = 500  # enough to say what is wrong; an HTML page is not


class Refusals:
    """Makes ModelErrors in the name of one provider."""

    def __init__(self, provider: str, base_url: str, api_key: str) -> None:
        self._provider = provider
        self._base_url = base_url
        self._api_key = api_key

    def from_status(self, status: int, headers: Mapping[str, str], body: bytes, model: str) -> ModelError:
        """The error of an answer that is not 200."""
        detail = self.wash(_detail(body))
        name, said = self._provider, f": {detail}" if detail else ""
        if status == 401 or (status == 403 and not detail):
            return ModelError(self._key_message(status), kind="auth")
        if status == 403:
            return ModelError(f"{self._key_message(status)} It said{said}", kind="auth")
        if status == 429 and _BROKE.search(detail):
            return ModelError(f"{name} says the account has no credit left{said}", kind="limit")
        if status == 429:
            return ModelError(
                f"{name} is limiting requests (429){said}",
                retryable=True,
                retry_after=retry_after_seconds(headers),
                kind="limit",
            )
        if status in (400, 413, 422) and _OVERFLOW.search(detail):
            return self.overflow(detail)
        if status in (408, 425) or status >= 500:
            return ModelError(
                f"{name} has a problem of its own ({status}){said}",
                retryable=True,
                retry_after=retry_after_seconds(headers),
            )
        if 300 <= status < 400:
            target = self.wash(headers.get("location", "somewhere else"))
            return ModelError(
                f"{name} redirects {self._base_url} to {target}. Put the final address into providers.{name}.base_url.",
                kind="refused",
            )
        if status == 404:
            return ModelError(
                f"{name} does not know the model {model!r}, or {self._base_url} is not its API address (404){said}",
                kind="refused",
            )
        return ModelError(f"{name} refused the request ({status}){said}", kind="refused")

    def from_stream(self, error: Any) -> ModelError:
        """The error object that came in the middle of an answer."""
        raw = msgspec.json.encode({"error": error})
        detail = self.wash(_detail(raw))
        code = error.get("code") if isinstance(error, dict) else None
        if _OVERFLOW.search(self.wash(raw.decode())):
            return self.overflow(detail)
        refused = isinstance(code, int) and 400 <= code < 500 and code not in (408, 425, 429)
        busy = _BUSY.search(raw.decode()) is not None
        return ModelError(
            f"{self._provider} broke its answer off: {detail or 'it gave no reason'}",
            retryable=busy or not refused,
            kind="limit" if code == 429 else "broken",
        )

    def overflow(self, detail: str) -> ModelError:
        return ModelError(
            f"The conversation is too long for this model's context window. Start a new session or use a model with a "
            f"larger one. {self._provider} said: {detail}",
            kind="overflow",
        )

    def wash(self, text: str) -> str:
        """Text of a provider without keys, on one line and short."""
        if self._api_key:
            text = text.replace(self._api_key, "***")
        return " ".join(_KEY_LIKE.sub("***", text).split())[:_DETAIL_CHARACTERS]

    def _key_message(self, status: int) -> str:
        name = self._provider
        if not self._api_key:
            return f"{name} wants an API key ({status}) and has none. Set api_key or api_key_env in providers.{name}."
        return f"{name} refused the API key ({status}). Check api_key or api_key_env in providers.{name}."


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """What `Retry-After` asks for: a number of seconds or a date. None when it is absent or makes no sense."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
        return float(value)
    try:
        # The wall clock is right here: the header names a moment, not a duration.
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _detail(body: bytes) -> str:
    """The sentence in an error body, whichever of the usual shapes it has."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body.decode("utf-8", "replace")
        return "" if "<html" in text.lower() else text
    if isinstance(decoded, list) and decoded:
        decoded = decoded[0]
    if not isinstance(decoded, dict):
        return str(decoded)
    error = decoded.get("error", decoded)
    if isinstance(error, dict):
        said = error.get("message") or error.get("detail") or error.get("type") or ""
        code = error.get("code")
        # The code is kept: "context_length_exceeded" and "insufficient_quota" are said nowhere else.
        return f"{said} ({code})" if isinstance(code, str) and code else str(said)
    return str(error)
