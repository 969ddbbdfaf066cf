"""A workspace as a client holds it: its sessions, runs, permissions and events.

A workspace closes when nobody holds it, and a restarted server has none open. The handle remembers its path: a request
that is answered "unknown" because of that opens it again and is sent once more.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, TypeVar

from windlass import ids, limits
from windlass.client import approving, stream
from windlass.client.events import EventId, StreamEvent
from windlass.client.run import RunHandle
from windlass.client.transport import Query, Transport, segment
from windlass.client.waiting import Endings, RunResult
from windlass.errors import NotFound
from windlass.wire import http
from windlass.wire.messages import Message
from windlass.wire.permissions import Action, PermissionRequest
from windlass.wire.questions import AnswerQuestions, CancelQuestions, QuestionBatch, QuestionResponse
from windlass.wire.runs import Attachment, OnBusy, Run, RunState
from windlass.wire.sessions import FileVersion, Session
from windlass.wire.timeline import Timeline

Answer = TypeVar("Answer")


class WorkspaceHandle:
    """Made by `Client.open`."""

    def __init__(self, transport: Transport, request: http.CreateWorkspace, info: http.Workspace) -> None:
        self.transport = transport
        self.info = info
        self._request = request
        self._endings = Endings(self)

    @classmethod
    async def open(cls, transport: Transport, request: http.CreateWorkspace) -> "WorkspaceHandle":
        return cls(transport, request, await _create(transport, request))

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def path(self) -> str:
        return self.info.path

    @property
    def path_prefix(self) -> str:
        """Where its routes are."""
        return f"/workspaces/{segment(self.info.id)}"

    async def reopen(self) -> None:
        """Open it again by its path: same path, same log."""
        self.info = await _create(self.transport, self._request)

    async def close(self) -> None:
        """Release this client's claim. Runs go on; the workspace closes when nothing holds it any more."""
        await self.transport.call("DELETE", self.path_prefix, type(None), repeatable=True)

    # -- sessions and messages --

    async def sessions(self, parent: str | None = None) -> list[Session]:
        """Newest first: those at the top level, or the children of `parent`."""
        return await self._call("GET", "/sessions", list[Session], query={"parent": parent})

    async def create_session(self, title: str = "") -> Session:
        return await self._call("POST", "/sessions", Session, body=http.CreateSession(title))

    async def session(self, session_id: str) -> Session:
        return await self._call("GET", f"/sessions/{segment(session_id)}", Session)

    async def rename(self, session_id: str, title: str) -> Session:
        path = f"/sessions/{segment(session_id)}"
        return await self._call("PUT", path, Session, body=http.UpdateSession(title), repeatable=True)

    async def delete_session(self, session_id: str) -> None:
        """End its runs and its children's, and remove all of its content. Returns when that is done."""
        await self._call("DELETE", f"/sessions/{segment(session_id)}", type(None))

    async def messages(self, session_id: str, after: str | None = None, limit: int | None = None) -> list[Message]:
        """Oldest first: all of them, or those behind the message `after`. One being written has its text so far."""
        path = f"/sessions/{segment(session_id)}/messages"
        return await self._call("GET", path, list[Message], query={"after": after, "limit": limit})

    async def file_history(self, session_id: str) -> list[FileVersion]:
        """Every version of the files that the session's runs wrote, in the order in which they came to be."""
        return await self._call("GET", f"/sessions/{segment(session_id)}/history", list[FileVersion])

    async def files_read(self, session_id: str) -> list[str]:
        """Absolute paths of the files whose content the session's model has been shown."""
        return await self._call("GET", f"/sessions/{segment(session_id)}/filetracker/files", list[str])

    async def undo(self, session_id: str, run_id: str) -> http.Undone:
        """Put the files that a run wrote back to what they were before it; what changed since is refused and said.

        Undoing twice is undoing once: what is as it was is left alone.
        """
        path = f"/sessions/{segment(session_id)}/undo"
        return await self._call("POST", path, http.Undone, body=http.Undo(run_id))

    async def set_plan(self, session_id: str, plan: bool) -> Session:
        """Let the session's runs only read, or (False) let those that come later do everything again."""
        path = f"/sessions/{segment(session_id)}/plan"
        return await self._call("POST", path, Session, body=http.PlanMode(plan), repeatable=True)

    async def set_current_session(self, session_id: str) -> None:
        """Say which session this client looks at ("" for none). Needs a live event stream (409 otherwise)."""
        await self._call("POST", "/current-session", type(None), body=http.CurrentSession(session_id), repeatable=True)

    async def search(self, text: str, limit: int | None = None) -> list[http.SearchHit]:
        """Where the text occurs, upper and lower case alike: in titles first, then in messages, the newest first."""
        return await self._call("GET", "/search", list[http.SearchHit], query={"q": text, "limit": limit})

    # -- runs --

    async def prompt(
        self,
        session_id: str,
        text: str,
        run_id: str | None = None,
        on_busy: OnBusy = "enqueue",
        attachments: list[Attachment] | None = None,
        reasoning_effort: str = "",
        model: str = "",
        *,
        allow: Sequence[str] = (),
        max_cost: float = 0.0,
    ) -> RunHandle:
        """Start a run; returns when the server has it on disk, long before the run ends.

        `allow` are rules for this run alone, as the config has them ("bash:npm test*"); what the config denies stays
        denied. `max_cost` ends the run when it has cost that much. The run is always named here: when the answer is
        lost, the same prompt sent again is the same run (B12).
        """
        body = http.Prompt(
            session_id=session_id,
            prompt=text,
            run_id=ids.new_id("run") if run_id is None else run_id,
            attachments=attachments or [],
            on_busy=on_busy,
            reasoning_effort=reasoning_effort,
            model=model,
            max_cost=max_cost,
            allow=list(allow),
        )
        return RunHandle(self, await self._call("POST", "/agent", http.Accepted, body=body, repeatable=True))

    async def ask(
        self,
        text: str,
        session_id: str | None = None,
        *,
        model: str = "",
        reasoning_effort: str = "",
        attachments: list[Attachment] | None = None,
        allow: Sequence[str] = (),
        max_cost: float = 0.0,
        timeout: float | None = None,
    ) -> RunResult:
        """Prompt and wait for the answer: in a session, or in a new one. After `timeout` seconds it raises
        TimeoutError, and the run goes on."""
        if session_id is None:
            session_id = (await self.create_session()).id
        run = await self.prompt(
            session_id,
            text,
            attachments=attachments,
            reasoning_effort=reasoning_effort,
            model=model,
            allow=allow,
            max_cost=max_cost,
        )
        return await run.result(timeout)

    async def find_run(self, run_id: str) -> RunHandle:
        """A run that was started elsewhere, or before this program was."""
        run = await self.run(run_id)
        accepted = http.Accepted(run.id, run.session_id, run.state, run.disposition, position=0, into=run.into)
        return RunHandle(self, accepted)

    async def wait(self, run_id: str, give_up_after: float | None = None) -> RunResult:
        """Return how the run ended, when it has. Bound it with asyncio.timeout; the run itself is not affected."""
        endings = self._endings if give_up_after is None else Endings(self, give_up_after)
        return await endings.wait(run_id)

    async def cancel(self, session_id: str) -> list[str]:
        """Cancel everything accepted on the session so far; returns the runs this covers."""
        path = f"/agent/sessions/{segment(session_id)}/cancel"
        return (await self._call("POST", path, http.Canceled, repeatable=True)).canceled

    async def cancel_run(self, run_id: str) -> RunState:
        """Cancel one run; returns the state it is in. Ended already is fine."""
        path = f"/runs/{segment(run_id)}/cancel"
        return (await self._call("POST", path, http.RunStateBody, repeatable=True)).state

    async def runs(
        self,
        session_id: str | None = None,
        state: RunState | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[Run]:
        query = {"session": session_id, "state": state, "after": after, "limit": limit}
        return await self._call("GET", "/runs", list[Run], query=query)

    async def run(self, run_id: str) -> Run:
        return await self._call("GET", f"/runs/{segment(run_id)}", Run)

    async def timeline(self, run_id: str) -> Timeline:
        """What a run spent its time on, so far."""
        return await self._call("GET", f"/runs/{segment(run_id)}/timeline", Timeline)

    async def queue(self, session_id: str) -> list[Run]:
        """The runs that wait on the session, in order."""
        path = f"/agent/sessions/{segment(session_id)}/prompts/list"
        return await self._call("GET", path, list[Run], query={"full": 1})

    async def clear_queue(self, session_id: str) -> None:
        path = f"/agent/sessions/{segment(session_id)}/prompts/clear"
        await self._call("POST", path, type(None), repeatable=True)

    async def remove_queued(self, run_id: str) -> None:
        """Cancel a run that has not started (409 when it has)."""
        await self._call("DELETE", f"/runs/{segment(run_id)}", type(None))

    async def summarize(self, session_id: str) -> http.Summarized:
        """Let the model sum the conversation up; returns when it has. Leaving this does not stop it, a cancel does."""
        path = f"/agent/sessions/{segment(session_id)}/summarize"
        return await self._call("POST", path, http.Summarized, seconds=limits.CLIENT_ERRAND_SECONDS)

    async def shell(self, session_id: str, command: str, term_width: int = 0) -> http.ShellOutput:
        """Run a command of one's own in the workspace's directory; returns when it has ended. The model sees it with
        the next prompt. Not sent again when the connection breaks: it would be run twice."""
        path = f"/agent/sessions/{segment(session_id)}/shell"
        body = http.ShellRequest(command, term_width)
        return await self._call("POST", path, http.ShellOutput, body=body, seconds=limits.CLIENT_ERRAND_SECONDS)

    async def agent_info(self) -> http.AgentInfo:
        return await self._call("GET", "/agent", http.AgentInfo)

    # -- permissions --

    async def permissions(self) -> list[PermissionRequest]:
        """What waits for an answer."""
        return await self._call("GET", "/permissions", list[PermissionRequest])

    async def grant(self, permission_id: str, action: Action, pattern: str = "") -> bool:
        """Answer. True when this answer decided; False when another came first or nobody asks any more.

        `pattern`: with "allow_session", what else is allowed for the rest of the session. Raises Invalid when it does
        not cover the request. Not sent again when the connection breaks: the second answer would be told False about
        the first.
        """
        body = http.Grant(http.PermissionId(permission_id), action, pattern)
        return (await self._call("POST", "/permissions/grant", http.Resolved, body=body)).resolved

    async def answer_permissions(self, decide: "approving.Decide") -> None:
        """Be the approver: ask `decide(request)` about all that waits, now and later, once each, until cancelled.

        It says "allow", "allow_session" or "deny", or None to leave the request to others; it may be async. Sub-agents'
        requests come here too. One that is settled elsewhere first is dropped.
        """
        await approving.Approver(self, decide).serve()

    async def skips_permissions(self) -> bool:
        return (await self._call("GET", "/permissions/skip", http.Skip)).skip

    async def skip_permissions(self, skip: bool) -> None:
        """Stop (or go back to) asking in this workspace, for everyone. A deny rule still denies."""
        await self._call("POST", "/permissions/skip", type(None), body=http.Skip(skip), repeatable=True)

    # -- questions --

    async def questions(self) -> list[QuestionBatch]:
        """What agents asked people and nobody answered yet."""
        return await self._call("GET", "/questions", list[QuestionBatch])

    async def answer_questions(self, batch_id: str, responses: Sequence[QuestionResponse]) -> bool:
        """Answer a whole batch. True when this answer decided; False when another came first or nobody asks any more.

        Raises Invalid for answers that do not fit the questions. Not sent again when the connection breaks, as `grant`.
        """
        body = AnswerQuestions(batch_id, list(responses))
        return (await self._call("POST", "/questions/answer", http.Resolved, body=body)).resolved

    async def cancel_questions(self, batch_id: str = "") -> bool:
        """Decline to answer a batch, or every one that waits; whether this decided anything."""
        body = CancelQuestions(batch_id)
        return (await self._call("POST", "/questions/cancel", http.Resolved, body=body)).resolved

    # -- events --

    def events(
        self,
        after: EventId | int | None = None,
        deltas: bool = False,
        *,
        give_up_after: float | None = None,
        silence: float = limits.CLIENT_SILENCE_SECONDS,
        notice: "stream.Notice | None" = None,
    ) -> AsyncGenerator[StreamEvent, None]:
        """Every fact after a place (default: from now), once, in order, and what is live; it comes back by itself.

        Each connection begins with a `hello`; a `reset` says that facts are gone: reload over REST. `notice` is told,
        for people, when the connection is lost and back. Raises ServerUnreachable after `give_up_after` seconds
        without a connection (default: never), StreamGap, and what the server refuses (401, 403, 409).
        Leave it with `contextlib.aclosing` around it, or the connection stays until the generator is collected.
        """
        return stream.follow(
            self, after=after, deltas=deltas, give_up_after=give_up_after, silence=silence, notice=notice
        )

    # -- how a request is sent --

    async def _call(
        self,
        method: str,
        path: str,
        answer: type[Answer],
        *,
        body: Any = None,
        query: Query | None = None,
        repeatable: bool | None = None,
        seconds: float = limits.CLIENT_REQUEST_SECONDS,
    ) -> Answer:
        async def send() -> Answer:
            address = self.path_prefix + path
            return await self.transport.call(
                method, address, answer, body=body, query=query, repeatable=repeatable, seconds=seconds
            )

        try:
            return await send()
        except NotFound:
            if not await self._is_open():
                await self.reopen()
            # Also when it is open: it may be so only since then, by somebody else who met it closed.
            return await send()

    async def _is_open(self) -> bool:
        try:
            await self.transport.call("GET", self.path_prefix, http.Workspace)
        except NotFound:
            return False
        return True


async def _create(transport: Transport, request: http.CreateWorkspace) -> http.Workspace:
    return await transport.call("POST", "/workspaces", http.Workspace, body=request, repeatable=True)
