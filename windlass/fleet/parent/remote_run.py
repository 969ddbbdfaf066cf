"""One run over a connection to a worker that speaks `windlass.1`."""

import asyncio
from typing import Any, NoReturn, assert_never

import msgspec
import structlog

from windlass import limits
from windlass.fleet.parent.acks import Acks
from windlass.fleet.parent.asks import Asks, check_approval, permission_ask
from windlass.fleet.parent.event_rules import EventRules
from windlass.fleet.parent.link_errors import LinkError, ProtocolError, shortened
from windlass.fleet.parent.worker_socket import WorkerSocket, encoded
from windlass.wire.delegation import OwnerReply
from windlass.wire.execution import Events, RunSpec, Steer, SteerMessage, Verdict
from windlass.wire.frames import (
    AckFrame,
    AgentsReplyFrame,
    AgentsRequestFrame,
    AgentsWithdrawn,
    ApprovalReply,
    ApprovalRequest,
    ApprovalWithdrawn,
    CancelFrame,
    ChildFrame,
    ErrorFrame,
    EventFrame,
    Frame,
    Hello,
    MessageFrame,
    MessageWithdrawn,
    OfRun,
    RunFrame,
    TerminalFrame,
    Undelivered,
)

logger = structlog.get_logger("windlass.link")
_decode = msgspec.json.Decoder(ChildFrame).decode


