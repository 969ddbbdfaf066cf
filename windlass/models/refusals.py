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
    r"context.{0,12}(length|window|size|limit)|maximum context|(prompt|input) is too long|too many (input )?tokens|"
    r"input token.{0,30}exceed|prompt exceeds|maximum prompt length|model token limit|range of input length|"
    r"reduce the length of the messages",
    re.IGNORECASE,
)
# Said with a 429: it is more than all the tokens of a minute, and would be so again.
_TOO_MUCH_AT_ONCE = re.compile(r"request too large", re.IGNORECASE)
_BROKE = re.compile(r"insufficient_quota|credit balance|spend.?limit", re.IGNORECASE)
_BILLING = re.compile(r"billing", re.IGNORECASE)  # Google says so with each of its limits, also with those of a minute
# Anthropic says it with a 400, in which any word may be of our own request: only whole phrases count there.
_BROKE_400 = re.compile(r"credit balance is too low|reached your specified .{0,20}usage limits", re.IGNORECASE)
_BUSY = re.compile(r"overloaded|rate.?limit|server_error|timeout|unavailable|internal", re.IGNORECASE)
# Codes and types of what would be refused again, in the errors that come instead of the rest of an answer.
_OURS = re.compile(r"invalid|authentication|permission|not_found|unsupported|image|policy|data_residency|too_large")
_WAIT = re.compile(r"(?:try again|retry) in (\d{1,6}(?:\.\d{1,12})?) ?(ms|s)\b", re.IGNORECASE)
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
        whole = _detail(body)
        detail = self.wash(whole)
        name, said = self._provider, f": {detail}" if detail else ""
        if status == 401 or (status == 403 and not detail):
            return ModelError(self._key_message(status), kind="auth")
        if status == 403:
            return ModelError(f"{self._key_message(status)} It said{said}", kind="auth")
        if status == 402 or (status == 429 and _is_broke(whole)) or (status == 400 and _BROKE_400.search(detail)):
            return ModelError(f"{name} says the account has no credit left{said}", kind="limit")
        if status == 413 or (status in (400, 422) and _OVERFLOW.search(whole)):
            return self.overflow(detail)
        if status == 429 and _TOO_MUCH_AT_ONCE.search(whole):
            return self.overflow(detail)
        if status == 429:
            return ModelError(
                f"{name} is limiting requests (429){said}",
                retryable=True,
                retry_after=_first(retry_after_seconds(headers), _said_seconds(whole)),
                kind="limit",
            )
        if status in (408, 409, 425) or status >= 500:
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
        message = f"{self._provider} broke its answer off: {detail or 'it gave no reason'}"
        if _BROKE.search(_names(error)) or _BILLING.search(_names(error)):
            return ModelError(message, kind="limit")
        refused = isinstance(code, int) and 400 <= code < 500 and code not in (408, 425, 429)
        busy = _BUSY.search(raw.decode()) is not None
        if not busy and (refused or _OURS.search(_names(error))):
            return ModelError(message, kind="auth" if "authentication" in _names(error) else "refused")
        is_limit = code == 429 or "rate_limit" in _names(error)
        return ModelError(
            message, retryable=True, retry_after=_said_seconds(detail), kind="limit" if is_limit else "broken"
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
    """What `Retry-After` asks for: a number of seconds or a date. None when it is absent or makes no sense.

    `Retry-After-Ms` is OpenAI's own, and more exact.
    """
    exact = headers.get("retry-after-ms", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", exact):
        return float(exact) / 1000
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


def _is_broke(detail: str) -> bool:
    """Whether the account is empty. Who says when to come again has more to give then."""
    if _BROKE.search(detail):
        return True
    return _BILLING.search(detail) is not None and _said_seconds(detail) is None


def _said_seconds(detail: str) -> float | None:
    """How long to wait, from a provider that says so in its sentence and nowhere else."""
    found = _WAIT.search(detail)
    return None if found is None else float(found[1]) / (1000 if found[2].lower() == "ms" else 1)


def _first(*seconds: float | None) -> float | None:
    return next((one for one in seconds if one is not None), None)


def _names(error: Any) -> str:
    """What kind of error it is, in the provider's words."""
    return f"{error.get('type')} {error.get('code')}" if isinstance(error, dict) else ""


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
        details = error.get("details")
        code = error.get("code") or (details.get("error_code") if isinstance(details, dict) else None)
        # The code is kept: "context_length_exceeded" and "insufficient_quota" are said nowhere else.
        told = f"{said} ({code})" if isinstance(code, str) and code else str(said)
        return f"{told}: {upstream}" if (upstream := _upstream(error)) else told
    return str(error)


def _upstream(error: dict[str, Any]) -> str:
    """What the provider behind a router said, which the router hands on beside a sentence that says nothing."""
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if not isinstance(raw, str):
        return ""
    return _detail(raw.encode()) if '"metadata"' not in raw else raw  # once, and not as deep as somebody likes
