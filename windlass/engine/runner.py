"""Drives one active run through its executor, and writes its ending.

The owner writes the ending: a task that is cancelled before its first step never enters its `try`, so a run that
reported its own end would sometimes just vanish. The runner awaits the executor's task, looks whether a
cancel covers the run, in one synchronous line, and records how it ended.
"""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, assert_never

import structlog

from windlass import limits
from windlass.config import Config
from windlass.core.lane import Entry, Lane
from windlass.engine.drafts import Drafts, ExecutorMisbehaved
from windlass.engine.place import Place
from windlass.engine.post import RunMail
from windlass.engine.transcript import Transcript
from windlass.errors import JournalPoisoned
from windlass.wire.delegation import AskQuestions, CallMcpTool, ListMcpTools, OwnerReply, OwnerRequest
from windlass.wire.execution import PermissionAsk, RunOutcome, RunSpec, SteerMessage, Verdict
from windlass.wire.messages import Message
from windlass.wire.permissions import By
from windlass.wire.run_events import (
    Delta,
    FileWritten,
    MessageEnd,
    MessageStart,
    PartAdded,
    ResetMessage,
    RunEvent,
    SteerTaken,
    Step,
    TitleSuggested,
    TodosChanged,
    ToolEnded,
    UsageGained,
)
from windlass.wire.runs import Outcome

if TYPE_CHECKING:
    from windlass.engine.workspace import Workspace

logger = structlog.get_logger("windlass.run")
PLAN_MODE = By("plan mode")
_STOPPED = "The server stopped before the run was over. Send the prompt again to go on."


