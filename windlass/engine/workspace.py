"""One open workspace: the actor that joins decisions, the log and running executors.

Every decision is a synchronous method: it looks, acts on memory, and stages its facts, with no `await` in between. The
`async` methods around them only wait: `durable` stands directly above each answer.
"""

import asyncio
import contextlib
import hashlib
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import structlog

from windlass import limits
from windlass.config import Config, parse_duration
from windlass.core.claims import Claims, Hold
from windlass.core.lane import Cover, Ending, Entry, Lane, Request
from windlass.core.permissions import Permissions, Settled
from windlass.core.policy import Policy
from windlass.engine.context import Context
from windlass.engine.runner import Runner
from windlass.engine.transcript import Transcript
from windlass.errors import Conflict, Invalid, JournalPoisoned, NotFound, TooMany, WindlassError
from windlass.journal import view
from windlass.journal.log import Log
from windlass.wire.events import ConfigChanged, Fact, Presence
from windlass.wire.execution import PermissionAsk, Verdict
from windlass.wire.http import Accepted, Prompt
from windlass.wire.messages import Binary, BinaryData, Message, Part
from windlass.wire.permissions import Action, By, PermissionRequest
from windlass.wire.run_events import FileWritten, UsageGained
from windlass.wire.runs import Attachment, Outcome, Run, RunState
from windlass.wire.sessions import FileVersion, Session, Todo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

logger = structlog.get_logger("windlass.workspace")
_decode_message = msgspec.json.Decoder(Message).decode
_decode_run = msgspec.json.Decoder(Run).decode
SERVER = By("server")
Result = TypeVar("Result")


