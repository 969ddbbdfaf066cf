"""The owner of a run, as far as a link can see it: takes events, commits them when the test says so, answers."""

import asyncio
from collections.abc import Awaitable, Callable

from windlass.ids import new_id
from windlass.wire.delegation import AgentsRequest, OwnerReply
from windlass.wire.execution import PermissionAsk, RunSpec, SteerMessage, Verdict
from windlass.wire.messages import text_message
from windlass.wire.run_events import Delta, RunEvent


class Recorder:
    """Events: what was emitted, in order. `disk` is what a durable event waits for; `verdict` what people say."""

    def __init__(self) -> None:
        self.events: list[RunEvent] = []
        self.disk = asyncio.Event()
        self.disk.set()
        self.asked: list[PermissionAsk] = []
        self.verdict: Verdict = "granted"
        self.people = asyncio.Event()
        self.people.set()
        self.withdrawn = 0
        self.requests: list[AgentsRequest] = []
        self.reply = OwnerReply()
        self.deaf = False
        self._changed = asyncio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return when it holds; looked at whenever anything happened here."""
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    def emit(self, event: RunEvent) -> None:
        self.events.append(event)
        self._changed.set()

    def durable(self, event: RunEvent) -> Awaitable[None]:
        self.emit(event)
        return self._commit()

    async def _commit(self) -> None:
        await self.disk.wait()
        if self.deaf:
            raise asyncio.CancelledError

    async def approve(self, ask: PermissionAsk) -> Verdict:
        self.asked.append(ask)
        self._changed.set()
        try:
            await self.people.wait()
        except asyncio.CancelledError:
            self.withdrawn += 1
            self._changed.set()
            raise
        return self.verdict

    async def delegate(self, request: AgentsRequest) -> OwnerReply:
        self.requests.append(request)
        return self.reply

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Delta))

    @property
    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


class SteerQueue:
    """Steer: what a test says into the run. `begun` is set when the run first looks for it."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[SteerMessage] = asyncio.Queue()
        self._withdrawn: asyncio.Queue[str] = asyncio.Queue()
        self.begun = asyncio.Event()

    def say(self, text: str) -> str:
        """Returns the id of the steered prompt."""
        message = SteerMessage(new_id("run"), text, new_id("msg"))
        self._waiting.put_nowait(message)
        return message.run_id

    def take(self) -> list[SteerMessage]:
        self.begun.set()
        return [self._waiting.get_nowait() for _ in range(self._waiting.qsize())]

    async def next(self) -> SteerMessage:
        return await self._waiting.get()

    def withdraw(self, run_id: str) -> None:
        self._withdrawn.put_nowait(run_id)

    async def withdrawn(self) -> str:
        return await self._withdrawn.get()


class Token:
    """Cancel: set by the test."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        await self._event.wait()

    def set(self) -> None:
        self._event.set()


class World:
    """Everything a run is given."""

    def __init__(self, prompt: str = "hello", earlier: tuple[str, ...] = ()) -> None:
        self.events = Recorder()
        self.steer = SteerQueue()
        self.cancel = Token()
        session_id = new_id("ses")
        messages = [
            text_message(
                id=new_id("msg"),
                role="user" if index % 2 == 0 else "assistant",
                session_id=session_id,
                text=text,
                model="",
                provider="",
                created_at=1,
                updated_at=1,
            )
            for index, text in enumerate((*earlier, prompt))
        ]
        self.spec = RunSpec(
            run_id=new_id("run"),
            session_id=session_id,
            root_session_id=session_id,
            workspace_path="/home/me/space",
            prompt=prompt,
            messages=messages,
            model="local/some-model",
        )
