"""What an executor is given: where its events go, what people send into it, and the token that stops it.

Executors run on an event loop of their own thread, so that one that blocks cannot keep a cancel, a ping or the
parent's death from being noticed. Everything here is called there; `post` carries it over to the link's thread.
"""

import asyncio
import threading
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import structlog

from windlass import limits
from windlass.fleet.worker.dialect import Voice, encode
from windlass.wire.delegation import OwnerReply, OwnerRequest
from windlass.wire.execution import PermissionAsk, SteerMessage, Verdict
from windlass.wire.run_events import RunEvent

logger = structlog.get_logger("windlass.worker")

Post = Callable[..., None]
Durable = asyncio.Future[None]


class Owner(Protocol):
    """The run these ports belong to, in the link's thread."""

    def take_events(self) -> None: ...

    def ask(self, id: str, frame: bytes) -> None: ...

    def ask_no_more(self, id: str) -> None: ...

    def delegate(self, frame: bytes) -> None: ...

    def steer_taken(self, id: str) -> None: ...


class CancelToken:
    """Set once when the run is to stop."""

    def __init__(self) -> None:
        self.requested = False  # written by the link's thread, so that an executor that computes sees it too
        self._event = asyncio.Event()

    async def wait(self) -> None:
        await self._event.wait()

    def wake(self) -> None:
        self.requested = True
        self._event.set()


class RunSteer:
    """Messages that people sent into the run, each handed out once."""

    def __init__(self, post: Post, owner: Owner) -> None:
        self._post = post
        self._owner = owner
        self._waiting: deque[SteerMessage] = deque()
        self._arrived = asyncio.Event()
        self._handed_out: deque[str] = deque(maxlen=limits.WORKER_STEERS)
        self._withdrawn: deque[str] = deque(maxlen=limits.WORKER_STEERS)
        self._was_withdrawn = asyncio.Event()

    def take(self) -> list[SteerMessage]:
        return [self._hand_out() for _ in range(len(self._waiting))]

    async def next(self) -> SteerMessage:
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        return self._hand_out()

    async def withdrawn(self) -> str:
        while not self._withdrawn:
            self._was_withdrawn.clear()
            await self._was_withdrawn.wait()
        return self._withdrawn.popleft()

    def _hand_out(self) -> SteerMessage:
        message = self._waiting.popleft()
        self._handed_out.append(message.run_id)
        self._post(self._owner.steer_taken, message.run_id)
        return message

    def push(self, message: SteerMessage) -> None:
        self._waiting.append(message)
        self._arrived.set()

    def withdraw(self, id: str) -> None:
        """It was cancelled: not handed out any more, or told to whoever has it."""
        self._waiting = deque(message for message in self._waiting if message.run_id != id)
        if id in self._handed_out:
            self._handed_out.remove(id)
            self._withdrawn.append(id)
            self._was_withdrawn.set()