class RemoteRun:
    """Takes the worker's frames until its terminal, and hands on what goes the other way.

    What is taken goes straight to `events`, in order, without an await; what needs an answer gets a task.
    """

    def __init__(
        self, socket: WorkerSocket, spec: RunSpec, events: Events, steer: Steer, *, attempt: int, workspace_path: str
    ) -> None:
        self._socket = socket
        self._spec = spec
        self._events = events
        self._steer = steer
        self._attempt = attempt
        self._workspace_path = workspace_path or spec.workspace_path
        self._rules = EventRules(spec)
        self._seq = 0
        self._unsettled = 0  # bytes of events since all of them were last known to be on disk
        self.asks = Asks()
        self.acks = Acks(self._acknowledge)

    # -- to the worker ------------------------------------------------------------------------------------------------

    def opening(self) -> RunFrame:
        spec = self._spec
        # With the run itself: sent behind it, they could come after its first step boundary.
        steering = self._steer.take()
        for message in steering:
            self._note_sent(message)
        return RunFrame(
            run_id=spec.run_id,
            attempt=self._attempt,
            assignment=spec.prompt,
            reasoning_effort=spec.reasoning_effort or None,
            messages=list(spec.messages),
            session_id=spec.session_id,
            root_session_id=spec.root_session_id,
            workspace_path=self._workspace_path,
            model=spec.model,
            attachments=spec.attachments,
            steering=steering,
            purpose=spec.purpose,
            plan=spec.plan,
            wants_title=spec.wants_title,
            max_cost=spec.max_cost,
        )

    def cancelling(self) -> Frame:
        return CancelFrame(run_id=self._spec.run_id, attempt=self._attempt)

    async def hand_on_steering(self) -> NoReturn:
        """Send what people say to the run, as they say it. What it does not take stays its owner's."""
        while True:
            message = await self._steer.next()
            data = encoded(self._steering(message))
            if len(data) > limits.LINK_FRAME_BYTES:
                logger.warning(
                    "a steering message is too large for a link", run=self._spec.run_id, steer=message.run_id
                )
                continue
            self._note_sent(message)
            await self._socket.send_text(data)

    async def hand_on_withdrawals(self) -> NoReturn:
        """Take back what people took back. What the worker has taken by then, it has taken."""
        while True:
            frame = self._withdrawal(await self._steer.withdrawn())
            if frame is not None:
                await self._socket.send(frame)

    def _withdrawal(self, id: str) -> Frame | None:
        return MessageWithdrawn(run_id=self._spec.run_id, attempt=self._attempt, id=id)

    def _steering(self, message: SteerMessage) -> Frame:
        return MessageFrame(
            run_id=self._spec.run_id,
            attempt=self._attempt,
            text=message.text,
            id=message.run_id,
            message_id=message.message_id,
            attachments=message.attachments,
        )

    def _note_sent(self, message: SteerMessage) -> None:
        self._rules.hand(message.run_id, message.message_id)

    async def _acknowledge(self, seq: int) -> None:
        await self._socket.send(AckFrame(run_id=self._spec.run_id, attempt=self._attempt, seq=seq))

    # -- from the worker ----------------------------------------------------------------------------------------------

    async def read(self, opening: bytes) -> TerminalFrame:
        """Send the run and take frames until its terminal; all it said is on disk then. Raises LinkError."""
        await self._socket.send_text(opening)
        taken = 0
        while True:
            data = await self._socket.receive()
            frame = self._decoded(data)
            if isinstance(frame, TerminalFrame):
                _check_transcript(frame, len(data))
                self._check_run(frame)
                await self.acks.settled()
                return frame
            self._take(frame, len(data))
            if self._unsettled > limits.LINK_UNSETTLED_BYTES:
                # It says more than the disk takes: it has to wait, or its words would pile up in everyone's memory.
                self._unsettled = 0
                await self.acks.caught_up()
            taken += 1
            if taken % limits.LINK_YIELD_FRAMES == 0:
                # What has already arrived is received without a pause: a flood would leave nobody else a turn.
                await asyncio.sleep(0)

    def _decoded(self, data: str) -> Any:
        try:
            return _decode(data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ProtocolError(f"a frame that cannot be understood: {error}") from None

    def _check_run(self, frame: OfRun) -> None:
        """A frame of another run, or of an earlier attempt at this one, is never taken for this one's (I21)."""
        if frame.run_id != self._spec.run_id or frame.attempt != self._attempt:
            raise ProtocolError("a frame of another run")

    def _take(self, frame: Any, size: int) -> None:
        taken: ChildFrame = frame
        if isinstance(taken, OfRun):
            self._check_run(taken)
        match taken:
            case EventFrame():
                self._take_event(taken, size)
            case ApprovalRequest():
                check_approval(taken, size)
                self.asks.begin(taken.id, self._approve(taken))
            case ApprovalWithdrawn():
                self.asks.withdraw(taken.id)
            case AgentsRequestFrame():
                self.asks.begin(taken.id, self._delegate(taken))
            case AgentsWithdrawn():
                self.asks.withdraw(taken.id)
            case Undelivered():
                self._rules.handed.discard(taken.id)
            case ErrorFrame():
                raise LinkError(f"The worker did not understand what it was sent: {shortened(taken.reason)}.")
            case Hello():
                raise ProtocolError("a second hello")
            case TerminalFrame():
                raise AssertionError("the reader ends with it")
            case _:
                assert_never(taken)

    def _take_event(self, frame: EventFrame, size: int) -> None:
        if frame.seq != self._seq + 1:
            raise ProtocolError(f"event {frame.seq} came where {self._seq + 1} was due")
        self._seq = frame.seq
        self._rules.check(frame.event, size)
        self._unsettled += size
        if frame.durable or self._unsettled > limits.LINK_UNSETTLED_BYTES:
            self.acks.add(frame.seq, lambda: self._events.durable(frame.event))
        else:
            self._events.emit(frame.event)

    async def _approve(self, frame: ApprovalRequest) -> None:
        verdict: Verdict = "denied"
        try:
            verdict = await self._events.approve(permission_ask(frame.body))
        except Exception as error:
            # The border of a task. No answer means no (B55).
            logger.error("an approval could not be asked for", run=self._spec.run_id, error=repr(error))
        await self._socket.send(self._approval(frame.id, verdict))

    def _approval(self, id: str, verdict: Verdict) -> Frame:
        return ApprovalReply(
            run_id=self._spec.run_id, attempt=self._attempt, id=id, approved=verdict == "granted", verdict=verdict
        )

    async def _delegate(self, frame: AgentsRequestFrame) -> None:
        reply = OwnerReply(error="The request could not be carried out. Go on without that agent.")
        try:
            reply = await self._events.delegate(frame.request)
        except Exception as error:
            # The border of a task, as above.
            logger.error("a request about agents failed", run=self._spec.run_id, error=repr(error))
        await self._socket.send(
            AgentsReplyFrame(run_id=self._spec.run_id, attempt=self._attempt, id=frame.id, reply=reply)
        )


def _check_transcript(frame: TerminalFrame, size: int) -> None:
    # Measured only where the whole frame is larger: it cannot be larger than its frame.
    if (
        size > limits.LINK_TRANSCRIPT_BYTES
        and len(msgspec.json.encode(frame.transcript)) > limits.LINK_TRANSCRIPT_BYTES
    ):
        raise ProtocolError(f"a transcript of over {limits.LINK_TRANSCRIPT_BYTES} bytes")
