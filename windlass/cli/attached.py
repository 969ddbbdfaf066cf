"""Being attached: which session is looked at, what the stream brings, and what a typed line does."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress

from windlass.cli.answering import QuestionBatches
from windlass.cli.asking import ANSWERS, Questions, typed_pattern, who_is
from windlass.cli.choosing import choose
from windlass.cli.safe_text import exact, shortened
from windlass.cli.terminal import Terminal
from windlass.cli.transcript import Transcript
from windlass.client import Action, Conflict, Conversation, Session, StreamEvent, WindlassError, WorkspaceHandle

HELP = """\
A line is a prompt. Commands:
  /cancel          cancel what this session is doing and has queued
  /steer TEXT      tell the running agent something, without starting another run
  /queue           what waits in this session
  /sessions        the sessions of this workspace
  /use ID          look at another session (its number in the list, or the beginning of its id)
  /new [TITLE]     start a session
  y, n, s          answer the one question that is pending: yes, no, yes for the session (it says to what)
  s PATTERN        yes, also to what fits the pattern, for the session (s npm test*)
  /allow ID, /deny ID, /always ID [PATTERN]    answer a certain one
  /answer [ID] TEXT    answer what an agent asks: yes or no, a number, or words of your own
  /decline [ID]    give no answer to it
  /quit            leave; what runs goes on"""


class Attached:
    def __init__(self, workspace: WorkspaceHandle, terminal: Terminal) -> None:
        self._workspace = workspace
        self._terminal = terminal
        self._session_id = ""
        self._look_at(Conversation(""))
        hint = "Answer y, n, s ({again}, for the session) or s PATTERN; or /allow {id}, or /deny with the same id."
        self._questions = Questions(workspace, terminal, hint)
        self._batches = QuestionBatches(workspace, terminal, "Answer with /answer TEXT, or /decline. ({id})")
        # Events wait while a session is loaded: one shown between the load and the switch would belong to neither.
        self._turn = asyncio.Lock()
        self._ready = asyncio.Event()  # a line typed before the first hello waits: there is no session yet
        self._commands: dict[str, Callable[[str], Awaitable[None]]] = {
            "/cancel": self._cancel,
            "/steer": self._steer,
            "/queue": self._queue,
            "/sessions": self._sessions,
            "/use": self._use,
            "/new": self._new,
            "/allow": lambda text: self._answer(text, "allow"),
            "/always": self._always,
            "/deny": lambda text: self._answer(text, "deny"),
            "/answer": self._batches.answer,
            "/decline": self._batches.decline,
            "/help": self._help,
        }

    # -- what the stream brings --

    async def follow(self, session_id: str | None) -> None:
        """Show the workspace's events until cancelled; begin with `session_id`, or the newest session, or a new one."""
        stream = self._workspace.events(
            deltas=True, notice=lambda text: self._terminal.status(exact(text), fg="yellow")
        )
        async with aclosing(stream) as events:
            async for event in events:
                async with self._turn:
                    await self._take(event, session_id)

    async def _take(self, event: StreamEvent, first_session: str | None) -> None:
        if event.kind == "hello":
            await self._greet(first_session)
        elif event.kind == "reset":
            self._terminal.status("Some events are gone; the session was loaded again.", fg="yellow")
            await self._show_session(self._session_id)
        self._questions.take(event)
        self._batches.take(event)
        self._show(event)

    async def _greet(self, session_id: str | None) -> None:
        if not self._session_id:
            await self._show_session(session_id or await self._newest())
            self._terminal.status(f"Attached to {exact(self._workspace.path)}. /help lists the commands.", dim=True)
            if self._workspace.info.yolo:
                self._terminal.status("Tools do not ask in this workspace: it was opened with --yolo.", fg="yellow")
            self._ready.set()
        else:
            await self._say_where()  # presence is the server's memory only: a new stream says it again

    async def _newest(self) -> str:
        sessions = await self._workspace.sessions()
        return sessions[0].id if sessions else (await self._workspace.create_session()).id

    async def _show_session(self, session_id: str) -> None:
        session = await self._workspace.session(session_id)
        messages = await self._workspace.messages(session.id)
        self._session_id = session.id
        self._look_at(Conversation(session.id, messages))
        self._questions.shown = self._batches.shown = session.id
        self._terminal.heading(f"{exact(session.title) or 'New session'}  {exact(session.id)}")
        self._transcript.history(messages)
        await self._say_where()

    async def _say_where(self) -> None:
        with suppress(Conflict):  # the stream was just lost; the next hello says it again
            await self._workspace.set_current_session(self._session_id)

    def _look_at(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._transcript = Transcript(self._terminal, conversation)

    def _show(self, event: StreamEvent) -> None:
        if event.session_id != self._session_id:
            return
        if event.kind == "run" and event.change == "created":
            self._show_prompt(event)
        elif event.kind == "run_complete":
            self._terminal.end_line()
        elif (happening := self._conversation.apply(event)) is not None:
            self._transcript.show(happening)

    def _show_prompt(self, event: StreamEvent) -> None:
        ours = event.by is not None and event.by.client_id == self._workspace.transport.client_id
        if not ours:
            self._transcript.prompt(str(event.payload.get("prompt", "")), who_is(event.by))

    # -- what is typed --

    async def obey(self, lines: AsyncIterator[str]) -> None:
        """Do what each line says, until /quit or the end of the input."""
        await self._ready.wait()
        async for line in lines:
            if line.strip() in ("/quit", "/exit"):
                return
            if line.strip():
                try:
                    await self._do(line.strip())
                except WindlassError as error:
                    # A refused line is no reason to leave.
                    self._terminal.status(f"windlass: {exact(error.message)}", fg="red")

    async def _do(self, line: str) -> None:
        if line.lower() in ANSWERS and (self._questions.pending or self._batches.asks_yes_or_no):
            await self._answer_in_a_word(line.lower())
        elif line.lower() in ANSWERS and self._questions.asked + self._batches.asked:
            # Somebody was faster. Sent on, it would be a prompt that nobody meant.
            self._terminal.status(
                "Nothing waits for an answer: it was answered or withdrawn before. As a prompt, say more.",
                fg="yellow",
            )
        elif typed_pattern(line) and self._questions.pending:
            await self._answer("", "allow_session", typed_pattern(line))
        elif line.startswith("/"):
            name, _, rest = line.partition(" ")
            command = self._commands.get(name)
            if command is None:
                self._terminal.status(f"There is no command {exact(name)}. /help lists them.")
            else:
                await command(rest.strip())
        else:
            accepted = await self._workspace.prompt(self._session_id, line)
            if accepted.position:
                self._terminal.status(f"Queued, {accepted.position} before it.", dim=True)
            if any(batch.session_id == self._session_id for batch in self._batches.pending.values()):
                # Typed as an answer it would wait for the run that waits for the answer.
                self._terminal.status("That was a prompt. An agent waits for an answer: /answer TEXT.", fg="yellow")

    async def _answer_in_a_word(self, word: str) -> None:
        """With several pending this asks which: a guess could approve the wrong command."""
        if not self._questions.pending:
            await self._batches.answer(word)
        elif self._batches.asks_yes_or_no:
            self._terminal.status("Say which: /allow or /deny ID for the tool, /answer yes or no for the agent.")
        else:
            await self._answer("", ANSWERS[word])

    async def _cancel(self, _: str) -> None:
        covered = await self._workspace.cancel(self._session_id)
        self._terminal.status(f"Cancelling {len(covered)} run(s)." if covered else "Nothing is running here.")

    async def _steer(self, text: str) -> None:
        if not text:
            self._terminal.status("Say what: /steer TEXT")
            return
        accepted = await self._workspace.prompt(self._session_id, text, on_busy="steer")
        steered = accepted.disposition == "steered"
        self._terminal.status("The agent gets it at its next step." if steered else "Nothing was running; it runs now.")

    async def _queue(self, _: str) -> None:
        waiting = await self._workspace.queue(self._session_id)
        for number, run in enumerate(waiting, start=1):
            self._terminal.status(f"{number}. {shortened(exact(run.prompt.strip()), 100)}  {exact(run.id)}")
        if not waiting:
            self._terminal.status("Nothing waits.")

    async def _sessions(self, _: str) -> None:
        for number, session in enumerate(await self._workspace.sessions(), start=1):
            self._terminal.status(_session_line(number, session, session.id == self._session_id))

    async def _use(self, text: str) -> None:
        sessions = await self._workspace.sessions()
        if text.isdigit() and 0 < int(text) <= len(sessions):
            chosen = sessions[int(text) - 1].id
        else:
            chosen = choose(text, [session.id for session in sessions], "session")
        async with self._turn:
            await self._show_session(chosen)

    async def _new(self, title: str) -> None:
        created = await self._workspace.create_session(title)
        async with self._turn:
            await self._show_session(created.id)

    async def _always(self, text: str) -> None:
        permission_id, _, pattern = text.partition(" ")
        await self._answer(permission_id, "allow_session", pattern.strip())

    async def _answer(self, text: str, action: Action, pattern: str = "") -> None:
        pending = list(self._questions.pending)
        if not text and len(pending) == 1:
            await self._questions.answer(pending[0], action, pattern)
        else:
            await self._questions.answer(choose(text, pending, "question"), action, pattern)

    async def _help(self, _: str) -> None:
        self._terminal.status(HELP)


def _session_line(number: int, session: Session, here: bool) -> str:
    mark = "*" if here else " "
    busy = "  (busy)" if session.is_busy else ""
    return f"{mark} {number}. {shortened(exact(session.title), 60) or 'New session'}  {exact(session.id)}{busy}"