class RunPorts:
    """The `Events` of one run; `steer` and `cancel` are beside it."""

    def __init__(self, owner: Owner, voice: Voice, post: Post) -> None:
        self.cancel = CancelToken()
        self.steer = RunSteer(post, owner)
        self.emitted: deque[tuple[RunEvent, bytes, Durable | None]] = deque()  # emptied by the link's thread
        self._owner = owner
        self._voice = voice
        self._post = post
        self._is_told = False
        self._room = threading.Event()
        self._durables: set[Durable] = set()
        self._asked: dict[str, asyncio.Future[Verdict]] = {}
        self._delegated: dict[str, asyncio.Future[OwnerReply]] = {}

    # -- Events -------------------------------------------------------------------------------------------------------

    def emit(self, event: RunEvent) -> None:
        if not self.cancel.requested:
            self._hand_over(event, None)

    def durable(self, event: RunEvent) -> Awaitable[None]:
        committed: Durable = asyncio.get_running_loop().create_future()
        if self.cancel.requested:
            committed.cancel()
        elif not self._voice.waits_for_acks:
            self._hand_over(event, None)
            committed.set_result(None)  # a plain peer keeps no log: nothing more can be waited for
        else:
            if len(self._durables) >= limits.LINK_UNACKED_EVENTS:
                raise RuntimeError("the executor waits for more events at once than the link keeps track of")
            self._hand_over(event, committed)
            self._durables.add(committed)
            committed.add_done_callback(self._durables.discard)
        return committed

    async def approve(self, ask: PermissionAsk) -> Verdict:
        if self.cancel.requested:
            return "withdrawn"
        if len(self._asked) >= limits.LINK_PENDING_ASKS:
            logger.warning("approval denied: too many of this run wait for an answer", waiting=len(self._asked))
            return "denied"
        id = f"sa-{uuid.uuid4()}"  # random: whoever can guess it could answer it (B55)
        frame = _bounded(self._voice.approval(id, ask), limits.LINK_APPROVAL_BYTES, "an approval request")
        answer: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._asked[id] = answer
        self._post(self._owner.ask, id, frame)
        try:
            async with asyncio.timeout(limits.WORKER_APPROVAL_SECONDS):
                return await answer
        except TimeoutError:
            return "expired"
        finally:
            del self._asked[id]
            self._post(self._owner.ask_no_more, id)

    async def delegate(self, request: OwnerRequest) -> OwnerReply:
        if self.cancel.requested:
            return _WITHDRAWN
        if len(self._delegated) >= limits.LINK_PENDING_ASKS:
            return OwnerReply(error="Too many requests to the owner wait for an answer. Wait for one of them first.")
        id = str(uuid.uuid4())
        frame = self._voice.agents_request(id, request)
        if frame is None:
            return OwnerReply(error="Nobody can be asked for that over this link. Do it yourself, or go on without.")
        reply: asyncio.Future[OwnerReply] = asyncio.get_running_loop().create_future()
        self._delegated[id] = reply
        self._post(self._owner.delegate, _bounded(frame, limits.LINK_FRAME_BYTES, "a request about agents"))
        try:
            return await reply
        except asyncio.CancelledError:
            # Else the parent goes on waiting for us, once for each time somebody changed his mind.
            if (withdrawn := self._voice.agents_withdrawn(id)) is not None:
                self._post(self._owner.delegate, withdrawn)
            raise
        finally:
            del self._delegated[id]

    def _hand_over(self, event: RunEvent, committed: Durable | None) -> None:
        # Encoded here: an event that cannot be sent is the executor's mistake, and is told to it.
        encoded = _bounded(encode(event), limits.LINK_FRAME_BYTES - limits.WORKER_FRAME_OVERHEAD_BYTES, "an event")
        if len(self.emitted) >= limits.WORKER_HANDOVER_EVENTS:
            self._wait_for_room()
        self.emitted.append((event, encoded, committed))
        if not self._is_told:
            self._is_told = True
            self._post(self._take)

    def _wait_for_room(self) -> None:
        """Blocks the executors' loop, and only that, until the links' thread has caught up: the executor emits without
        ever waiting, and there is no other way to slow it down."""
        self._room.clear()
        if len(self.emitted) >= limits.WORKER_HANDOVER_EVENTS and not self._room.wait(limits.WORKER_HANDOVER_SECONDS):
            raise RuntimeError("the executor's events are not taken any more")

    # -- called in the link's thread ----------------------------------------------------------------------------------

    def taken(self) -> None:
        """Some events were taken from `emitted`."""
        if len(self.emitted) < limits.WORKER_HANDOVER_EVENTS // 2:
            self._room.set()

    def _take(self) -> None:
        # First this, then the events: one that is emitted meanwhile is either taken now or posts again.
        self._is_told = False
        self._owner.take_events()

    # -- what came from the link's thread, on the executors' loop -----------------------------------------------------

    def stop(self) -> None:
        """Nothing is taken any more, and nobody waits for an answer that cannot come."""
        self.cancel.wake()
        for committed in list(self._durables):
            committed.cancel()
        for answer in self._asked.values():
            _settle(answer, "withdrawn")
        for reply in self._delegated.values():
            _settle(reply, _WITHDRAWN)

    def committed(self, durables: list[Durable]) -> None:
        for durable in durables:
            _settle(durable, None)

    def answered(self, id: str, verdict: Verdict) -> None:
        if id in self._asked:
            _settle(self._asked[id], verdict)

    def replied(self, id: str, reply: OwnerReply) -> None:
        if id in self._delegated:
            _settle(self._delegated[id], reply)


_WITHDRAWN = OwnerReply(error="The run was cancelled.")


def _settle(future: "asyncio.Future[Any]", value: Any) -> None:
    if not future.done():
        future.set_result(value)


def _bounded(frame: bytes, size: int, what: str) -> bytes:
    if len(frame) > size:
        raise ValueError(f"{what} of {len(frame)} bytes; at most {size} can be sent over a link")
    return frame
