"""One run from prompt to exit code, as `windlass run` shows it."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import msgspec

from windlass import ids, limits
from windlass.cli.choosing import whole_id
from windlass.cli.run_answers import RunAnswers
from windlass.cli.safe_text import exact
from windlass.cli.terminal import Hushed, Terminal
from windlass.cli.transcript import Transcript
from windlass.client import (
    Attachment,
    Conversation,
    Replaced,
    Run,
    ServerUnreachable,
    StreamEvent,
    WindlassError,
    WorkspaceHandle,
)
from windlass.client.waiting import answer_of

DONE, FAILED, OUT_OF_TIME, CANCELLED = 0, 1, 124, 130


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants of one run. `timeout` in seconds, `max_cost` in the currency of the prices; 0: no limit."""

    prompt: str
    session_id: str = ""
    newest_session: bool = False
    attachments: list[Attachment] = []
    model: str = ""
    effort: str = ""
    allow: tuple[str, ...] = ()
    max_cost: float = 0.0
    timeout: float = 0.0
    as_json: bool = False
    quiet: bool = False
    interactive: bool = False
    no_wait: bool = False
    plan: bool = False


class OneRun:
    def __init__(
        self, workspace: WorkspaceHandle, terminal: Terminal, request: Request, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._workspace = workspace
        self._terminal = terminal
        self._notes = Hushed(terminal) if request.quiet else terminal  # what nobody has to know
        self._request = request
        self._loop = loop
        self._run_id = ids.new_id("run")  # known before it is sent: Ctrl-C may come before the answer
        self._accepted = False
        self._active = False
        self._presses = 0
        self._is_out_of_time = False
        self._has_left = False
        self._timer: asyncio.TimerHandle | None = None
        self._cancelling: asyncio.Task[None] | None = None
        self._last_run: dict[str, Any] = {}  # our run, as the stream last told of it

    async def execute(self) -> int:
        """Prompt, show, wait for the end; returns the exit code."""
        request = self._request
        self._session_id = await self._session()
        self._family = {self._session_id}  # and the sessions of its sub-agents, as they come
        self._conversation = Conversation(self._session_id)
        self._transcript = Transcript(self._notes, self._conversation)
        self._answers = RunAnswers(
            self._workspace,
            self._terminal,
            self._session_id,
            interactive=request.interactive,
            no_wait=request.no_wait,
        )
        main = self._loop.create_task(self._follow())
        typing = self._loop.create_task(self._answers.read_typed()) if request.interactive else None
        try:
            with self._interrupts(main), self._time_limit(main):
                return await main
        except asyncio.CancelledError:
            if not self._has_left:
                raise
            self._terminal.status(f"Left. The run {self._run_id} is the server's now.")
            return OUT_OF_TIME if self._is_out_of_time else CANCELLED
        finally:
            await _end(typing)
            await _end(self._cancelling)
            await self._answers.close()

    async def _session(self) -> str:
        """The session to prompt, in plan mode if that is wanted: before the prompt, so that its run changes nothing."""
        session_id = await self._chosen_session()
        if self._request.plan:
            await self._workspace.set_plan(session_id, True)
        return session_id

    async def _chosen_session(self) -> str:
        """The named one, the newest, or a new one."""
        if self._request.session_id:
            return await whole_id(self._workspace, self._request.session_id)
        if self._request.newest_session:
            sessions = await self._workspace.sessions()
            if sessions:
                return sessions[0].id
            self._notes.status("There is no session here to continue; this begins one.")
        return (await self._workspace.create_session()).id

    async def _follow(self) -> int:
        stream = self._workspace.events(
            deltas=True,
            give_up_after=limits.CLIENT_GIVE_UP_SECONDS,
            notice=lambda text: self._notes.status(exact(text), fg="yellow"),
        )
        async with aclosing(stream) as events:
            # Prompting only after the hello: from there on nothing of the run can be missed.
            await self._take(await anext(events))
            await self._send()
            return await self._until_over(events)

    async def _send(self) -> None:
        request = self._request
        accepted = await self._workspace.prompt(
            self._session_id,
            request.prompt,
            run_id=self._run_id,
            attachments=request.attachments,
            reasoning_effort=request.effort,
            model=request.model,
            allow=request.allow,
            max_cost=request.max_cost,
        )
        self._accepted = True
        if accepted.position:
            others = "1 other" if accepted.position == 1 else f"{accepted.position} others"
            self._notes.status(f"Queued behind {others} in {exact(self._session_id)}.")
        if self._presses or self._is_out_of_time:
            self._cancel()

    async def _until_over(self, events: AsyncIterator[StreamEvent]) -> int:
        async for event in events:
            code = await self._take(event)
            if code is not None:
                self._terminal.end_line()
                return code
        raise ServerUnreachable("The stream ended before the run did.")

    async def _take(self, event: StreamEvent) -> int | None:
        """Show an event; the exit code when it is the run's last."""
        is_ours = event.kind == "run" and event.payload.get("id") == self._run_id
        if is_ours:
            self._last_run = event.payload
            self._active = event.payload.get("state") in ("running", "waiting")
        self._answers.take(event, is_active=self._active)
        if not self._is_about_us(event):
            return None
        if self._request.as_json:
            self._terminal.json(event.envelope())
        if event.kind == "reset":
            return await self._reload()
        if event.kind == "run_complete" and event.payload.get("run_id") == self._run_id:
            return self._ended(event.payload)
        if not is_ours:
            self._show(event)
        return None

    def _is_about_us(self, event: StreamEvent) -> bool:
        """Whether it is about the workspace, our session, or a sub-agent below it, however deep."""
        if event.kind == "session" and event.payload.get("parent_session_id") in self._family:
            self._family.add(event.session_id)
        return event.session_id in ("", *self._family)

    def _show(self, event: StreamEvent) -> None:
        happening = self._conversation.apply(event)
        # On a session that others use too, what is before our run is theirs; at most one run is active (I2).
        if happening is None or not self._active or self._request.as_json:
            return
        self._transcript.show(happening)
        if isinstance(happening, Replaced) and self._request.model:
            self._compare_model(happening)

    def _compare_model(self, happening: Replaced) -> None:
        message = happening.message
        used = f"{message.provider}/{message.model}"
        if message.role == "assistant" and message.finish is not None and used != self._request.model:
            self._terminal.status(f"The server used {exact(used)}, not {exact(self._request.model)}.", fg="yellow")

    async def _reload(self) -> int | None:
        """Facts are gone: ask over REST what became of the run."""
        self._conversation.load(await self._workspace.messages(self._session_id))
        if not self._accepted:
            return None
        run = await self._workspace.run(self._run_id)
        self._active = run.state in ("running", "waiting")
        if not run.is_terminal:
            return None
        complete = await self._complete(run)
        if self._request.as_json:
            # Its own is among what is gone; whoever reads these lines waits for one.
            self._terminal.json(StreamEvent("run_complete", "created", complete).envelope())
            return self._ended(complete)
        own = frozenset(run.message_ids)
        for message in self._conversation.messages:
            if message.id in own:
                self._transcript.show(Replaced(message))
        return self._ended(complete)

    async def _complete(self, run: Run) -> dict[str, Any]:
        """The run's end as the stream would have told it."""
        complete: dict[str, Any] = {"session_id": run.session_id, "run_id": run.id}
        complete |= {"message_id": run.message_ids[-1] if run.message_ids else ""}
        complete |= {"text": await answer_of(self._workspace, run), "error": run.error}
        return complete | {"cancelled": run.state == "canceled"}

    def _ended(self, complete: dict[str, Any]) -> int:
        if complete.get("cancelled"):
            if self._is_out_of_time:
                limit = self._request.timeout
                self._terminal.status(f"windlass: the run was cancelled after {limit:g} s (--timeout).", fg="red")
                return OUT_OF_TIME
            return CANCELLED
        if complete.get("error"):
            self._terminal.status(f"windlass: the run failed: {exact(str(complete['error']))}", fg="red")
            return FAILED
        if self._request.max_cost and self._cost_unknown:
            self._terminal.status(
                "The price of this model is not known, so --max-cost could not limit it.", fg="yellow"
            )
        return DONE

    @property
    def _cost_unknown(self) -> bool:
        usage = self._last_run.get("usage")
        return isinstance(usage, dict) and bool(usage.get("completion_tokens")) and not self._last_run.get("cost")

    # -- what ends it early --

    @contextmanager
    def _interrupts(self, main: asyncio.Task[int]) -> Iterator[None]:
        def pressed() -> None:
            self._presses += 1
            if self._presses == 1:
                self._terminal.status("Cancelling; Ctrl-C again to leave at once.", fg="yellow")
                self._stop()
            else:
                self._leave(main)

        self._loop.add_signal_handler(signal.SIGINT, pressed)
        try:
            yield
        finally:
            self._loop.remove_signal_handler(signal.SIGINT)

    @contextmanager
    def _time_limit(self, main: asyncio.Task[int]) -> Iterator[None]:
        def is_up() -> None:
            self._is_out_of_time = True
            self._terminal.status("The time is up: cancelling.", fg="yellow")
            self._stop()
            # A server that does not answer any more must not hold a script longer than it wanted to wait.
            self._timer = self._loop.call_later(limits.CLIENT_CANCEL_SECONDS, self._leave, main)

        if self._request.timeout:
            self._timer = self._loop.call_later(self._request.timeout, is_up)
        try:
            yield
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def _stop(self) -> None:
        if self._accepted:
            self._cancel()  # else as soon as it is: a run that the server may not know yet cannot be cancelled

    def _leave(self, main: asyncio.Task[int]) -> None:
        self._has_left = True
        main.cancel()

    def _cancel(self) -> None:
        async def send() -> None:
            try:
                await self._workspace.cancel_run(self._run_id)
            except WindlassError as error:
                self._terminal.status(f"The cancel did not get through: {exact(error.message)}", fg="red")

        if self._cancelling is None:
            self._cancelling = self._loop.create_task(send())


async def _end(task: "asyncio.Task[None] | None") -> None:
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
