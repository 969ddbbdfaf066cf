"""An executor that plays a model and its tools from a seed: the only scripted part of a simulation.

Most of the time it behaves as the agent loop does. Sometimes it fails, raises, emits nonsense, takes its time to stop,
or does not stop at all. What it does is put into the history, for the checker.
"""

import asyncio
import contextlib
import random
from typing import Literal, TypeVar

from windlass.testing.history import StepKind
from windlass.testing.sim_work import SimWork
from windlass.testing.sim_world import World
from windlass.wire.delegation import AskQuestions, CancelAgent, StartAgent, SteerAgent, WaitForAgents
from windlass.wire.execution import Cancel, Events, PermissionAsk, RunOutcome, RunSpec, Steer
from windlass.wire.messages import ToolCall, ToolCallData, ToolResult, ToolResultData
from windlass.wire.questions import Question
from windlass.wire.run_events import (
    Delta,
    FileWritten,
    MessageEnd,
    MessageStart,
    PartAdded,
    ResetMessage,
    SteerTaken,
    TodosChanged,
    UsageGained,
)
from windlass.wire.run_events import Step as StepEvent
from windlass.wire.runs import Usage
from windlass.wire.sessions import Todo

Temper = Literal[
    "good",
    "slow to stop",
    "never stops",
    "raises",
    "fails",
    "nonsense",
    "stops itself",
    "thinks long",
    "claims its end",
]
_TEMPERS: tuple[Temper, ...] = (
    *("good",) * 40,
    *("slow to stop",) * 8,
    *("claims its end",) * 4,
    *("never stops",) * 2,
    *("raises", "raises", "fails", "fails", "nonsense", "stops itself", "thinks long", "thinks long"),
)
_PAUSES = (0.0, 0.0, 0.01, 0.01, 0.02, 0.05)
_WORDS = ("rope ", "sail ", "mast\n", "keel ", "ahoy é ", "日本 ", "knot ")
_TOOLS = ("bash", "bash", "edit", "view", "forbidden")
_RESOURCES = ("make", "make test")
_THINKING_SECONDS = 3.0  # longer than anything else: only a cancel that reaches the model ends it sooner
_STUBBORN_SECONDS = 4.0  # longer than a run is given to stop, shorter than a simulation waits for its end
QUESTION = Question("q1", "yes_no", "Go on?")
Result = TypeVar("Result")


