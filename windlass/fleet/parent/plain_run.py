"""One run over a connection to a worker that speaks plain frames: its tokens become one assistant message.

It knows nothing of run events, acks or withdrawals, and is sent nothing that it does not know.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from windlass import limits
from windlass.fleet.parent.asks import check_approval
from windlass.fleet.parent.link_errors import ProtocolError
from windlass.fleet.parent.remote_run import RemoteRun
from windlass.fleet.parent.worker_socket import WorkerSocket
from windlass.wire.execution import Events, RunSpec, Steer, SteerMessage, Verdict
from windlass.wire.frames import (
    ApprovalReply,
    ApprovalRequest,
    CancelFrame,
    Frame,
    MessageFrame,
    OfRun,
    PlainChildFrame,
    PlainEvent,
    RunFrame,
    TerminalFrame,
)
from windlass.wire.run_events import Delta, MessageEnd, MessageStart, SteerTaken

logger = structlog.get_logger("windlass.link")
_decode = msgspec.json.Decoder(PlainChildFrame).decode


class PlainRun(RemoteRun):
    """The same exchange with the plain fields only. There is one run on the connection, so frames name none."""

    def __init__(
        self, socket: WorkerSocket, spec: RunSpec, events: Events, steer: Steer, new_message_id: Callable[[], str]
    ) -> None:
        super().__init__(socket, spec, events, steer, attempt=0, workspace_path="")
        self._new_message_id = new_message_id
        self._message_id = ""  # of the message that is being written
        self._spoke = False
        self._characters = 0
        self.ignored = 0  # events that mean nothing to us

    # -- to the worker ------------------------------------------------------------------------------------------------

    def opening(self) -> RunFrame:
        if self._spec.attachments:
            logger.warning("a plain worker is given no attachments", run=self._spec.run_id)
        earlier = list(self._spec.messages[:-1])
        return RunFrame(
            assignment=self._spec.prompt,
            reasoning_effort=self._spec.reasoning_effort or None,
            messages=earlier or None,
        )

    def cancelling(self) -> Frame:
        return CancelFrame()

    def _steering(self, message: SteerMessage) -> Frame:
        return MessageFrame(text=message.text)

    def _withdrawal(self, id: str) -> Frame | None:
        return None  # there is no such word in its language

    def _note_sent(self, message: SteerMessage) -> None:
        # It will never say that it took it. To have sent it is all there is to know.
        self._events.emit(SteerTaken(message.run_id))

    def _approval(self, id: str, verdict: Verdict) -> Frame:
        return ApprovalReply(id=id, approved=verdict == "granted")

    # -- from the worker ----------------------------------------------------------------------------------------------

    async def read(self, opening: bytes) -> TerminalFrame:
        terminal = await super().read(opening)
        if terminal.status == "completed":
            if terminal.result and not self._spoke:
                self._say(terminal.result)
            self._end_message()
        # Else the message stays open: its owner ends it with the reason.
        return terminal

    def _decoded(self, data: str) -> Any:
        try:
            return _decode(data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ProtocolError(f"a frame that cannot be understood: {error}") from None

    def _check_run(self, frame: OfRun) -> None:
        pass

    def _take(self, frame: Any, size: int) -> None:
        if isinstance(frame, ApprovalRequest):
            check_approval(frame, size)
            self.asks.begin(frame.id, self._approve(frame))
        elif isinstance(frame, PlainEvent):
            self._take_plain(frame.event)

    def _take_plain(self, event: dict[str, Any]) -> None:
        match event:
            case {"type": "token", "content": str(text)}:
                self._say(text)
            case {"type": "complete"}:
                self._end_message()
            case _:
                self.ignored += 1

    def _say(self, text: str) -> None:
        if not text:
            return
        self._characters += len(text)
        if self._characters > limits.MESSAGE_BYTES:
            raise ProtocolError(f"a message of over {limits.MESSAGE_BYTES} characters")
        first = not self._message_id
        if first:
            self._message_id = self._new_message_id()
            self._spoke = True
            self._events.emit(MessageStart(self._message_id, "assistant"))
        self._events.emit(Delta(self._message_id, 0, "text", text, part_type="text" if first else ""))

    def _end_message(self) -> None:
        if self._message_id:
            self._events.emit(MessageEnd(self._message_id, "end_turn"))
            self._message_id = ""
