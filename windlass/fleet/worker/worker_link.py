"""One link of a worker: its peer's frames come in, its runs speak back. Lives in the link's thread; nothing awaits.

A second `run` supersedes the first: it starts when the first one's terminal is written, so that a peer that names no
runs can tell them apart (B53).
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol, assert_never

import structlog

from windlass import limits
from windlass.fleet.worker import websocket
from windlass.fleet.worker.assignment import Assignment
from windlass.fleet.worker.connection import Connection
from windlass.fleet.worker.dialect import NotUnderstood, Voice, encode, understand
from windlass.fleet.worker.executor_host import ExecutorHost
from windlass.fleet.worker.full_voice import FullVoice
from windlass.fleet.worker.outbox import Outbox, Overflow, Waiting
from windlass.fleet.worker.plain_voice import PlainVoice
from windlass.fleet.worker.run_spec import run_spec
from windlass.wire.execution import SteerMessage
from windlass.wire.frames import (
    AckFrame,
    AgentsReplyFrame,
    ApprovalReply,
    CancelFrame,
    ErrorFrame,
    Hello,
    MessageFrame,
    MessageWithdrawn,
    OfRun,
    ParentFrame,
    RunFrame,
    Undelivered,
)

logger = structlog.get_logger("windlass.worker")

_LOGGED, _LOGGED_THEN = 10, 1_000  # frames that were not understood: the first ones, then one in a thousand


class LinkOwner(Protocol):
    """Who serves links: decides whose turn it is and when to leave."""

    def link_changed(self, link: "WorkerLink") -> None:
        """It began or ended a run, spoke nonsense, or is over. Look at it."""

    def executor_stuck(self, link: "WorkerLink") -> None:
        """A run left something behind that does not end: this process is not clean any more."""


class WorkerLink:
    """`was_used`: it has sent a legal `run`. `is_soiled`: it spoke nonsense before that. `is_over`: nothing is left."""

    def __init__(self, connection: Connection, host: ExecutorHost, owner: LinkOwner, workspace_path: str) -> None:
        self.was_used = False
        self.is_over = False
        self.not_understood = 0
        self._connection = connection
        self._host = host
        self._owner = owner
        self._workspace_path = workspace_path
        self._plain = connection.subprotocol == ""
        self._greeted = self._plain
        self._outbox = Outbox()
        self._runs: deque[Assignment] = deque()  # the first is active, each other waits to supersede the one before
        self._terminal_written = False
        self._is_tidy = False
        self._is_leaving = False
        self._loop = asyncio.get_running_loop()
        self._pump_handle: asyncio.Handle | None = None
        self._silence: asyncio.TimerHandle | None = None
        self._ping_timer: asyncio.TimerHandle | None = None
        if not self._plain:
            self.send_control(encode(Hello()))
            self._ping_timer = self._loop.call_later(limits.LINK_PING_SECONDS, self._ping)

    @property
    def is_busy(self) -> bool:
        return bool(self._runs)

    @property
    def is_soiled(self) -> bool:
        return self.not_understood > 0 and not self.was_used

    def begin(self) -> None:
        """It is this link's turn: what it says counts from now on."""
        if not self._greeted:
            self._expect(limits.WORKER_HELLO_SECONDS, "no hello came")
        elif self._plain and not self.was_used:
            self._expect(limits.WORKER_PLAIN_SILENCE_SECONDS, "nothing was assigned")
        self._connection.release()

    def hold(self) -> None:
        """It must wait for its turn."""
        self._stop_silence()
        self._connection.hold()

    def wind_up(self, reason: str) -> None:
        """Stop the runs, send their terminals, and close."""
        self._is_leaving = True
        self._stop_runs()
        if not self._runs:
            self._close(websocket.GOING_AWAY, reason)

    def abort(self) -> None:
        self._connection.abort()

    # -- Peer: what happens on the connection -------------------------------------------------------------------------

    def message(self, payload: bytes) -> None:
        try:
            frame = understand(payload, plain=self._plain)
            if not self._greeted and not isinstance(frame, Hello):
                raise NotUnderstood("the first frame is hello")
            self._obey(frame)
        except NotUnderstood as error:
            self._nonsense(str(error), len(payload))

    def writable(self) -> None:
        self._schedule_pump()

    def may_part(self) -> bool:
        """Not while its run is being tidied up after: answered now, the parent would give us another at once, and lose
        it if something of this one stays."""
        return not (len(self._runs) == 1 and self._terminal_written and not self._is_tidy)

    def lost(self) -> None:
        """A link that is lost cancels its run; nothing can be sent any more (B57)."""
        if self.not_understood > _LOGGED:
            logger.warning("frames not understood on a link that is over", count=self.not_understood)
        self._stop_silence()
        for timer in (self._ping_timer, self._pump_handle):
            if timer is not None:
                timer.cancel()
        self._stop_runs()
        while len(self._runs) > 1:
            self._runs.pop()  # they never start, and there is nobody to tell
        for written in self._outbox.discard():
            written()
        self._look_whether_over()

    # -- frames -------------------------------------------------------------------------------------------------------

    def _obey(self, frame: ParentFrame) -> None:
        match frame:
            case RunFrame():
                self._run(frame)
            case CancelFrame():
                for run in self._meant(frame):
                    run.stop()
            case MessageFrame():
                self._steer(frame)
            case MessageWithdrawn():
                for run in self._meant(frame):
                    run.withdraw_steer(frame.id)
            case ApprovalReply():
                for run in self._meant(frame):
                    run.answer(frame)
            case AckFrame():
                for run in self._meant(frame):
                    run.acked(frame)
            case AgentsReplyFrame():
                for run in self._meant(frame):
                    run.agents_reply(frame)
            case Hello():
                self._greet(frame)
            case ErrorFrame():
                logger.warning("the parent did not understand a frame", reason=frame.reason[:100])
            case _:
                assert_never(frame)

    def _greet(self, frame: Hello) -> None:
        if frame.version < 1:
            raise NotUnderstood(f"version {frame.version} is not spoken here")
        self._greeted = True
        self._stop_silence()

    def _run(self, frame: RunFrame) -> None:
        if self._is_leaving:
            return  # the connection is about to close, which says that it was not taken
        spec = run_spec(frame, self._workspace_path, plain=self._plain)
        voice: Voice = PlainVoice() if self._plain else FullVoice(frame.run_id, frame.attempt)
        self._stop_runs()
        assignment = Assignment(self, self._host, voice, frame, spec)
        for message in frame.steering:
            assignment.steer(_steering(message))
        self._runs.append(assignment)
        self._stop_silence()
        self.was_used = True
        if len(self._runs) > limits.WORKER_WAITING_RUNS:
            self._end("too many runs supersede one another")
        elif len(self._runs) == 1:
            self._start_first()
        self._owner.link_changed(self)

    def _steer(self, frame: MessageFrame) -> None:
        runs = self._meant(frame)
        # Without a name the newest is meant: it is the one that the peer has just sent.
        if (not runs or not runs[-1].steer(frame)) and frame.id and not self._plain:
            self.send_control(encode(Undelivered(run_id=frame.run_id, attempt=frame.attempt, id=frame.id)))

    def _meant(self, frame: OfRun) -> list[Assignment]:
        """The runs that a frame is about: the one it names, or all when it names none (I21)."""
        if not frame.run_id:
            return list(self._runs)
        return [run for run in self._runs if run.key == (frame.run_id, frame.attempt)]

    def _nonsense(self, reason: str, size: int) -> None:
        self.not_understood += 1
        if self.not_understood <= _LOGGED or self.not_understood % _LOGGED_THEN == 0:
            # Neither the frame nor the reason, which quotes it: what people write is not for logs.
            logger.warning("frame not understood", count=self.not_understood, size=size)
        if not self._plain:
            self.send_control(encode(ErrorFrame(reason)))
        if self.is_soiled:
            self._owner.link_changed(self)

    # -- Outlet: what its runs say ------------------------------------------------------------------------------------

    def send_event(self, event: Waiting) -> None:
        if not self._connection.is_open:
            if event.written is not None:
                event.written()
            return
        self._put(lambda: self._outbox.put_event(event, keeps_up=self._connection.is_writable))

    def send_control(self, frame: bytes | None) -> None:
        if frame is not None and self._connection.is_open:
            self._put(lambda: self._outbox.put_control(frame, keeps_up=self._connection.is_writable))

    def run_over(self, assignment: Assignment, *, abandoned: bool) -> None:
        self._terminal_written = True
        if abandoned:
            self._is_tidy = True  # nobody will ever tell
            self._owner.executor_stuck(self)
        self._advance()

    def run_tidied(self, assignment: Assignment, is_clean: bool) -> None:
        if not self._runs or self._runs[0] is not assignment:
            return  # an abandoned one that came to its end after all
        self._is_tidy = True
        if not is_clean:
            self._owner.executor_stuck(self)
        self._advance()

    def _advance(self) -> None:
        """The next run begins when the terminal of the last is written and its traces are gone, not before."""
        if not (self._terminal_written and self._is_tidy):
            return
        self._runs.popleft()
        if self._runs and not self._is_leaving:
            self._start_first()
            return
        self._runs.clear()
        if self._is_leaving:
            self._close(websocket.GOING_AWAY, "the worker is leaving")
        self._connection.part()
        if not self._look_whether_over():
            self._owner.link_changed(self)

    def _start_first(self) -> None:
        self._terminal_written = self._is_tidy = False
        self._runs[0].start()

    def _stop_runs(self) -> None:
        for run in self._runs:
            run.stop()

    # -- sending ------------------------------------------------------------------------------------------------------

    def _put(self, put: Callable[[], None]) -> None:
        try:
            put()
        except Overflow:
            logger.error("link ended: the parent does not read, and too much waits for it")
            self.abort()
            return
        if self._outbox.fills_a_write and self._connection.is_writable:
            self._write()  # now: a flood within one turn must not look like a peer that does not read
        self._schedule_pump()

    def _schedule_pump(self) -> None:
        if self._pump_handle is None and self._outbox:
            self._pump_handle = self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        """Write what waits, one write's worth of it; the rest when everyone else has had a turn."""
        self._pump_handle = None
        if self._connection.is_writable:
            self._write()
            self._schedule_pump()

    def _write(self) -> None:
        if not self._connection.is_open:
            return
        frames, told = self._outbox.take(limits.WORKER_WRITE_BYTES)
        self._connection.write(frames)
        for written in told:
            written()

    # -- its clocks and its end ---------------------------------------------------------------------------------------

    def _ping(self) -> None:
        """Both ways every 10 s; a peer that has sent nothing at all for 60 is dead. Never for plain peers."""
        if self._loop.time() - self._connection.last_heard > limits.LINK_SILENCE_SECONDS:
            logger.warning("link ended: nothing was heard of the parent", seconds=limits.LINK_SILENCE_SECONDS)
            self.abort()
            return
        self._connection.ping()
        self._ping_timer = self._loop.call_later(limits.LINK_PING_SECONDS, self._ping)

    def _expect(self, seconds: float, otherwise: str) -> None:
        self._stop_silence()
        self._silence = self._loop.call_later(seconds, self._end, otherwise)

    def _end(self, reason: str) -> None:
        logger.warning("link ended", reason=reason)
        self._stop_runs()
        self._close(websocket.POLICY, reason)

    def _close(self, code: int, reason: str) -> None:
        self._stop_silence()
        self._connection.close(code, reason)

    def _stop_silence(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def _look_whether_over(self) -> bool:
        if self._connection.is_lost and not self._runs and not self.is_over:
            self.is_over = True
            self._owner.link_changed(self)
        return self.is_over


def _steering(message: SteerMessage) -> MessageFrame:
    return MessageFrame(
        text=message.text, id=message.run_id, message_id=message.message_id, attachments=message.attachments
    )