class SimExecutor:
    """Executes one run."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        rng = random.Random(f"{self._world.seed} {spec.run_id} {self._world.history.life}")
        played = _Played(self._world, rng, spec, events, steer, cancel)
        try:
            outcome = await played.run()
        except (asyncio.CancelledError, Exception) as error:
            played.note("end", type(error).__name__)
            raise
        played.note("end", outcome.status)
        return outcome


class _Played:
    """One run as it is played."""

    def __init__(
        self, world: World, rng: random.Random, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel
    ) -> None:
        self._world = world
        self._rng = rng
        self._spec = spec
        self._events = events
        self._steer = steer
        self._cancel = cancel
        self._temper = rng.choice(_TEMPERS)
        self._steps = rng.choice((1, 1, 2, 3))
        self._curious = random.Random(f"{world.seed} {spec.run_id} {world.history.life} questions")

        self._work = SimWork(world, spec, events, lambda: self.note("model", "called")) if world.works else None

    def note(self, kind: StepKind, detail: str) -> None:
        self._world.history.stepped(self._spec.session_id, self._spec.run_id, kind, detail, self._cancel.requested)

    async def run(self) -> RunOutcome:
        if self._temper not in ("slow to stop", "never stops", "claims its end"):
            return await self._all_steps()
        try:
            return await self._all_steps()
        except asyncio.CancelledError:
            return RunOutcome("completed") if self._temper == "claims its end" else await self._linger()

    async def _linger(self) -> RunOutcome:
        """It was told to stop and does not: a little later, or far too late, it tries to go on."""
        seconds = self._rng.choice((0.1, 0.3, 0.5)) if self._temper == "slow to stop" else _STUBBORN_SECONDS
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while loop.time() < deadline:
            try:
                self._events.emit(TodosChanged([Todo("written after the cancel", "pending")]))
                if await self._events.approve(self._ask("late", "bash")) == "granted":
                    self.note("tool", "late")
                # Told so at once, without a pause: a loop that took it for its own cancel would never come to one.
                with contextlib.suppress(asyncio.CancelledError):
                    await self._events.delegate(StartAgent(self._world.new_id("late")))
                await asyncio.sleep(0.1)
            except asyncio.CancelledError:
                if self._temper == "slow to stop":
                    raise
        if self._temper == "never stops" and self._rng.random() < 0.5:
            raise RuntimeError("the simulated executor broke when nobody listened any more")
        return RunOutcome("completed")

    async def _all_steps(self) -> RunOutcome:
        number = 0
        if self._work is not None:
            self._work.begin()
            if self._spec.purpose == "summarize":
                await self._work.sum_up()
                return await self._end()
        while True:
            number += 1
            self._take_steers()
            self._events.emit(StepEvent(number))
            calls = await self._answer(last=number >= self._steps)
            if calls:
                await self._run_tools(calls)
                continue
            if not self._take_steers():
                if self._work is not None and self._work.ends_with_a_summary:
                    await self._work.sum_up()
                return await self._end()

    async def _end(self) -> RunOutcome:
        match self._temper:
            case "raises":
                raise RuntimeError("the simulated executor broke")
            case "fails":
                return RunOutcome("failed", "the simulated model gave up")
            case "nonsense":
                self._events.emit(Delta("no such message", 0, "text", "x", "text"))
            case "stops itself":
                return RunOutcome("canceled")
            case _:
                pass
        return RunOutcome("completed")

    def _take_steers(self) -> bool:
        taken = self._steer.take()
        for message in taken:
            self._events.emit(SteerTaken(message.run_id))
        return bool(taken)

    # -- the model ----------------------------------------------------------------------------------------------------

    async def _answer(self, last: bool) -> list[ToolCallData]:
        rng = self._rng
        self.note("model", "called")
        await asyncio.sleep(_THINKING_SECONDS if self._temper == "thinks long" else rng.choice(_PAUSES))
        id = self._world.new_id("msg")
        self._events.emit(MessageStart(id, "assistant", "model", "simulated"))
        parts = await self._stream(id)
        if rng.random() < 0.08:
            self._events.emit(ResetMessage(id))  # as after a broken connection to a provider
            parts = await self._stream(id)
        if rng.random() < 0.3:
            self._events.emit(UsageGained(Usage(10, 5), 0.25))
        calls = [] if last else await self._call(id, parts)
        await self._events.durable(MessageEnd(id, "tool_use" if calls else "end_turn"))
        return calls

    async def _stream(self, id: str) -> int:
        """Some text; returns how many parts the message has now."""
        part = 0
        if self._rng.random() < 0.2:
            self._events.emit(Delta(id, part, "thinking", "hm", "reasoning"))
            part = 1
        words = self._rng.choice((0, 1, 3, 6))
        for number in range(words):
            self._events.emit(Delta(id, part, "text", self._rng.choice(_WORDS), "" if number else "text"))
            await self._pause()
        return part + (words > 0)

    async def _call(self, id: str, parts: int) -> list[ToolCallData]:
        calls = []
        for index in range(parts, parts + self._rng.choice((1, 1, 2))):
            call = ToolCallData(self._world.new_id("call"), self._rng.choice(_TOOLS), "{}")
            if self._rng.random() < 0.5:
                self._events.emit(PartAdded(id, ToolCall(call)))
            else:
                self._events.emit(Delta(id, index, "input", "{", "tool_call", call.id, call.name))
                await self._pause()
                self._events.emit(Delta(id, index, "input", "}"))
            calls.append(call)
            await self._pause()
        return calls

    # -- the tools ----------------------------------------------------------------------------------------------------

    async def _run_tools(self, calls: list[ToolCallData]) -> None:
        if self._world.asks_questions and self._curious.random() < 0.5:
            await self._ask_people()
        if self._rng.random() < 0.2:
            await self._delegate()
        if len(calls) > 1 and self._rng.random() < 0.5:
            # Not a group: its end waits for its tasks, which a process that is killed cannot do.
            await asyncio.gather(*(self._run_tool(call) for call in calls))
            return
        if len(calls) > 1 and self._rng.random() < 0.5:
            await self._run_apart(calls)
            return
        for call in calls:
            await self._run_tool(call)

    async def _run_apart(self, calls: list[ToolCallData]) -> None:
        """In tasks of its own that are not cancelled with it: whatever they wait for must come to an end by itself."""
        tasks = [asyncio.create_task(self._run_tool(call), name=f"tool {call.id}") for call in calls]
        for task in tasks:
            task.add_done_callback(_look)
        await asyncio.wait(tasks)
        for task in tasks:
            task.result()

    async def _delegate(self) -> None:
        """Set an agent or two to work; wait for them, steer one, cancel one, or just go on: they are ended with us."""
        rng, delegate = self._rng, self._events.delegate
        started: list[str] = []
        for _ in range(rng.choice((1, 1, 2, 3))):
            self.note("agent", "start")
            reply = await delegate(StartAgent(self._world.new_id("task"), rng.choice(("", "explore"))))
            started += [agent.id for agent in reply.agents]
            await self._pause()
        for id in started:
            match rng.choice(("steer", "steer", "cancel", "nothing", "nothing", "nothing")):
                case "steer":
                    for _ in range(rng.choice((1, 2))):
                        await delegate(SteerAgent(id, self._world.new_id("steer")))
                case "cancel":
                    self.note("agent", f"cancel {id}")
                    await delegate(CancelAgent(id))
        if rng.random() < 0.6:
            await delegate(WaitForAgents((), rng.choice(("all", "any")), rng.choice((0.05, 1.0))))

    async def _ask_people(self) -> None:
        """One question or two at once; now and then one that nobody could answer, or that is taken back."""
        rng = self._curious
        if rng.random() < 0.3:
            await asyncio.gather(self._ask_one(), self._ask_one())
            return
        asking = asyncio.create_task(self._ask_one(), name=f"question of {self._spec.run_id}")
        try:
            await asyncio.wait({asking}, timeout=rng.choice((0.02, None, None, None)))
        finally:
            if not asking.done():
                asking.cancel()
        await asyncio.wait({asking})
        if not asking.cancelled():
            asking.result()

    async def _ask_one(self) -> None:
        id, questions = self._world.new_id("call"), (QUESTION,) if self._curious.random() < 0.9 else ()
        reply = await self._events.delegate(AskQuestions(id, questions))
        self.note("question", f"{id} {reply.outcome or 'refused'}")

    async def _run_tool(self, call: ToolCallData) -> None:
        verdict = await self._events.approve(self._ask(call.id, call.name))
        if verdict == "granted":
            self.note("tool", call.id)
            await self._pause()
            if self._work is not None:
                self._work.write()
            elif call.name == "edit":
                self._events.emit(FileWritten("main.py", "print()"))
        if self._work is not None:
            await self._work.result(call, verdict, verdict != "granted")
            return
        result = ToolResultData(call.id, call.name, verdict, "", verdict != "granted")
        await self._events.durable(MessageStart(self._world.new_id("msg"), "tool", parts=[ToolResult(result)]))

    def _ask(self, call_id: str, tool: str) -> PermissionAsk:
        resource = self._rng.choice(_RESOURCES)
        self.note("ask", f"{call_id} {tool} {resource}")
        return PermissionAsk(call_id, tool, "execute", f"{tool} {resource}", self._spec.workspace_path, resource)

    async def _pause(self) -> None:
        await asyncio.sleep(self._rng.choice(_PAUSES))


def _look(task: "asyncio.Task[None]") -> None:
    if not task.cancelled():
        task.exception()  # the run it belongs to may be over, and then nobody else looks
