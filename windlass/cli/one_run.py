"""One run from prompt to exit code, as `windlass run` shows it."""

import asyncio
import shlex
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import msgspec

from windlass import ids, limits
from windlass.cli.answering import QuestionBatches
from windlass.cli.asking import ANSWERS, HOW_TO_ANSWER, Questions, covered_for_session, typed_pattern
from windlass.cli.console import typed_lines
from windlass.cli.safe_text import exact
from windlass.cli.terminal import Terminal
from windlass.cli.transcript import Transcript
from windlass.client import Conversation, Replaced, ServerUnreachable, StreamEvent, WindlassError, WorkspaceHandle

DONE, FAILED, CANCELLED = 0, 1, 130


class Request(msgspec.Struct, frozen=True):
    prompt: str
    session_id: str | None = None
    model: str = ""
    effort: str = ""
    as_json: bool = False
    interactive: bool = False


class OneRun:
    def __init__(
        self, workspace: WorkspaceHandle, terminal: Terminal, request: Request, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._workspace = workspace
        self._terminal = terminal
        self._request = request
        self._loop = loop
        self._run_id = ids.new_id("run")  # known before it is sent: Ctrl-C may come before the answer
        self._accepted = False
        self._active = False
        self._presses = 0
        self._cancelling: asyncio.Task[None] | None = None

    async def execute(self) -> int:
        """Prompt, show, wait for the end; returns the exit code."""
        session_id = self._request.session_id or (await self._workspace.create_session()).id
        self._session_id = session_id
        self._conversation = Conversation(session_id)
        self._transcript = Transcript(self._terminal, self._conversation)
        self._questions = Questions(self._workspace, self._terminal, self._hint(), session_id)
        self._batches = QuestionBatches(self._workspace, self._terminal, self._question_hint(), session_id)
        main = self._loop.create_task(self._follow())
        answering = self._loop.create_task(self._answer()) if self._request.interactive else None
        try:
            with self._interrupts(main):
                return await main
        except asyncio.CancelledError:
            if self._presses < 2:
                raise
            self._terminal.status(f"Left. The run {self._run_id} is the server's now.")
            return CANCELLED
        finally:
            await _end(answering)
            await _end(self._cancelling)

    async def _follow(self) -> int:
        stream = self._workspace.events(
            deltas=True,
            give_up_after=limits.CLIENT_GIVE_UP_SECONDS,
            notice=lambda text: self._terminal.status(exact(text), fg="yellow"),
        )
        async with aclosing(stream) as events:
            # Prompting only after the hello: from there on nothing of the run can be missed.
            await self._take(await anext(events))
            await self._send()
            return await self._until_over(events)

    async def _send(self) -> None:
        accepted = await self._workspace.prompt(
            self._session_id,
            self._request.prompt,
            run_id=self._run_id,
            reasoning_effort=self._request.effort,
            model=self._request.model,
        )
        self._accepted = True
        if accepted.position:
            self._terminal.status(f"Queued behind {accepted.position} others in {exact(self._session_id)}.")
        if self._presses:
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
        self._questions.take(event)
        self._batches.take(event)
        if self._session_id not in (event.session_id or self._session_id, event.payload.get("root_session_id")):
            return None
        if self._request.as_json:
            self._terminal.json(event.envelope())
        if event.kind == "run" and event.payload.get("id") == self._run_id:
            self._active = event.payload.get("state") in ("running", "waiting")
        elif event.kind == "reset":
            return await self._reload()
        elif event.kind == "run_complete" and event.payload.get("run_id") == self._run_id:
            return self._ended(event.payload)
        self._show(event)
        return None

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
        own = frozenset(run.message_ids)
        if not self._request.as_json:
            for message in self._conversation.messages:
                if message.id in own:
                    self._transcript.show(Replaced(message))
        return self._ended({"error": run.error, "cancelled": run.state == "canceled"})

    def _ended(self, complete: dict[str, Any]) -> int:
        if complete.get("cancelled"):
            return CANCELLED
        if complete.get("error"):
            self._terminal.status(f"windlass: the run failed: {exact(str(complete['error']))}", fg="red")
            return FAILED
        return DONE

    # -- the person at the terminal --

    def _hint(self) -> str:
        if self._request.interactive:
            return f"Allow? {HOW_TO_ANSWER}:"
        return f"Waiting. Answer with `windlass permissions allow -C {self._place()} {{id}}` (or deny)."

    def _place(self) -> str:
        return shlex.quote(exact(self._workspace.path)).replace("{", "{{").replace("}", "}}")

    def _question_hint(self) -> str:
        if self._request.interactive:
            return "Type the answer, or /decline:"
        return f"Waiting. Answer with `windlass questions answer -C {self._place()} {{id}} ANSWER...` (or cancel)."

    async def _answer(self) -> None:
        async with typed_lines() as lines:
            async for line in lines:
                try:
                    await self._answer_with(line.strip())
                except WindlassError as error:
                    self._terminal.status(exact(error.message), fg="yellow")

    async def _answer_with(self, line: str) -> None:
        command, _, rest = line.partition(" ")
        request = self._questions.oldest()
        if command == "/decline" and self._batches.pending:
            await self._batches.decline(rest)
        elif command == "/answer" and self._batches.pending:
            await self._batches.answer(rest)
        elif request is not None and self._batches.asks_yes_or_no:
            # A bare yes could be meant for either, and one of them runs a command.
            self._terminal.status("Two things wait. First /answer what the agent asks (or /decline), then the tool.")
        elif request is not None and line.lower() in ANSWERS:
            await self._questions.answer(request.id, ANSWERS[line.lower()])
        elif request is not None and typed_pattern(line):
            await self._questions.answer(request.id, "allow_session", typed_pattern(line))
        elif request is not None:
            how = HOW_TO_ANSWER.format(again=covered_for_session(request))
            self._terminal.status(f"Please answer: {how}.")
        elif self._batches.pending and line:
            await self._batches.answer(line)

    @contextmanager
    def _interrupts(self, main: asyncio.Task[int]) -> Iterator[None]:
        def pressed() -> None:
            self._presses += 1
            if self._presses == 1:
                self._terminal.status("Cancelling; Ctrl-C again to leave at once.", fg="yellow")
                if self._accepted:
                    self._cancel()
            else:
                main.cancel()

        self._loop.add_signal_handler(signal.SIGINT, pressed)
        try:
            yield
        finally:
            self._loop.remove_signal_handler(signal.SIGINT)

    def _cancel(self) -> None:
        async def send() -> None:
            try:
                await self._workspace.cancel_run(self._run_id)
            except WindlassError as error:
                self._terminal.status(f"The cancel did not get through: {exact(error.message)}", fg="red")

        self._cancelling = self._loop.create_task(send())


async def _end(task: "asyncio.Task[None] | None") -> None:
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
