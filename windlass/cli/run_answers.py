"""What one run asks people, and who answers: the person at the terminal, somebody elsewhere, or (`--no-wait`) a no."""

import asyncio
import shlex
from collections.abc import Coroutine
from typing import Any

from windlass.cli.answering import QuestionBatches
from windlass.cli.asking import ANSWERS, HOW_TO_ANSWER, Questions, covered_for_session, typed_pattern
from windlass.cli.console import typed_lines
from windlass.cli.safe_text import exact
from windlass.cli.terminal import Terminal
from windlass.client import StreamEvent, WindlassError, WorkspaceHandle


class RunAnswers:
    """`interactive`: lines are typed here. `no_wait`: nobody is waited for, and no is said at once."""

    def __init__(
        self, workspace: WorkspaceHandle, terminal: Terminal, session_id: str, *, interactive: bool, no_wait: bool
    ) -> None:
        self._workspace = workspace
        self._terminal = terminal
        self._interactive = interactive
        self._no_wait = no_wait
        self._questions = Questions(workspace, terminal, self._hint(), session_id)
        self._batches = QuestionBatches(workspace, terminal, self._question_hint(), session_id)
        self._refusing: dict[str, asyncio.Task[None]] = {}  # by what was asked

    def take(self, event: StreamEvent, *, is_active: bool) -> None:
        """Notice what an event says. `is_active`: our own run is going on, so that what is asked is asked by it."""
        self._questions.take(event)
        self._batches.take(event)
        if self._no_wait and is_active:
            for id in self._questions.pending.keys() - self._refusing.keys():
                self._refuse(id, self._questions.answer(id, "deny"))
            for id in self._batches.pending.keys() - self._refusing.keys():
                self._refuse(id, self._batches.decline(id))

    def _refuse(self, id: str, saying_no: Coroutine[Any, Any, None]) -> None:
        self._refusing[id] = asyncio.create_task(self._say_no(id, saying_no))

    async def _say_no(self, id: str, saying_no: Coroutine[Any, Any, None]) -> None:
        try:
            await saying_no
        except WindlassError as error:
            self._terminal.status(f"The no did not get through: {exact(error.message)}", fg="red")
        finally:
            # One that did not get through is said again with the next event, if it is still asked then.
            del self._refusing[id]

    async def close(self) -> None:
        for task in list(self._refusing.values()):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    # -- what people are told --

    def _hint(self) -> str:
        if self._no_wait:
            return "Denied: nobody is waited for (--no-wait)."
        if self._interactive:
            return f"Allow? {HOW_TO_ANSWER}:"
        return f"Waiting. Answer with `windlass permissions allow -C {self._place()} {{id}}` (or deny)."

    def _question_hint(self) -> str:
        if self._no_wait:
            return "Declined: nobody is waited for (--no-wait)."
        if self._interactive:
            return "Type the answer, or /decline:"
        return f"Waiting. Answer with `windlass questions answer -C {self._place()} {{id}} ANSWER...` (or cancel)."

    def _place(self) -> str:
        return shlex.quote(exact(self._workspace.path)).replace("{", "{{").replace("}", "}}")

    # -- what is typed --

    async def read_typed(self) -> None:
        """Take typed lines as answers until cancelled."""
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
