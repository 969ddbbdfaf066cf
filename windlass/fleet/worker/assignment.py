"""One run of a link, from its `run` frame to its terminal. Lives in the link's thread; nothing here awaits.

Stopping it is a ladder: ask (the token), 3 s, abort (the task is cancelled), 3 s, then it is abandoned and its
terminal is sent all the same.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

import msgspec
import structlog

from windlass import limits
from windlass.fleet.worker.dialect import Said, Voice
from windlass.fleet.worker.executor_host import Execution, ExecutorHost
from windlass.fleet.worker.outbox import Waiting
from windlass.fleet.worker.run_ports import Durable, RunPorts
from windlass.ids import new_id
from windlass.wire.execution import RunSpec, SteerMessage, Verdict
from windlass.wire.frames import AckFrame, AgentsReplyFrame, ApprovalReply, MessageFrame, OfRun

logger = structlog.get_logger("windlass.worker")


class Outlet(Protocol):
    """The link, as its runs see it."""

    def send_event(self, event: Waiting) -> None: ...

    def send_control(self, frame: bytes | None) -> None: ...

    def run_over(self, assignment: "Assignment", *, abandoned: bool) -> None:
        """Its terminal is written; nothing of it follows."""

    def run_tidied(self, assignment: "Assignment", is_clean: bool) -> None: ...


class Assignment:
    """`voice` is how it speaks to the peer it came from; `key` is what frames name it by (I21)."""

    def __init__(self, outlet: Outlet, host: ExecutorHost, voice: Voice, frame: OfRun, spec: RunSpec) -> None:
        self.key = (frame.run_id, frame.attempt)
        self._outlet = outlet
        self._host = host
        self._voice = voice
        self._spec = spec
        self._ports = RunPorts(self, voice, host.post)
        self._execution: Execution | None = None
        self._is_stopping = False
        self._is_over = False
        self._is_abandoned = False
        self._takes_more = False
        self._ladder: asyncio.TimerHandle | None = None
        self._unacked: deque[tuple[int, Durable]] = deque()
        self._asked: set[str] = set()
        self._steers: dict[str, MessageFrame] = {}  # sent to the executor and not taken yet
        self._steer_characters = 0

    # -- its life -----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        if self._is_stopping:
            self._finish(Said("cancelled"))  # while it waited for the one before it
            self._outlet.run_tidied(self, True)
        else:
            self._execution = self._host.begin(self._spec, self._ports, self)

    def stop(self) -> None:
        """Ask it to stop. From now on nothing it says is taken."""
        if self._is_stopping or self._is_over:
            return
        self._is_stopping = True
        for id in self._asked:
            self._outlet.send_control(self._voice.approval_withdrawn(id))
        self._asked.clear()
        if self._execution is None:
            # It will never start; what it was to work on can be large, and many may wait.
            self._spec = msgspec.structs.replace(self._spec, prompt="", messages=[], attachments=[])
        else:
            self._ports.cancel.requested = True  # at once, also for an executor whose loop is busy
            self._host.tell(self._ports.stop)
            self._ladder = asyncio.get_running_loop().call_later(limits.STOP_ASK_SECONDS, self._abort)

    def _abort(self) -> None:
        assert self._execution is not None
        self._execution.abort()
        self._ladder = asyncio.get_running_loop().call_later(limits.STOP_ABORT_SECONDS, self._abandon)

    def _abandon(self) -> None:
        logger.warning("executor ignores its cancel and is abandoned", run=self._spec.run_id)
        assert self._execution is not None
        self._execution.abandon()
        self._is_abandoned = True
        self._finish(Said("cancelled"))

    def ended(self, said: Said) -> None:
        """The executor's task is over."""
        if self._is_over:
            return  # it was abandoned before
        self._take(limits.WORKER_HANDOVER_EVENTS + 1)
        if self._is_stopping:
            # Whatever it claims: from the stop on its words were dropped, so it cannot have completed.
            said = Said("cancelled", said.result, "", said.transcript)
        self._finish(said)

    def tidied(self, is_clean: bool) -> None:
        self._outlet.run_tidied(self, is_clean)

    def _finish(self, said: Said) -> None:
        """The one place where a run ends: what nobody read is told, then the terminal, after every event (I20)."""
        self._is_over = True
        if self._ladder is not None:
            self._ladder.cancel()
        for id in self._asked:
            self._outlet.send_control(self._voice.approval_withdrawn(id))
        self._asked.clear()
        for message in self._steers.values():
            self._outlet.send_control(self._voice.undelivered(message.id) if message.id else None)
        self._steers.clear()
        for last in self._voice.last_words(said):
            self._outlet.send_event(last)
        frame = self._voice.terminal(said)
        self._outlet.send_event(Waiting(lambda _: frame, len(frame), written=self._terminal_written))

    def _terminal_written(self) -> None:
        self._outlet.run_over(self, abandoned=self._is_abandoned)

    # -- from the executor --------------------------------------------------------------------------------------------

    def take_events(self) -> None:
        """Some of what it emitted; the rest when other links have had their turn."""
        if not self._takes_more:
            self._take_some()

    def _take_some(self) -> None:
        self._take(limits.LINK_YIELD_FRAMES)
        self._takes_more = bool(self._ports.emitted) and not self._is_over
        if self._takes_more:
            asyncio.get_running_loop().call_soon(self._take_some)

    def _take(self, most: int) -> None:
        emitted = self._ports.emitted
        while emitted and most:
            most -= 1
            event, encoded, committed = emitted.popleft()
            if self._is_stopping or self._is_over:
                continue
            numbered = None if committed is None else self._note_of(committed)
            for waiting in self._voice.say(event, encoded, numbered):
                self._outlet.send_event(waiting)
        self._ports.taken()

    def _note_of(self, committed: Durable) -> Callable[[int], None]:
        return lambda seq: self._unacked.append((seq, committed))

    def ask(self, id: str, frame: bytes) -> None:
        if not self._is_stopping and not self._is_over:
            self._asked.add(id)
            self._outlet.send_control(frame)

    def ask_no_more(self, id: str) -> None:
        if id in self._asked:
            self._asked.discard(id)
            self._outlet.send_control(self._voice.approval_withdrawn(id))

    def delegate(self, frame: bytes) -> None:
        if not self._is_stopping and not self._is_over:
            self._outlet.send_control(frame)

    def steer_taken(self, id: str) -> None:
        message = self._steers.pop(id, None)
        if message is not None:
            self._steer_characters -= len(message.text)

    # -- from the parent ----------------------------------------------------------------------------------------------

    def steer(self, frame: MessageFrame) -> bool:
        """Hand a message to the executor; False: it cannot be taken any more."""
        id = frame.id or new_id("steer")
        size = self._steer_characters + len(frame.text)
        if self._is_over or id in self._steers:
            return False
        if len(self._steers) >= limits.WORKER_STEERS or size > limits.WORKER_STEER_CHARACTERS:
            logger.warning("a message was not taken: too many wait for this run", run=self._spec.run_id)
            return False
        self._steers[id] = frame
        self._steer_characters = size
        message = SteerMessage(id, frame.text, frame.message_id or new_id("msg"), frame.attachments)
        self._host.tell(self._ports.steer.push, message)
        return True

    def withdraw_steer(self, id: str) -> None:
        self.steer_taken(id)  # it is nobody's any more, so it does not come back as undelivered
        self._host.tell(self._ports.steer.withdraw, id)

    def answer(self, reply: ApprovalReply) -> None:
        """An id that nobody waits for does nothing."""
        if reply.id in self._asked:
            self._asked.discard(reply.id)
            self._host.tell(self._ports.answered, reply.id, _verdict(reply))

    def agents_reply(self, frame: AgentsReplyFrame) -> None:
        self._host.tell(self._ports.replied, frame.id, frame.reply)

    def acked(self, frame: AckFrame) -> None:
        done = []
        while self._unacked and self._unacked[0][0] <= frame.seq:
            done.append(self._unacked.popleft()[1])
        if done:
            self._host.tell(self._ports.committed, done)


def _verdict(reply: ApprovalReply) -> Verdict:
    """Granted only if nothing in the reply says otherwise."""
    if reply.approved and reply.verdict in (None, "granted"):
        return "granted"
    return reply.verdict if reply.verdict in ("withdrawn", "expired") else "denied"
