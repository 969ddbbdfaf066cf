"""What a simulated client asks of an open workspace: sessions, runs and permissions, chosen by its seed."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from windlass.engine import reading
from windlass.engine.undo import undo
from windlass.engine.workspace import Workspace
from windlass.testing.sim_server import SimServer
from windlass.testing.sim_world import World
from windlass.wire.http import Prompt
from windlass.wire.permissions import Action, By
from windlass.wire.questions import QuestionResponse
from windlass.wire.runs import OnBusy

_ANSWER_PAUSES = (0.0, 0.0, 0.01, 0.02, 0.1)
_PATIENCE_SECONDS = 0.01
_CREATE_HURRY = 0.12  # opening takes long, and who hangs up in the middle of it leaves something half done
_ON_BUSY: tuple[OnBusy, ...] = ("enqueue", "enqueue", "enqueue", "steer", "steer", "interrupt", "reject")
_ANSWERS: tuple[Action, ...] = ("allow", "allow", "allow_session", "deny")
_PATTERNS = ("", "", "make*", "make test*")  # typed with "allow_session"; the last does not fit everything
_MOST_SESSIONS = 3


class SimRequests:
    """The requests of one client. Several may be under way at once."""

    _server: SimServer

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self._number = number
        self._lives = 1  # a retired client comes back under a new id
        self._rng = random.Random(f"{world.seed} client {number}")
        self._curious = random.Random(f"{world.seed} client {number} questions")
        self._typist = random.Random(f"{world.seed} client {number} patterns")
        self._diligent = random.Random(f"{world.seed} client {number} work")
        self._hurry = 0.04  # how often it hangs up at once
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def id(self) -> str:
        return f"client{self._number}.{self._lives}"

    @property
    def by(self) -> By:
        return By("token", self.id)

    def _spawn(self, action: Coroutine[Any, Any, None]) -> None:
        if self._server.closed:
            action.close()
            return
        self._tasks.append(asyncio.create_task(action, name=f"{self.id} action {len(self._tasks)}"))

    async def _ask(self, kind: str, call: Callable[[], Awaitable[Any]], **arguments: Any) -> Any:
        """The answer, or None when it was refused or not waited for: now and then a client hangs up at once."""
        hurry = max(self._hurry, _CREATE_HURRY) if kind == "create" else self._hurry
        patience = _PATIENCE_SECONDS if self._rng.random() < hurry else None
        ask = await self._server.ask(self.id, kind, arguments, call, patience)
        return ask.answer if ask.status == "answered" else None

    # -- sessions -----------------------------------------------------------------------------------------------------

    def _session(self, path: str) -> str:
        return self._rng.choice(self._world.sessions[path] or ["ses-unknown"])

    async def _create_session(self, path: str, workspace: Workspace) -> None:
        if len(self._world.sessions[path]) >= _MOST_SESSIONS:
            return

        async def create() -> str:
            return (await workspace.create_session("", self.by)).id

        id = await self._ask("create_session", create, workspace=workspace.id)
        if id is not None:
            self._world.sessions[path].append(id)

    async def _rename(self, path: str, workspace: Workspace) -> None:
        session_id = self._session(path)
        await self._ask("rename", lambda: workspace.rename_session(session_id, "a title", self.by), session=session_id)

    async def _delete(self, path: str, workspace: Workspace) -> None:
        session_id = self._session(path)
        await self._ask(
            "delete", lambda: workspace.delete_session(session_id, self.by), workspace=workspace.id, session=session_id
        )
        if self._rng.random() < 0.8 and session_id in self._world.sessions[path]:
            self._world.sessions[path].remove(session_id)  # mostly it is not asked for any more

    async def _read(self, path: str, workspace: Workspace) -> None:
        session_id = self._session(path)
        await self._ask(
            "messages", lambda: reading.messages(workspace, session_id), workspace=workspace.id, session=session_id
        )

    # -- runs ---------------------------------------------------------------------------------------------------------

    async def _prompt(self, path: str, workspace: Workspace) -> None:
        if self._world.works and self._diligent.random() < 0.15:
            self._spawn(self._errand(path, workspace))
        body = self._body(self._session(path))
        if self._rng.random() < 0.05 and body.run_id:
            self._spawn(self._send(workspace, body))
        if self._rng.random() < 0.05:
            self._spawn(self._cancel(path, workspace))
        if self._rng.random() < 0.05 and body.run_id:
            self._spawn(self._cancel_run(path, workspace, body.run_id))  # it may not have been accepted yet
        await self._send(workspace, body)

    def _body(self, session_id: str) -> Prompt:
        recent = self._world.prompts[-3:]
        choice = self._rng.random()
        if recent and choice < 0.15:
            return self._rng.choice(recent)
        body = Prompt(session_id, self._world.new_id("prompt"), on_busy=self._rng.choice(_ON_BUSY))
        if recent and choice < 0.2:
            body.run_id = self._rng.choice(recent).run_id
        elif choice < 0.6:
            body.run_id = self._world.new_id("own")
            self._world.prompts.append(body)
        return body

    async def _errand(self, path: str, workspace: Workspace) -> None:
        """Undo, sum up or look at the files of a session; or touch a file oneself."""
        rng, by, id = self._diligent, self.by, self._session(path)
        await asyncio.sleep(rng.choice(_ANSWER_PAUSES))
        if self._server.closed:
            return
        match rng.choice(("undo", "undo", "undo", "undo", "summarize", "history", "touch")):
            case "undo":
                here = [writer for writer in self._world.writers if writer[0] in self._world.sessions[path]]
                session, run_id = rng.choice(here[-2:] or [(id, self._run_id())])
                await self._ask(
                    "undo",
                    lambda: undo(workspace, session, run_id, by),
                    workspace=workspace.id,
                    session=session,
                    run_id=run_id,
                )
            case "summarize":
                await self._ask(
                    "summarize", lambda: workspace.errands.summarize(id, by), workspace=workspace.id, session=id
                )
            case "history":
                await self._ask(
                    "history", lambda: reading.file_history(workspace, id), workspace=workspace.id, session=id
                )
            case _:
                self._world.files[f"{path}/main.py"] = self._world.new_id("typed").encode()

    async def _send(self, workspace: Workspace, body: Prompt) -> None:
        accepted = await self._ask(
            "prompt",
            lambda: workspace.prompt(body, self.by),
            workspace=workspace.id,
            session=body.session_id,
            prompt=body.prompt,
            on_busy=body.on_busy,
            run_id=body.run_id,
        )
        if accepted is not None:
            self._world.run_ids.append(accepted.run_id)

    async def _cancel(self, path: str, workspace: Workspace) -> None:
        session = self._session(path)
        await self._ask("cancel", lambda: workspace.cancel(session, self.by), workspace=workspace.id, session=session)

    def _run_id(self) -> str:
        return self._rng.choice(self._world.run_ids[-4:] or ["run-unknown"])

    async def _cancel_run(self, path: str, workspace: Workspace, run_id: str = "") -> None:
        run_id = run_id or self._run_id()
        await self._ask(
            "cancel_run", lambda: workspace.cancel_run(run_id, self.by), workspace=workspace.id, run_id=run_id
        )

    async def _remove(self, path: str, workspace: Workspace) -> None:
        run_id = self._run_id()
        await self._ask("remove", lambda: workspace.remove_run(run_id, self.by), workspace=workspace.id, run_id=run_id)

    async def _clear(self, path: str, workspace: Workspace) -> None:
        session = self._session(path)
        await self._ask(
            "clear", lambda: workspace.clear_queue(session, self.by), workspace=workspace.id, session=session
        )

    async def _run(self, path: str, workspace: Workspace) -> None:
        run_id = self._run_id()
        await self._ask("run", lambda: workspace.run(run_id), workspace=workspace.id, run_id=run_id)

    # -- permissions and the rest -------------------------------------------------------------------------------------

    def _on_question(self, permission_id: str) -> None:
        self._world.permission_ids.append(permission_id)
        if self._rng.random() < 0.6:
            self._spawn(self._answer_soon(permission_id))

    async def _answer_soon(self, permission_id: str) -> None:
        await asyncio.sleep(self._rng.choice(_ANSWER_PAUSES))
        for workspace in self._server.registry.workspaces:
            if permission_id in workspace.log.permissions or self._rng.random() < 0.3:
                await self.answer(workspace, permission_id)

    def _on_batch(self, batch_id: str) -> None:
        self._world.batch_ids.append(batch_id)
        if self._curious.random() < 0.6:
            self._spawn(self._answer_batch_soon(batch_id))

    async def _answer_batch_soon(self, batch_id: str) -> None:
        await asyncio.sleep(self._curious.choice(_ANSWER_PAUSES))
        for workspace in self._server.registry.workspaces:
            if batch_id in workspace.log.questions or self._curious.random() < 0.3:
                await self.answer_batch(workspace, batch_id)

    async def answer_batch(self, workspace: Workspace, batch_id: str) -> None:
        """Answer, in a way that fits or not, or decline: this one, or everything that waits."""
        if self._server.closed:
            return
        desk, by, choice = workspace.questions, self.by, self._curious.random()
        if choice < 0.2:
            named = "" if choice < 0.05 else batch_id
            await self._ask("cancel_questions", lambda: desk.cancel(named, by), workspace=workspace.id, batch=named)
            return
        fits = choice < 0.85
        await self._ask(
            "answer_questions",
            lambda: desk.answer(batch_id, (QuestionResponse("q1", yes=True if fits else None),), by),
            workspace=workspace.id,
            batch=batch_id,
            fits=fits,
        )

    async def _answer(self, path: str, workspace: Workspace) -> None:
        batches = list(workspace.log.questions) or self._world.batch_ids[-3:]
        if batches and self._curious.random() < 0.5:
            await self.answer_batch(workspace, self._curious.choice(batches))
            return
        known = list(workspace.log.permissions) or self._world.permission_ids[-3:]
        if known:
            await self.answer(workspace, self._rng.choice(known))

    async def answer(self, workspace: Workspace, permission_id: str) -> None:
        if self._server.closed:
            return
        action = self._rng.choice(_ANSWERS)
        pattern = self._typist.choice(_PATTERNS) if action == "allow_session" else ""
        await self._ask(
            "answer",
            lambda: workspace.desk.resolve(permission_id, action, self.by, pattern),
            workspace=workspace.id,
            permission=permission_id,
            action=action,
            pattern=pattern,
        )

    async def _skip(self, path: str, workspace: Workspace) -> None:
        skip = self._rng.random() < 0.4
        await self._ask("skip", lambda: workspace.set_skip(skip, self.by), workspace=workspace.id, skip=skip)

    async def _trim(self, path: str, workspace: Workspace) -> None:
        budget = self._rng.choice((2_000, 6_000, 20_000))
        await self._ask("trim", lambda: self._server.journal.trim(1.0, budget), budget=budget)
