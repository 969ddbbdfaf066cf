"""What the tests of the agent share: the three ports of a run kept in memory, tiny real tools, and factories."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

import msgspec

from windlass.agent.executor import AgentExecutor
from windlass.agent.settings import AgentSettings
from windlass.models.script import parse_script
from windlass.models.scripted import ScriptedModel
from windlass.wire.delegation import OwnerReply, OwnerRequest
from windlass.wire.execution import PermissionAsk, RunOutcome, RunSpec, SteerMessage, Verdict
from windlass.wire.messages import (
    Finish,
    FinishData,
    Message,
    Part,
    Reasoning,
    ReasoningData,
    Role,
    Text,
    TextData,
    ToolCall,
    ToolCallData,
    ToolResult,
    ToolResultData,
)
from windlass.wire.model import Chunk, Model, ModelError, ModelRequest, Take
from windlass.wire.run_events import Delta, MessageEnd, MessageStart, PartAdded, ResetMessage, RunEvent, ToolEnded
from windlass.wire.tools import Tool, ToolError, ToolOutput

Reply = list[dict[str, Any]]


class RecordedEvents:
    """Keeps every event in order. `durable_ones` are those that were waited for."""

    def __init__(self, verdict: Verdict = "granted") -> None:
        self.all: list[RunEvent] = []
        self.durable_ones: list[RunEvent] = []
        self.asks: list[PermissionAsk] = []
        self.verdict = verdict
        self.seconds_to_approve = 0.0
        self.on_emit: Callable[[RunEvent], None] = lambda event: None

    def emit(self, event: RunEvent) -> None:
        self.all.append(event)
        self.on_emit(event)

    async def durable(self, event: RunEvent) -> None:
        self.emit(event)
        await asyncio.sleep(0)
        self.durable_ones.append(event)

    async def approve(self, ask: PermissionAsk) -> Verdict:
        self.asks.append(ask)
        await asyncio.sleep(self.seconds_to_approve)
        return self.verdict

    async def delegate(self, request: OwnerRequest) -> OwnerReply:
        return OwnerReply(error="There is no one to ask.")

    def of(self, kind: type[RunEvent]) -> list[Any]:
        return [event for event in self.all if isinstance(event, kind)]

    def results(self) -> list[ToolResultData]:
        """Every result as it is stored, whether it was streamed or not."""
        parts = (part for one in self.messages() if one.role == "tool" for part in one.parts)
        return [part.data for part in parts if isinstance(part, ToolResult)]

    def endings(self) -> list[str]:
        return [event.reason for event in self.of(MessageEnd)]

    def texts(self) -> list[str]:
        """The text of each assistant message as a reader that applies every delta sees it."""
        texts: dict[str, str] = {}
        for event in self.all:
            match event:
                case MessageStart(role="assistant"):
                    texts[event.message_id] = ""
                case ResetMessage():
                    texts[event.message_id] = ""
                case Delta(field="text"):
                    texts[event.message_id] += event.text
        return list(texts.values())

    def messages(self) -> list[Message]:
        """The conversation as it would be stored: every message with the parts its events gave it."""
        stored: dict[str, Message] = {}
        for event in self.all:
            match event:
                case MessageStart():
                    stored[event.message_id] = started(event)
                case Delta():
                    _apply(stored[event.message_id].parts, event)
                case PartAdded():
                    stored[event.message_id].parts.append(event.part)
                case ToolEnded():
                    stored[event.message_id].parts[:] = [event.result]
                case ResetMessage():
                    stored[event.message_id].parts.clear()
                case MessageEnd():
                    stored[event.message_id].parts.append(Finish(FinishData(event.reason, 0)))
        return list(stored.values())


def started(event: MessageStart) -> Message:
    begun = message(event.role, *event.parts, id=event.message_id)
    return msgspec.structs.replace(
        begun, model=event.model, provider=event.provider, is_summary_message=event.is_summary
    )


def _apply(parts: list[Part], delta: Delta) -> None:
    match delta.part_type:
        case "text":
            parts.append(Text(TextData()))
        case "reasoning":
            parts.append(Reasoning(ReasoningData()))
        case "tool_call":
            parts.append(ToolCall(ToolCallData(delta.id, delta.name, "")))
        case "tool_result":
            parts.append(ToolResult(ToolResultData(delta.id, delta.name, "", "", False)))
    data = parts[delta.part].data
    setattr(data, delta.field, getattr(data, delta.field) + delta.text)


class Steers:
    def __init__(self) -> None:
        self.waiting: list[SteerMessage] = []

    def take(self) -> list[SteerMessage]:
        taken, self.waiting = self.waiting, []
        return taken

    async def next(self) -> SteerMessage:
        raise NotImplementedError("The agent takes steering messages between steps only.")


class CancelToken:
    def __init__(self) -> None:
        self._event = asyncio.Event()

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    def request(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        await self._event.wait()


class Plan:
    def __init__(self, ask: PermissionAsk, act: Callable[[], Any]) -> None:
        self.ask = ask
        self._act = act

    async def run(self) -> ToolOutput:
        output = self._act()
        if asyncio.iscoroutine(output):
            output = await output
        return output if isinstance(output, ToolOutput) else ToolOutput(str(output))


class TinyTool:
    """A tool around a function of its arguments, which may be a coroutine function. It keeps what it was given."""

    description = "A tool of a test."
    schema: dict[str, Any] = {"type": "object", "properties": {}}

    def __init__(self, name: str, act: Callable[[dict[str, Any]], Any], *, read_only: bool = False) -> None:
        self.name = name
        self.read_only = read_only
        self._act = act
        self.planned: list[dict[str, Any]] = []
        self.ran: list[dict[str, Any]] = []

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> Plan:
        self.planned.append(arguments)
        if "refuse" in arguments:
            raise ToolError("Leave `refuse` away.")
        ask = PermissionAsk(tool_call_id, self.name, "run", "A test.", "/w", str(arguments))

        def act() -> Any:
            self.ran.append(arguments)
            return self._act(arguments)

        return Plan(ask, act)


def message(role: Role, *parts: Part | str, id: str = "m") -> Message:
    whole = [Text(TextData(part)) if isinstance(part, str) else part for part in parts]
    return Message(
        id=id, role=role, session_id="s", parts=list(whole), model="", provider="", created_at=0, updated_at=0
    )


def spec(prompt: str = "go", **fields: Any) -> RunSpec:
    defaults: dict[str, Any] = {
        "run_id": "r",
        "session_id": "s",
        "root_session_id": "s",
        "workspace_path": "/w",
        "prompt": prompt,
        "messages": [message("user", prompt)],
    }
    return RunSpec(**{**defaults, **fields})


def scripted(*replies: Reply, **rule: Any) -> ScriptedModel:
    return ScriptedModel(parse_script({"rules": [{"match": "*", "replies": list(replies), **rule}]}))


class ToldModel:
    """A model whose answers are a function of the request. It keeps what it was sent; an answer may be an error."""

    def __init__(self, answer: Callable[[ModelRequest], Iterable[Chunk | ModelError]]) -> None:
        self._answer = answer
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest, take: Take) -> None:
        self.requests.append(request)
        for chunk in self._answer(request):
            await asyncio.sleep(0)
            if isinstance(chunk, ModelError):
                raise chunk
            take(chunk)

    async def aclose(self) -> None:
        """Nothing is open."""


class Harness:
    """One agent and the ports of one run. `slept` are the waits between retries, which take no time here."""

    def __init__(self, model: Model, tools: Sequence[Tool] = (), verdict: Verdict = "granted", **settings: Any) -> None:
        self.events = RecordedEvents(verdict)
        self.steers = Steers()
        self.cancel = CancelToken()
        self.slept: list[float] = []
        numbers = count(1)

        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)
            await asyncio.sleep(0)

        self.executor = AgentExecutor(
            AgentSettings(
                model=model,
                model_name="test-model",
                provider_name="test",
                tools=lambda *_: tools,
                new_message_id=lambda: f"msg_{next(numbers)}",
                sleep=sleep,
                **settings,
            )
        )

    async def run(self, **fields: Any) -> RunOutcome:
        async with asyncio.timeout(20):
            return await self.executor.run(spec(**fields), self.events, self.steers, self.cancel)
