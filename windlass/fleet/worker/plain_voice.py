"""How a run speaks to a plain peer: `event`, `approval_request` and `terminal`, with the plain fields, nothing else."""

from collections.abc import Callable, Iterator

from windlass import limits
from windlass.fleet.worker.dialect import Said, encode, pieces, terminal
from windlass.fleet.worker.outbox import Waiting
from windlass.wire.delegation import OwnerRequest
from windlass.wire.execution import PermissionAsk
from windlass.wire.frames import PlainEvent
from windlass.wire.messages import Text
from windlass.wire.plain_frames import PlainApprovalBody, PlainApprovalRequest
from windlass.wire.run_events import Delta, MessageEnd, MessageStart, PartAdded, ResetMessage, RunEvent

_COMPLETE = encode(PlainEvent(event={"type": "complete"}))


class PlainVoice:
    """Text as tokens; `complete` once, when no more can come; the last message's text as the result."""

    waits_for_acks = False

    def __init__(self) -> None:
        self._message_id = ""
        self._text: list[str] = []
        self._characters = 0
        self._has_spoken = False
        self._has_ended = False

    def say(self, event: RunEvent, encoded: bytes, numbered: Callable[[int], None] | None) -> Iterator[Waiting]:
        match event:
            case MessageStart() if event.role == "assistant":
                self._message_id = event.message_id
                self._forget()
                for part in event.parts:
                    if isinstance(part, Text):
                        yield from self._tokens(part.data.text)
            case Delta() if event.message_id == self._message_id and event.field == "text":
                yield from self._tokens(event.text)
            case PartAdded() if event.message_id == self._message_id and isinstance(event.part, Text):
                yield from self._tokens(event.part.data.text)
            case ResetMessage() if event.message_id == self._message_id:
                self._forget()  # what was sent of it cannot be taken back; the result has it right
            case MessageEnd() if event.message_id == self._message_id:
                self._has_ended = True
            case _:
                pass  # nothing a plain peer knows

    def _tokens(self, text: str) -> Iterator[Waiting]:
        if not text:
            return
        # The peer sees one text: what an agent says after its tools must not stick to what it said before them.
        between = "\n\n" if self._has_spoken and not self._characters else ""
        if self._characters <= limits.WORKER_RESULT_CHARACTERS:
            self._text.append(text)
        self._characters += len(text)
        self._has_spoken = True
        for piece in pieces(between + text):
            yield Waiting(_encode_token, len(piece.encode()), text_of="tokens", pieces=[piece])

    def _forget(self) -> None:
        self._text, self._characters = [], 0

    def approval(self, id: str, ask: PermissionAsk) -> bytes:
        body = PlainApprovalBody(ask.tool_name, ask.action, ask.resource, ask.description)
        return encode(PlainApprovalRequest(id=id, body=body))

    def approval_withdrawn(self, id: str) -> None:
        return None

    def agents_request(self, id: str, request: OwnerRequest) -> None:
        return None

    def agents_withdrawn(self, id: str) -> None:
        return None

    def undelivered(self, id: str) -> None:
        return None

    def last_words(self, said: Said) -> Iterator[Waiting]:
        if said.status == "completed" and self._has_ended:
            yield Waiting(lambda _: _COMPLETE, len(_COMPLETE))

    def terminal(self, said: Said) -> bytes:
        spoken = "".join(self._text) if said.status == "completed" else ""
        return terminal(said, said.result or spoken)


def _encode_token(waiting: Waiting) -> bytes:
    return encode(PlainEvent(event={"type": "token", "content": waiting.text}))
