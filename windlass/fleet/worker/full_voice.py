"""How a run speaks to a windlass.1 peer: run events with numbers, and its name on every frame."""

from collections.abc import Callable, Iterator

import msgspec

from windlass.fleet.worker.dialect import Said, encode, pieces, terminal
from windlass.fleet.worker.outbox import Waiting
from windlass.wire.delegation import OwnerRequest
from windlass.wire.execution import PermissionAsk
from windlass.wire.frames import (
    AgentsRequestFrame,
    AgentsWithdrawn,
    ApprovalBody,
    ApprovalRequest,
    ApprovalWithdrawn,
    OfRun,
    Undelivered,
)
from windlass.wire.run_events import Delta, RunEvent


class _Event(OfRun, tag="event", frozen=True, kw_only=True):
    """An EventFrame whose event is encoded already."""

    event: msgspec.Raw
    seq: int
    durable: bool = False


class FullVoice:
    """Numbers its events in the order in which they are written: dense also when text was merged."""

    waits_for_acks = True

    def __init__(self, run_id: str, attempt: int) -> None:
        self._run_id = run_id
        self._attempt = attempt
        self._seq = 0  # of the last event that was written

    def say(self, event: RunEvent, encoded: bytes, numbered: Callable[[int], None] | None) -> Iterator[Waiting]:
        if isinstance(event, Delta) and numbered is None:
            yield from self._deltas(event)
        else:
            yield Waiting(lambda _: self._frame(encoded, numbered), len(encoded))

    def _deltas(self, event: Delta) -> Iterator[Waiting]:
        text_of = (self._run_id, self._attempt, event.message_id, event.part, event.field)
        for piece in pieces(event.text) if event.text else [""]:
            opens = bool(event.part_type or event.id or event.name)
            yield Waiting(
                self._delta_encoder(event),
                len(piece.encode()),
                text_of=text_of,
                continues=not opens,
                pieces=[piece],
            )
            event = msgspec.structs.replace(event, part_type="", id="", name="")

    def _delta_encoder(self, event: Delta) -> Callable[[Waiting], bytes]:
        return lambda waiting: self._frame(encode(msgspec.structs.replace(event, text=waiting.text)), None)

    def _frame(self, event: bytes, numbered: Callable[[int], None] | None) -> bytes:
        self._seq += 1
        if numbered is not None:
            numbered(self._seq)
        return encode(
            _Event(
                run_id=self._run_id,
                attempt=self._attempt,
                event=msgspec.Raw(event),
                seq=self._seq,
                durable=numbered is not None,
            )
        )

    def approval(self, id: str, ask: PermissionAsk) -> bytes:
        body = ApprovalBody(
            tool_name=ask.tool_name,
            permission_type=ask.action,
            resource=ask.resource,
            question=ask.description,
            tool_call_id=ask.tool_call_id,
            params=ask.params,
            path=ask.path,
            confined=ask.confined,
            read_only=ask.read_only,
        )
        return encode(ApprovalRequest(run_id=self._run_id, attempt=self._attempt, id=id, body=body))

    def approval_withdrawn(self, id: str) -> bytes:
        return encode(ApprovalWithdrawn(run_id=self._run_id, attempt=self._attempt, id=id))

    def agents_request(self, id: str, request: OwnerRequest) -> bytes:
        return encode(AgentsRequestFrame(run_id=self._run_id, attempt=self._attempt, id=id, request=request))

    def agents_withdrawn(self, id: str) -> bytes:
        return encode(AgentsWithdrawn(run_id=self._run_id, attempt=self._attempt, id=id))

    def undelivered(self, id: str) -> bytes:
        return encode(Undelivered(run_id=self._run_id, attempt=self._attempt, id=id))

    def last_words(self, said: Said) -> Iterator[Waiting]:
        return iter(())

    def terminal(self, said: Said) -> bytes:
        return terminal(said, said.result, self._run_id, self._attempt)
