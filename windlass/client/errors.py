"""What can go wrong between a client and a server, beside what the server itself refuses.

The server's refusals are raised as the types of `windlass.errors`, by status, with the server's own message. These come
on top:

WindlassError
 +- ServerUnreachable   nothing answers there, or the connection broke before an answer came
 +- ServerNotFound      no address to try: nothing was given and no server left its address in the data directory
 |   +- NoServer        none is running for the data directory: one can be started
 |   +- ServerNotStarted  one was to be started, and did not come up
 +- ServerFailed        a 5xx that is no refusal: a bug, or a proxy in between
 +- ProtocolError       the answer is not what this client understands
 |   +- StreamGap       facts are missing from the stream although the server did not say `reset` (I13)
 +- RunFailed           a run ended, and not well; only `raise_for_state` raises it
"""

import msgspec

from windlass import errors
from windlass.errors import WindlassError
from windlass.wire.http import ErrorBody
from windlass.wire.runs import RunState


class ServerUnreachable(WindlassError):
    status = 0  # there was no answer, so there is no status


class ServerNotFound(WindlassError):
    status = 0


class NoServer(ServerNotFound):
    """None has left its address in the data directory, or the one that did is gone."""


class ServerNotStarted(ServerNotFound):
    """`log` are its last words, as it said them: not safe to print as they are."""

    def __init__(self, message: str, log: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.log = log


class ServerFailed(WindlassError):
    """The server (or a proxy) broke while answering; whether the request had an effect is unknown."""


class ProtocolError(WindlassError):
    status = 0


class StreamGap(ProtocolError):
    """Facts are missing. What was received before is sound; reload over REST and follow from now."""


class RunFailed(WindlassError):
    """A run ended other than completed. `state` says how: failed, canceled or interrupted."""

    status = 0  # the server refused nothing

    def __init__(self, run_id: str, state: RunState, reason: str = "") -> None:
        super().__init__(f"The run {run_id} {_ENDINGS[state]}" + (f": {reason}" if reason else "."))
        self.run_id = run_id
        self.state = state


_ENDINGS = {"failed": "failed", "canceled": "was cancelled", "interrupted": "was interrupted"}

REFUSALS: dict[int, type[WindlassError]] = {
    kind.status: kind
    for kind in (
        errors.BadRequest,
        errors.Unauthorized,
        errors.Forbidden,
        errors.NotFound,
        errors.Conflict,
        errors.TooLarge,
        errors.UnsupportedMedia,
        errors.Misdirected,
        errors.Invalid,
        errors.Unavailable,
    )
}


def refusal(status: int, body: bytes, retry_after: str | None) -> WindlassError:
    """The exception that an answer with this status is raised as."""
    message = _message(status, body)
    if status == errors.TooMany.status:
        return errors.TooMany(message, retry_after_seconds(retry_after) or 1)
    if status in REFUSALS:
        return REFUSALS[status](message)
    error = ServerFailed(message) if status >= 500 else ProtocolError(message)
    error.status = status
    return error


def retry_after_seconds(header: str | None) -> int | None:
    """Seconds of a Retry-After header; None when there is none (or a date, which our server never sends)."""
    return int(header) if header is not None and header.isascii() and header.isdigit() else None


def _message(status: int, body: bytes) -> str:
    try:
        answer = msgspec.json.decode(body, type=ErrorBody)
    except msgspec.MsgspecError:
        # A proxy's HTML page: quoting it would bury the one thing that is known.
        return f"The server answered {status} without saying why."
    if answer.request_id:
        return f"{answer.message} (request {answer.request_id})"
    return answer.message
