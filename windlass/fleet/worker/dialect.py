"""What frames of a parent mean to a worker, in both dialects; and how a run speaks back in either. No I/O."""

from collections.abc import Callable, Iterator
from typing import Protocol, assert_never

import msgspec

from windlass import limits
from windlass.fleet.worker.outbox import Waiting
from windlass.wire.delegation import OwnerRequest
from windlass.wire.execution import PermissionAsk, RunOutcome
from windlass.wire.frames import (
    ApprovalReply,
    CancelFrame,
    MessageFrame,
    OfRun,
    ParentFrame,
    RunFrame,
    TerminalStatus,
)
from windlass.wire.plain_frames import PlainApprovalReply, PlainCancel, PlainMessage, PlainRun, PlainToChild
from windlass.wire.run_events import RunEvent

encode = msgspec.json.Encoder().encode
_full_decoder: msgspec.json.Decoder[ParentFrame] = msgspec.json.Decoder(ParentFrame)
_plain_decoder: msgspec.json.Decoder[PlainToChild] = msgspec.json.Decoder(PlainToChild)

_STATUS: dict[str, TerminalStatus] = {"completed": "completed", "canceled": "cancelled"}


class NotUnderstood(Exception):
    """A frame that means nothing. The text quotes what the peer sent: it is for the peer, and not for a log."""


def understand(payload: bytes, *, plain: bool) -> ParentFrame:
    """What the parent said; raises NotUnderstood. From a plain peer only plain fields are looked at."""
    try:
        if plain:
            return _translated(_plain_decoder.decode(payload))
        return _full_decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise NotUnderstood(str(error)[: limits.LINK_REASON_CHARACTERS]) from None


def _translated(frame: PlainToChild) -> ParentFrame:
    match frame:
        case PlainRun():
            messages = frame.messages if isinstance(frame.messages, list) else None
            return RunFrame(assignment=frame.assignment, reasoning_effort=frame.reasoning_effort, messages=messages)
        case PlainMessage():
            return MessageFrame(text=frame.text)
        case PlainApprovalReply():
            return ApprovalReply(id=frame.id, approved=frame.approved)
        case PlainCancel():
            return CancelFrame()
        case _:
            assert_never(frame)


class Said(msgspec.Struct, frozen=True):
    """How a run ended, ready to be sent: `transcript` is encoded, empty without one."""

    status: TerminalStatus
    result: str = ""
    error: str = ""
    transcript: bytes = b""


class Voice(Protocol):
    """How one run speaks to its peer. What gives None is nothing that this peer would know."""

    waits_for_acks: bool

    def say(self, event: RunEvent, encoded: bytes, numbered: Callable[[int], None] | None) -> Iterator[Waiting]:
        """The event as frames to be sent. `numbered`: the executor waits for its ack, and this is told its number."""

    def approval(self, id: str, ask: PermissionAsk) -> bytes: ...

    def approval_withdrawn(self, id: str) -> bytes | None: ...

    def agents_request(self, id: str, request: OwnerRequest) -> bytes | None: ...

    def agents_withdrawn(self, id: str) -> bytes | None: ...

    def undelivered(self, id: str) -> bytes | None: ...

    def last_words(self, said: Said) -> Iterator[Waiting]:
        """What is sent at the end of a run, before its terminal."""

    def terminal(self, said: Said) -> bytes: ...


def judged(outcome: RunOutcome, transcript: bytes) -> Said:
    """What an executor's own word becomes on the wire."""
    status = _STATUS.get(outcome.status, "error")
    error = outcome.error
    if status == "error" and not error:
        error = f"the executor ended the run as {outcome.status} and did not say why"
    if len(transcript) > limits.LINK_TRANSCRIPT_BYTES:
        note = f"the transcript of {len(transcript)} bytes was left out; {limits.LINK_TRANSCRIPT_BYTES} are allowed"
        error, transcript = f"{error}; {note}" if error else note, b""
    return Said(status, outcome.result, error, transcript)


class _Terminal(OfRun, tag="terminal", frozen=True, kw_only=True):
    """A TerminalFrame whose transcript is encoded already."""

    status: TerminalStatus
    result: str | None = None
    error: str | None = None
    transcript: msgspec.Raw | None = None


def terminal(said: Said, result: str, run_id: str = "", attempt: int = 0) -> bytes:
    has_result = result or said.status == "completed"
    return encode(
        _Terminal(
            run_id=run_id,
            attempt=attempt,
            status=said.status,
            result=_fit(result, limits.WORKER_RESULT_CHARACTERS) if has_result else None,
            error=_fit(said.error, limits.WORKER_ERROR_CHARACTERS) if said.error else None,
            transcript=msgspec.Raw(said.transcript) if said.transcript else None,
        )
    )


def pieces(text: str) -> Iterator[str]:
    """The text in pieces that each fit into one frame, whatever characters they are."""
    for at in range(0, len(text), limits.WORKER_TEXT_CHARACTERS):
        yield text[at : at + limits.WORKER_TEXT_CHARACTERS]


def _fit(text: str, characters: int) -> str:
    """Shortened, and said so; half a character, which an executor may have left in it, is made whole."""
    if len(text) > characters:
        text = f"{text[:characters]} [... {len(text) - characters} more characters]"
    return text.encode("utf-8", "replace").decode()