class CancelToken:
    """Set once when the run is to stop."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        await self._event.wait()

    def set(self) -> None:
        self._event.set()


class RunSteer:
    """Steered prompts that this run may take, each handed out once."""

    def __init__(self, runner: "Runner") -> None:
        self._runner = runner
        self._changed = asyncio.Event()
        self.handed: dict[str, str] = {}  # run id of the steered prompt -> id its message will have
        self._withdrawn: set[str] = set()  # those whose cancel was told
        self._ahead: list[SteerMessage] = []  # taken for `next`, which hands out one at a time

    def take(self) -> list[SteerMessage]:
        messages, self._ahead = [*self._ahead, *self._new()], []
        return messages

    async def next(self) -> SteerMessage:
        while not self._ahead:
            self._changed.clear()
            self._ahead += self._new()
            if not self._ahead:
                await self._changed.wait()
        return self._ahead.pop(0)

    async def withdrawn(self) -> str:
        while True:
            self._changed.clear()
            for run_id in self.handed:
                entry = self._runner.lane.get(run_id)
                if run_id not in self._withdrawn and entry is not None and entry.run.cancel_requested:
                    self._withdrawn.add(run_id)
                    return run_id
            await self._changed.wait()

    def _new(self) -> list[SteerMessage]:
        """Letters that were fetched, and steered prompts that were not handed out yet."""
        messages = self._runner.mail.take()
        for entry in self._runner.lane.pending_steers(self._runner.entry.run.id):
            if entry.run.id in self.handed:
                continue
            message_id = self._runner.workspace.context.new_id("msg")
            self.handed[entry.run.id] = message_id
            messages.append(SteerMessage(entry.run.id, entry.run.prompt, message_id, entry.private.attachments))
        return messages

    def wake(self) -> None:
        self._changed.set()


class Runner:
    """One active run: its executor's task, its events, its end."""

    def __init__(self, workspace: "Workspace", lane: Lane, entry: Entry, transcript: Transcript) -> None:
        self.workspace = workspace
        self.lane = lane
        self.entry = entry
        self.cancel = CancelToken()
        self.steer = RunSteer(self)
        self.mail = RunMail(workspace.post, entry.run.session_id)
        self._transcript = transcript
        self._log = workspace.log
        # The one it keeps, whatever is reloaded. An agent keeps its parent's: a reload must not give it more.
        parent = workspace.runner_of(entry.private.parent_run)
        self._config: Config = workspace.context.config if parent is None else parent._config
        self._task: asyncio.Task[RunOutcome] | None = None
        self._stop: asyncio.Event = asyncio.Event()
        self._stop_outcome: Outcome = "canceled"
        self._stop_reason = _STOPPED
        path = workspace.path if parent is None else parent._place.path
        self._place: Place = Place(workspace, entry, self._config, path)
        # What it started with: a person who lets the session go on does not let this run go on.
        self._plan: bool = (parent is not None and parent._plan) or self._session_plans
        self._drafts = Drafts(
            self._log, lane, entry, transcript, workspace.sessions, lambda: workspace.context.clock.seconds()
        )
        self._over = False

    # -- the run's life -----------------------------------------------------------------------------------------------

    async def drive(self, start_head: int) -> None:
        """Execute, wait for the end or for a stop, and record how it ended."""
        task = self._task = asyncio.create_task(self._execute(start_head), name=f"run {self.entry.run.id}")
        stop = asyncio.create_task(self._stop.wait(), name=f"stop {self.entry.run.id}")
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not task.done():
            await self._stop_task(task)
        # From here on it is deaf: what a task it left behind starts now, no cancel and no end would ever reach.
        self._over = True
        await self._wind_up()
        self._finish(*self._judge(task), _kept(task))

    async def _execute(self, start_head: int) -> RunOutcome:
        # Nothing is done for a run before its start is on disk: a crash must not find a model called for a run that
        # does not exist, and a cancel that arrives until then finds a run that never called it (B04).
        await self._log.durable(start_head)
        messages = await self.workspace.conversation(self.entry.run.session_id)
        path = self.workspace.path
        if self.entry.private.purpose == "prompt":
            path = await self._place.open()
            await self.mail.fetch()  # last: what is claimed for a run that never steps would only be given back
        if self._deaf:
            raise asyncio.CancelledError  # it was cancelled while we read, and its task has not heard of it yet
        spec = self._spec(path, messages)
        executor = self.workspace.context.executor(self.workspace, self._config, spec)
        return await executor.run(spec, self, self.steer, self.cancel)

    def _spec(self, path: str, messages: list[Message]) -> RunSpec:
        private = self.entry.private
        session = self.workspace.sessions.ending(self.entry.run.session_id)
        return RunSpec(
            run_id=self.entry.run.id,
            session_id=self.entry.run.session_id,
            root_session_id=self._place.root_session_id,
            workspace_path=path,
            prompt=self.entry.run.prompt,
            messages=messages,
            attachments=private.attachments,
            model=private.model or self._place.role.model or self._config.model,
            reasoning_effort=private.reasoning_effort
            or self._place.role.reasoning_effort
            or self._config.reasoning_effort,
            roles=self._place.roles,
            purpose=private.purpose,
            plan=self._plan,
            wants_title=session is not None
            and not (session.title or session.parent_session_id)
            and private.purpose == "prompt",
            term_width=private.term_width,
            max_cost=private.max_cost,
        )

    @property
    def _session_plans(self) -> bool:
        """Whether its session, or one above it, is in plan mode now."""
        return any(session.plan for session in self.workspace.sessions.lineage(self.entry.run.session_id))

    async def _wind_up(self) -> None:
        """End its agents, then put its directory and its mail in order, before its own end is told: whoever hears of
        that relies on it. Bounded; and whatever goes wrong here, the run ends."""
        if self.workspace.agents.families.children(self.entry.run.id):
            await self._try("its agents did not end", self.workspace.agents.end_below(self.entry), None)
        await self._try("its directory was not put in order", self._place.close(), limits.CLEAR_UP_SECONDS)
        await self._try("its mail was not given back", self.mail.close(), limits.CLEAR_UP_SECONDS)

    async def _try(self, problem: str, work: Coroutine[None, None, None], seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                await work
        except Exception as error:  # the border of this task: a run that never ended would keep its session for ever
            logger.error(f"a run ends, but {problem}", run=self.entry.run.id, error=f"{type(error).__name__}: {error}")

    def stop(self, outcome: Outcome = "canceled", reason: str = _STOPPED) -> None:
        """Stop the run. `outcome` is what it ends as, unless a cancel covers it: then that.

        An executor that came to its end before this keeps its outcome: nothing of what it said was dropped.
        """
        if not self._stop.is_set() and not (self._task is not None and self._task.done()):
            self._stop_outcome, self._stop_reason = outcome, reason
            self.cancel.set()
            self._stop.set()

    async def _stop_task(self, task: "asyncio.Task[RunOutcome]") -> None:
        for seconds in (limits.STOP_ASK_SECONDS, limits.STOP_ABORT_SECONDS):
            task.cancel()
            await asyncio.wait({task}, timeout=seconds)
            if task.done():
                return
        logger.warning("executor ignores its cancel and is abandoned", run=self.entry.run.id)
        self.workspace.abandon(task)

    def _judge(self, task: "asyncio.Task[RunOutcome]") -> tuple[Outcome, str]:
        """What the executor's end means, before a cancel is looked for."""
        error = task.exception() if task.done() and not task.cancelled() else None
        if self._stop.is_set():
            # Whatever it claims: from the stop on its words were dropped, so it cannot have completed.
            return self._stop_outcome, self._stop_reason
        if task.cancelled():
            return "failed", "The run's executor stopped by itself."
        if error is not None:
            # A poisoned journal has said so itself, once and in words; a traceback of every run would bury that.
            if not isinstance(error, ExecutorMisbehaved | JournalPoisoned):
                logger.error("run failed", run=self.entry.run.id, exc_info=error)
            return "failed", _encodable(f"The run failed: {type(error).__name__}: {error}")
        result = task.result()
        if result.status == "completed":
            return "completed", ""
        if result.status == "interrupted":
            return "interrupted", _encodable(result.error) or _STOPPED
        return "failed", _encodable(result.error) or "The run's executor stopped by itself."

    def _finish(self, outcome: Outcome, error: str, transcript: Any) -> None:
        """The one place where a run ends. No await: what is compared here is what is written (R8, R22)."""
        self._over = True
        if self._log.closed:
            self.workspace.give_up()  # the journal is poisoned; a restart finds the run and says what became of it
            return
        verdict = self.lane.verdict(self.entry, outcome)
        self.workspace.finish_run(self.lane, self.entry, self._transcript, verdict, error, transcript)

    # -- the executor's side: Events ----------------------------------------------------------------------------------

    @property
    def _deaf(self) -> bool:
        """A covered run writes nothing but its ending (I5)."""
        return self._over or self._stop.is_set() or self.lane.covered(self.entry)

    def emit(self, event: RunEvent) -> None:
        if not self._deaf:
            self._take(event)

    def durable(self, event: RunEvent) -> Awaitable[None]:
        return self._committed(None if self._deaf else self._take(event))

    async def _committed(self, head: int | None) -> None:
        if head is not None:
            await self._log.durable(head)
        if self._deaf:
            raise asyncio.CancelledError

    async def approve(self, ask: PermissionAsk) -> Verdict:
        if self._deaf:
            return "withdrawn"
        if self._forbids(ask):
            # Also for a run that started before: from the moment a person said so, it changes nothing any more.
            return await self.workspace.desk.refuse(self.entry, ask, PLAN_MODE)
        verdict = await self.workspace.desk.ask(self.entry, ask, self._config)
        if verdict == "granted" and not self._deaf and self._forbids(ask):
            # Switched on while people were asked: an answer to the question is none to that.
            verdict = await self.workspace.desk.refuse(self.entry, ask, PLAN_MODE)
        return "withdrawn" if self._deaf else verdict

    def _forbids(self, ask: PermissionAsk) -> bool:
        """Whether plan mode keeps it from being done, now."""
        return not ask.read_only and (self._plan or self._session_plans)

    async def delegate(self, request: OwnerRequest) -> OwnerReply:
        if self._deaf:
            raise asyncio.CancelledError  # what it would start now, its own cancel would not reach
        match request:
            case AskQuestions():
                reply = await self.workspace.questions.ask(self.entry, request, self._config)
                return OwnerReply(outcome="withdrawn") if self._deaf else reply
            case ListMcpTools() | CallMcpTool():
                return await self.workspace.mcp.answer(request)
            case _:
                return await self.workspace.agents.delegate(self.entry, self._config, request)

    def _take(self, event: RunEvent) -> int:
        """Turn an event into facts or deltas; returns the head it rests on."""
        match event:
            case Delta():
                return self._drafts.delta(event)
            case MessageStart():
                return self._drafts.start(event)
            case MessageEnd():
                return self._drafts.end(event)
            case PartAdded():
                return self._drafts.add_part(event)
            case ResetMessage():
                return self._drafts.reset(event)
            case ToolEnded():
                return self._drafts.tool_ended(event)
            case UsageGained():
                # A cost that is no number would be stored as none, and the session could not be read again.
                # One beyond all measure would do the same with the next it is added to.
                gained = event if abs(event.cost) <= limits.USAGE_COST else UsageGained(event.usage)
                self.lane.note(self.entry, usage=gained.usage, cost=gained.cost)
                return self.workspace.gains.add_usage(self.lane, self.entry, gained)
            case TitleSuggested():
                return self.workspace.gains.suggest_title(self.entry, event.title)
            case FileWritten():
                return self._file_written(event)
            case TodosChanged():
                return self.workspace.gains.set_todos(self.entry, event.todos)
            case SteerTaken():
                return self._steer_taken(event.run_id)
            case Step():
                if event.number > 1:  # what was there at the start has been fetched
                    self.look_for_mail()
                return self._log.head
            case _:
                assert_never(event)

    def _file_written(self, event: FileWritten) -> int:
        run = self.entry.run
        try:
            return self.workspace.file_versions.add(run.session_id, run.id, self.entry.by, event)
        except ValueError as error:
            raise ExecutorMisbehaved(f"a file whose content is none: {error}") from None

    def look_for_mail(self) -> None:
        """See whether letters wait; they are handed over at the next step boundary."""
        self.mail.look(self.steer.wake)

    def _steer_taken(self, run_id: str) -> int:
        letter = self.mail.taken(run_id)
        if letter is not None:
            head = self.workspace.gains.letter_taken(self.lane, self.entry, letter, self._transcript)
            self.mail.acknowledge(letter, self._log.durable(head))
            return head
        message_id = self.steer.handed.get(run_id, "")
        return self.workspace.gains.steer_taken(self.lane, run_id, message_id, self._transcript)


def _encodable(text: str) -> str:
    """What an executor says may hold half a character; an ending must be written all the same."""
    return text.encode("utf-8", "replace").decode()


def _kept(task: "asyncio.Task[RunOutcome]") -> Any:
    """The executor's own record of the run, if it came back with one."""
    if not task.done() or task.cancelled() or task.exception() is not None:
        return None
    return task.result().transcript