class Workspace:
    """A directory that is open: sessions, lanes, claims and permissions in memory, everything else in the journal."""

    def __init__(
        self, context: Context, log: Log, opening: view.Opening, on_quiet: "Callable[[Workspace], None]"
    ) -> None:
        self.id = opening.workspace.id
        self.path = opening.workspace.path
        self.debug = False
        self.context = context
        self.log = log
        self.claims = Claims()
        self.permissions = Permissions(skip=opening.workspace.skip)
        self.closed = False
        self.draining = False
        self._on_quiet = on_quiet
        self._sessions = {session.id: session for session in opening.sessions}
        self._lanes: dict[str, Lane] = {}
        self._next_numbers = opening.next_numbers
        self._next_order = opening.next_order
        self._file_versions = opening.file_versions
        self._runners: dict[str, Runner] = {}  # by session
        self._deleting: set[str] = set()  # sessions on their way out keep the workspace open until they are gone
        self._driving: set[asyncio.Task[None]] = set()
        self._abandoned: set[asyncio.Task[Any]] = set()
        self._reserved: dict[str, asyncio.Future[None]] = {}  # run ids being looked up
        self._asking: dict[str, asyncio.Future[tuple[Verdict, int]]] = {}  # by permission id
        self._idle_waiters: dict[str, list[asyncio.Future[None]]] = {}  # by session
        self._timers: dict[Hold, asyncio.TimerHandle] = {}
        self._unattended: asyncio.TimerHandle | None = None
        for key in opening.grants:
            self.permissions.add_grant(key)

    # -- sessions -----------------------------------------------------------------------------------------------------

    def has_session(self, session_id: str) -> bool:
        return session_id in self._sessions and session_id not in self._deleting

    async def create_session(self, title: str, by: By) -> Session:
        self.context.journal.check_room()
        if len(self._sessions) >= limits.SESSIONS_PER_WORKSPACE:
            raise TooMany("This workspace has too many sessions. Delete some that are no longer needed.")
        now = self.context.clock.seconds()
        session = Session(id=self.context.new_id("ses"), title=_title(title), created_at=now, updated_at=now)
        self._sessions[session.id] = session
        head = self.log.append([self._session_fact(session, by, created=True)])
        await self.log.durable(head)
        return session

    async def rename_session(self, session_id: str, title: str, by: By) -> Session:
        self._session(session_id)
        session = self._change_session(session_id, title=_title(title), updated_at=self.context.clock.seconds())
        head = self.log.append([self._session_fact(session, by)])
        await self.log.durable(head)
        return session

    async def delete_session(self, session_id: str, by: By) -> None:
        """Cancel its runs, wait for their terminals, remove its content. New prompts are refused at once."""
        self.context.journal.check()
        if self.closed or self.draining:
            raise Conflict("This workspace is closing. Open it again and repeat the request.")
        session = self._session(session_id)
        # It stays in memory until its end is decided: its runs still end, and a crash before that must find it whole.
        self._deleting.add(session_id)
        lane = self._lanes.get(session_id)
        if lane is not None:
            self._cancel(lane, by)
        task = asyncio.create_task(self._delete(session, lane, by), name=f"delete {session_id}")
        self._driving.add(task)
        task.add_done_callback(self._deleted)
        # Shielded: a caller that goes away must not leave a session that is gone from memory and not from the disk.
        await asyncio.shield(task)

    async def _delete(self, session: Session, lane: Lane | None, by: By) -> None:
        session_id = session.id
        try:
            if lane is not None:
                await self._until_idle(lane)
            del self._sessions[session_id]
            self._lanes.pop(session_id, None)
            self.permissions.forget_session(session_id)
            gone = Session(id=session.id, created_at=session.created_at, updated_at=self.context.clock.seconds())
            head = self.log.append([Fact("session", "deleted", gone, by, session_id, key=session_id)])
            await self.log.durable(head)
        finally:
            self._deleting.discard(session_id)
            self._on_quiet(self)

    def _deleted(self, task: asyncio.Task[None]) -> None:
        self._driving.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may be gone, and then nobody else looks

    async def _until_idle(self, lane: Lane) -> None:
        while lane.is_busy:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle_waiters.setdefault(lane.session_id, []).append(waiter)
            await waiter

    def _session(self, session_id: str) -> Session:
        if not self.has_session(session_id):
            raise NotFound("There is no such session in this workspace.")
        return self._sessions[session_id]

    def _change_session(self, session_id: str, **changes: Any) -> Session:
        session = msgspec.structs.replace(self._sessions[session_id], **changes)
        self._sessions[session_id] = session
        return session

    def _session_fact(self, session: Session, by: By, created: bool = False) -> Fact:
        lane = self._lanes.get(session.id)
        body = msgspec.structs.replace(
            session,
            is_busy=lane is not None and lane.is_busy,
            attached_clients=self.claims.attached_clients(session.id),
        )
        return Fact("session", "created" if created else "updated", body, by, session.id, key=session.id)

    def _session_facts(self, session_id: str, by: By, **changes: Any) -> list[Fact]:
        """The session after a change; nothing for one that was deleted."""
        if session_id not in self._sessions:
            return []
        return [self._session_fact(self._change_session(session_id, **changes), by)]

    # -- accepting ----------------------------------------------------------------------------------------------------

    async def prompt(self, body: Prompt, by: By) -> Accepted:
        """Accept a prompt; returns when it is on disk (I1). The same `run_id` and body is the same run (I8)."""
        digest = _digest(body)
        if body.run_id:
            await self._reserve(body.run_id)
        try:
            if body.run_id and (earlier := await self._earlier(body.run_id)) is not None:
                run, known = earlier
                if known != digest:
                    raise Conflict("This run_id was used for another prompt. Choose a new one.")
                return self._accepted(run)
            accepted, head = self._accept(body, digest, by)
        except WindlassError:
            # A refusal rests on facts too: what keeps the session busy must be on disk before anyone is told of it.
            await self.log.durable(self.log.head)
            raise
        finally:
            # Released in the same turn as the decision: from here on the run itself holds its id.
            self._release(body.run_id)
        await self.log.durable(head)
        return accepted

    def _accept(self, body: Prompt, digest: str, by: By) -> tuple[Accepted, int]:
        self.context.journal.check_room()
        if self.closed or self.draining:
            raise Conflict("This workspace is closing. Open it again and repeat the prompt.")
        self._session(body.session_id)
        lane = self._lane(body.session_id)
        request = Request(
            run_id=body.run_id or self.context.new_id("run"),
            prompt=body.prompt,
            on_busy=body.on_busy,
            order=self._next_order,
            digest=digest,
            attachments=body.attachments,
            reasoning_effort=body.reasoning_effort,
            model=body.model,
        )
        acceptance = lane.accept(request, by, self.context.clock.rfc3339())
        self._next_order += 1
        head = self.log.append([*acceptance.facts, *self._withdrawals(acceptance.stopped, by)])
        self._stop_covered(lane)
        if acceptance.run.disposition == "steered":
            self._runners[lane.session_id].steer.wake()
        self._pump(lane)
        return self._accepted(acceptance.run), head

    def _accepted(self, run: Run) -> Accepted:
        lane = self._lanes.get(run.session_id)
        return Accepted(
            run_id=run.id,
            session_id=run.session_id,
            state=run.state,
            disposition=run.disposition,
            position=0 if lane is None else lane.position(run.id),
            into=run.into,
        )

    async def _reserve(self, run_id: str) -> None:
        """Have the id to oneself while looking it up: else two callers could both find nothing and both accept."""
        while (reserved := self._reserved.get(run_id)) is not None:
            await asyncio.shield(reserved)  # a caller that goes away must not cancel it under the others
        self._reserved[run_id] = asyncio.get_running_loop().create_future()

    async def _earlier(self, run_id: str) -> tuple[Run, str] | None:
        """The run that already has this id, and the digest of its prompt."""
        entry = self._entry(run_id)
        run = None if entry is None else entry.run
        # Wait first: a run that has just ended could be neither in memory nor on disk yet.
        await self.log.durable(self.log.head)
        if entry is not None and run is not None:
            return run, entry.private.digest
        row = await self.read(view.run, self.id, run_id)
        return None if row is None else (_decode_run(row[0]), row[1].digest)

    def _release(self, run_id: str) -> None:
        reserved = self._reserved.pop(run_id, None)
        if reserved is not None and not reserved.done():
            reserved.set_result(None)

    def _lane(self, session_id: str) -> Lane:
        lane = self._lanes.get(session_id)
        if lane is None:
            lane = self._lanes[session_id] = Lane(session_id, self._next_numbers.get(session_id, 1))
        return lane

    def _entry(self, run_id: str) -> Entry | None:
        for lane in self._lanes.values():
            entry = lane.get(run_id)
            if entry is not None:
                return entry
        return None

    # -- cancelling ---------------------------------------------------------------------------------------------------

    async def cancel(self, session_id: str, by: By) -> list[str]:
        """Cancel everything accepted so far on this session; the ids it covers that are not over yet."""
        lane = self._lanes.get(session_id)
        run_ids = [] if lane is None else self._cancel(lane, by)
        await self.log.durable(self.log.head)
        return run_ids

    def _cancel(self, lane: Lane, by: By) -> list[str]:
        return self._cover(lane, lane.cancel(by), by)

    async def cancel_run(self, run_id: str, by: By) -> RunState:
        """Cancel one run; its state now. Raises NotFound for one that never was."""
        entry = self._entry(run_id)
        if entry is not None:
            lane = self._lanes[entry.run.session_id]
            self._cover(lane, lane.cancel_run(run_id, by), by)
            # Its state as decided: it may end while we wait, and that end may not be on disk yet (I12).
            state = entry.run.state
            await self.log.durable(self.log.head)
            return state
        return (await self._ended_run(run_id)).state

    async def remove_run(self, run_id: str, by: By) -> RunState:
        """Take a run out of the queue; one that is running is refused with Conflict."""
        entry = self._entry(run_id)
        if entry is None:
            run = await self._ended_run(run_id)
            raise Conflict(f"This run is already over: {run.state}.")
        lane = self._lanes[entry.run.session_id]
        try:
            cover = lane.remove(run_id, by)
        except Conflict:
            await self.log.durable(self.log.head)  # that it runs must be on disk before anyone is told
            raise
        self._cover(lane, cover, by)
        state = entry.run.state
        await self.log.durable(self.log.head)
        return state

    async def _ended_run(self, run_id: str) -> Run:
        """A run that is not in memory, as it ended. Its end may still be on its way to the disk: without the wait it
        would look as if it were going on, and a cancel would seem to cover it."""
        await self.log.durable(self.log.head)
        return await self.run(run_id)

    async def clear_queue(self, session_id: str, by: By) -> list[str]:
        lane = self._lanes.get(session_id)
        run_ids = [] if lane is None else self._cover(lane, lane.clear(by), by)
        await self.log.durable(self.log.head)
        return run_ids

    def _cover(self, lane: Lane, cover: Cover, by: By) -> list[str]:
        self.log.append([*cover.facts, *self._withdrawals(cover.run_ids, by)])
        self._stop_covered(lane)
        self._pump(lane)
        self._settle(lane)
        return cover.run_ids

    def _stop_covered(self, lane: Lane) -> None:
        runner = self._runners.get(lane.session_id)
        if runner is not None and lane.covered(runner.entry):
            runner.stop()

    # -- starting and ending ------------------------------------------------------------------------------------------

    def _pump(self, lane: Lane) -> None:
        """Start what can start; end unstarted what a cancel covers."""
        while (entry := lane.head()) is not None:
            if not lane.covered(entry):
                if not self.draining:
                    self._start(lane, entry)
                return
            transcript = self._transcript(entry)
            user_message = self._user_message(lane, entry, transcript)
            self._finish(lane, entry, transcript, "canceled", "", [user_message])

    def _start(self, lane: Lane, entry: Entry) -> None:
        transcript = self._transcript(entry)
        now = self.context.clock
        user_message = self._user_message(lane, entry, transcript)
        facts = lane.start(entry, now.rfc3339())
        title = self._sessions[lane.session_id].title or _title(entry.run.prompt.strip().partition("\n")[0][:80])
        session = self._session_facts(lane.session_id, entry.by, title=title, updated_at=now.seconds())
        head = self.log.append([*session, *facts, user_message])
        runner = Runner(self, lane, entry, transcript)
        self._runners[lane.session_id] = runner
        task = asyncio.create_task(runner.drive(head), name=f"drive {entry.run.id}")
        self._driving.add(task)
        task.add_done_callback(self._driving.discard)

    def _user_message(self, lane: Lane, entry: Entry, transcript: Transcript) -> Fact:
        parts = _attachment_parts(entry.private.attachments)
        message = transcript.user(entry.run.prompt, self.context.clock.seconds(), parts)
        lane.note(entry, message_id=message.id)
        return transcript.create(message)

    def _transcript(self, entry: Entry) -> Transcript:
        return Transcript(entry.run.id, entry.run.session_id, entry.number, entry.by, self.context.new_id)

    def finish_run(self, lane: Lane, entry: Entry, transcript: Transcript, outcome: Outcome, error: str) -> None:
        """The runner's last call: write the ending, and go on with the next run."""
        if self._runners.get(lane.session_id) is not None:
            del self._runners[lane.session_id]
        self._finish(lane, entry, transcript, outcome, error)
        self._pump(lane)
        self._settle(lane)

    def _finish(
        self,
        lane: Lane,
        entry: Entry,
        transcript: Transcript,
        outcome: Outcome,
        error: str,
        first: "Sequence[Fact]" = (),
        written: "Callable[[str], Message | None] | None" = None,
    ) -> None:
        now = self.context.clock
        messages = transcript.end(outcome, error, written or self.log.staged_message, now.seconds())
        for fact in messages:
            if fact.change == "created":
                lane.note(entry, message_id=fact.key)
        withdrawn = self._withdrawals([entry.run.id], SERVER)
        ending = Ending(outcome, transcript.last_assistant_id, transcript.last_text, error)
        runs = lane.finish(entry, ending, now.rfc3339())
        count = transcript.added
        if lane.session_id in self._sessions:
            count += self._sessions[lane.session_id].message_count
        session = self._session_facts(lane.session_id, entry.by, message_count=count, updated_at=now.seconds())
        # One append is one commit: either all of an ending is there after a crash, or none of it.
        self.log.append([*first, *messages, *withdrawn, *session, *runs])

    def _settle(self, lane: Lane) -> None:
        if not lane.is_busy:
            for waiter in self._idle_waiters.pop(lane.session_id, []):
                if not waiter.done():
                    waiter.set_result(None)
            self._on_quiet(self)

    def steer_taken(self, lane: Lane, run_id: str, message_id: str, transcript: Transcript) -> int:
        """The active run took a steered prompt: its message stands here in the conversation."""
        entry = lane.get(run_id)
        facts = lane.steer_taken(run_id, self.context.clock.rfc3339())
        if entry is None or facts is None:
            return self.log.head
        parts = _attachment_parts(entry.private.attachments)
        message = transcript.user(entry.run.prompt, self.context.clock.seconds(), parts, message_id)
        lane.note(entry, message_id=message.id)
        return self.log.append([*facts, transcript.create(message, run_id)])

    def add_usage(self, entry: Entry, gained: UsageGained) -> int:
        session = self._sessions.get(entry.run.session_id)
        if session is None:
            return self.log.head
        totals = self._session_facts(
            session.id,
            entry.by,
            prompt_tokens=session.prompt_tokens + gained.usage.prompt_tokens,
            completion_tokens=session.completion_tokens + gained.usage.completion_tokens,
            cost=session.cost + gained.cost,
        )
        # The run's own figures too: a crash would lose them otherwise.
        return self.log.append([*totals, *self._lanes[session.id].progress(entry)])

    def set_todos(self, entry: Entry, todos: list[Todo]) -> int:
        return self.log.append(self._session_facts(entry.run.session_id, entry.by, todos=todos))

    def add_file(self, entry: Entry, written: FileWritten) -> int:
        session_id, now = entry.run.session_id, self.context.clock.seconds()
        version = self._file_versions.get((session_id, written.path), 0) + 1
        self._file_versions[(session_id, written.path)] = version
        id = self.context.new_id("file")
        body = FileVersion(id, session_id, written.path, written.content, version, now, now)
        change: Any = "created" if version == 1 else "updated"
        return self.log.append([Fact("file", change, body, entry.by, session_id, entry.run.id, key=id)])

    def abandon(self, task: asyncio.Task[Any]) -> None:
        """An executor that ignores its cancel: kept, so that it is not collected in the middle of what it does."""
        self._abandoned.add(task)
        task.add_done_callback(self._forget_abandoned)

    def _forget_abandoned(self, task: asyncio.Task[Any]) -> None:
        self._abandoned.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Its run is over and nobody awaits it: without this, asyncio would complain when it is collected.
            logger.warning("an abandoned executor failed", exc_info=error)

    # -- permissions --------------------------------------------------------------------------------------------------

    async def ask(self, lane: Lane, entry: Entry, ask: PermissionAsk, config: Config) -> Verdict:
        """Ask policy and people; returns when the decision is on disk. Anything but `granted` means no (I10)."""
        request = PermissionRequest(
            id=self.context.new_id("perm"),
            session_id=entry.run.session_id,
            tool_call_id=ask.tool_call_id,
            tool_name=ask.tool_name,
            description=ask.description,
            action=ask.action,
            params=ask.params,
            path=ask.path,
            root_session_id=entry.run.session_id,
            confined=ask.confined,
            run_id=entry.run.id,
        )
        asked = self.permissions.ask(request, ask.resource, _policy(config), entry.by)
        if asked.verdict is not None:
            await self.log.durable(self.log.append(asked.facts))
            return asked.verdict
        answer: asyncio.Future[tuple[Verdict, int]] = asyncio.get_running_loop().create_future()
        self._asking[request.id] = answer
        self.log.append([*lane.set_waiting(entry.run.id, True, entry.by), *asked.facts])
        self._review_attendance(config)
        try:
            verdict, head = await answer
        finally:
            self._asking.pop(request.id, None)
        await self.log.durable(head)
        return verdict

    async def resolve(self, permission_id: str, action: Action, by: By) -> bool:
        """Answer a request; whether this answer decided it. A loser waits too: what it lost to must be on disk."""
        settled = self.permissions.resolve(permission_id, action, by)
        if settled.resolved:
            self.log.append(self._settled_facts(settled, by))
            self._tell(permission_id, settled)
        await self.log.durable(self.log.head)
        return settled.resolved

    def _settled_facts(self, settled: Settled, by: By) -> list[Fact]:
        """The notification, and the run that goes on (unless it waits for another answer)."""
        entry = self._entry(settled.run_id)
        if entry is None:
            return settled.facts
        waiting = self.permissions.waiting(settled.run_id)
        return [*settled.facts, *self._lanes[entry.run.session_id].set_waiting(settled.run_id, waiting, by)]

    def _tell(self, permission_id: str, settled: Settled) -> None:
        answer = self._asking.get(permission_id)
        if answer is not None and not answer.done():
            answer.set_result((settled.verdict, self.log.head))

    def _withdrawals(self, run_ids: list[str], by: By) -> list[Fact]:
        facts: list[Fact] = []
        for run_id in run_ids:
            for settled in self.permissions.withdraw(run_id, by):
                facts += settled.facts
                # Whoever asked may not be cancelled with the run (a task of the executor's own): it must not wait on.
                self._tell(settled.facts[0].body.id, settled)
        return facts

    async def set_skip(self, skip: bool, by: By) -> None:
        self.permissions.skip = skip
        fact = Fact("config_changed", "updated", ConfigChanged(self.id), by, key="skip", private={"skip": skip})
        await self.log.durable(self.log.append([fact]))

    def config_changed(self, by: By) -> int:
        return self.log.append([Fact("config_changed", "updated", ConfigChanged(self.id), by)])

    def _review_attendance(self, config: Config | None = None) -> None:
        """While nobody holds the workspace, a question waits only so long."""
        alone = bool(self.permissions.pending) and not self.claims.held
        if not alone and self._unattended is not None:
            self._unattended.cancel()
            self._unattended = None
        if alone and self._unattended is None:
            seconds = self._unattended_seconds(config or self.context.config)
            self._unattended = asyncio.get_running_loop().call_later(seconds, self._expire_pending)

    def _unattended_seconds(self, config: Config) -> float:
        if self.context.graces.unattended is not None:
            return self.context.graces.unattended
        if config.permissions.unattended == "deny":
            return 0.0
        return parse_duration(config.permissions.unattended_timeout)

    def _expire_pending(self) -> None:
        self._unattended = None
        if self.claims.held or self.closed:
            return
        for permission_id in list(self.permissions.pending):
            settled = self.permissions.expire(permission_id)
            self.log.append(self._settled_facts(settled, SERVER))
            self._tell(permission_id, settled)

    # -- claims and presence ------------------------------------------------------------------------------------------

    def hold(self, client_id: str) -> None:
        """The client created the workspace: it stays open until its first stream, or until the grace is over."""
        self._watch(self.claims.create(client_id), self.context.graces.create)
        self._review_attendance()

    def attach(self, client_id: str) -> int:
        stream = self.claims.attach(client_id)
        self._review_attendance()
        return stream

    def detach(self, client_id: str, stream: int) -> None:
        session_id = self.claims.looking_at(client_id)
        self._watch(self.claims.detach(client_id, stream), self.context.graces.detach)
        self._announce(session_id)

    def release(self, client_id: str) -> None:
        """Its claims go at once; a stream of it that is still open ends when it next looks."""
        session_id = self.claims.looking_at(client_id)
        if self.claims.release(client_id):
            self._announce(session_id)
            self._review_attendance()
            self.log.wake()
            self._on_quiet(self)

    def look_at(self, client_id: str, session_id: str) -> None:
        if session_id and not self.has_session(session_id):
            raise NotFound("There is no such session in this workspace.")
        before = self.claims.look_at(client_id, session_id)
        if before != session_id:
            self._announce(before)
            self._announce(session_id)

    def _announce(self, session_id: str) -> None:
        if session_id and not self.closed:
            self.log.note("presence", Presence(session_id, self.claims.attached_clients(session_id)))

    def _watch(self, hold: Hold | None, seconds: float) -> None:
        # A stream that ends because the workspace closed leaves no timer behind (I19).
        if hold is not None and not self.closed:
            self._timers[hold] = asyncio.get_running_loop().call_later(seconds, self._expire, hold)

    def _expire(self, hold: Hold) -> None:
        del self._timers[hold]
        if self.claims.expire(hold):
            self._review_attendance()
            self._on_quiet(self)

    @property
    def is_busy(self) -> bool:
        return any(lane.is_busy for lane in self._lanes.values())

    @property
    def is_needed(self) -> bool:
        """Whether something keeps it open: a claim or a run (I17)."""
        return self.claims.held or self.is_busy or bool(self._deleting)

    # -- reading ------------------------------------------------------------------------------------------------------

    async def conversation(self, session_id: str) -> list[Message]:
        """The whole conversation as it is on disk, oldest first."""
        rows = await self.context.journal.read(view.messages, self.id, session_id)
        return [_decode_message(row.body) for row in rows or []]

    async def read(self, query: "Callable[..., Result]", *arguments: Any) -> "Result":
        """A query of the journal's view, answered when everything it saw is visible to streams too."""
        return await self.context.journal.read_published(self.log, query, *arguments)

    async def run(self, run_id: str) -> Run:
        row = await self.read(view.run, self.id, run_id)
        if row is None:
            raise NotFound("There is no such run in this workspace.")
        return _decode_run(row[0])

    def open_runs(self, session_id: str = "") -> list[Run]:
        """Runs that are not over, of one session or of all, as everyone was told."""
        runs = [_decode_run(body) for body in self.log.runs.values()]
        return [run for run in runs if not session_id or run.session_id == session_id]

    def queued(self, session_id: str) -> list[Run]:
        """What waits on a session and will run."""
        waiting = (run for run in self.open_runs(session_id) if run.state in ("accepted", "queued"))
        return [run for run in waiting if not run.cancel_requested]

    # -- restoring and closing ----------------------------------------------------------------------------------------

    def restore(self, run: view.OpenRun) -> Lane:
        """Put back a run that was not over when the server stopped."""
        lane = self._lane(run.run.session_id)
        lane.restore(Entry(run.run, run.private))
        return lane

    def interrupt(self, lane: Lane, entry: Entry, messages: list[tuple[str, Any, Message]], error: str) -> None:
        """End a run that was going on when the server stopped; its messages are made whole from what is on disk."""
        transcript = self._transcript(entry)
        on_disk = {message.id: message for _, _, message in messages}
        for run_id, place, message in messages:
            transcript.follow(message, place)
            owner = lane.get(run_id) or entry  # the message of a steered prompt stands here and belongs to that run
            if message.id not in owner.run.message_ids:
                lane.note(owner, message_id=message.id)
        transcript.added = len(messages)  # the session's count is brought up when a run ends: these were not in it yet
        outcome = lane.verdict(entry, "interrupted")
        self._finish(lane, entry, transcript, outcome, error, written=on_disk.get)

    def resume(self) -> None:
        """Go on with what a restart found queued."""
        for lane in list(self._lanes.values()):
            self._pump(lane)
            self._settle(lane)

    async def drain(self, seconds: float) -> None:
        """Start nothing more; let active runs end, then make them. Queued runs stay queued (B35)."""
        self.draining = True
        if self._driving:
            await asyncio.wait(set(self._driving), timeout=seconds)
        for runner in list(self._runners.values()):
            runner.stop("interrupted")
        if self._driving:
            await asyncio.wait(set(self._driving))
        with contextlib.suppress(JournalPoisoned):
            # On disk and published before its readers end: the last words of a run are the ones people wait for.
            await self.log.durable(self.log.head)

    def close(self) -> None:
        """Let go of everything. Called when nothing needs it, or when the server leaves."""
        self.closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._unattended is not None:
            self._unattended.cancel()
        self.context.on_close(self)
        self.context.journal.close_log(self.log)


def _digest(body: Prompt) -> str:
    """What makes two prompts with one run_id the same."""
    same = (body.session_id, body.prompt, body.attachments, body.on_busy)
    return hashlib.sha256(msgspec.json.encode(same)).hexdigest()


def _title(title: str) -> str:
    if len(title) > limits.TITLE_CHARACTERS:
        raise Invalid(f"title is longer than {limits.TITLE_CHARACTERS} characters.")
    return title


def _policy(config: Config) -> Policy:
    rules = config.permissions
    return Policy(tuple(rules.allow), tuple(rules.ask), tuple(rules.deny))


def _attachment_parts(attachments: list[Attachment]) -> list[Part]:
    return [Binary(BinaryData(path=a.file_path, mime_type=a.mime_type, data=a.content)) for a in attachments]
