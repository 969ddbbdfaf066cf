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
from windlass.core.lane import Cover, Ending, Entry, Lane, Request
from windlass.core.permissions import Permissions
from windlass.engine.agents import Admission, Agents, Ended
from windlass.engine.attendance import Attendance
from windlass.engine.context import Context
from windlass.engine.desk import SERVER, Desk
from windlass.engine.drafts import is_whole_summary
from windlass.engine.errands import Errands
from windlass.engine.file_versions import FileVersions
from windlass.engine.gains import Gains
from windlass.engine.post import Post, Report
from windlass.engine.questions_desk import QuestionsDesk
from windlass.engine.reservations import Reservations
from windlass.engine.runner import Runner
from windlass.engine.sessions import Sessions, checked_title, suggested_title
from windlass.engine.terms import check_terms
from windlass.engine.transcript import Transcript, attachment_parts
from windlass.engine.waiting import Waiting
from windlass.errors import Conflict, JournalPoisoned, NotFound, Unavailable, WindlassError
from windlass.journal import view
from windlass.journal.log import Log
from windlass.wire.events import ConfigChanged, Fact
from windlass.wire.http import Accepted, Prompt
from windlass.wire.mcp import McpState
from windlass.wire.messages import Message
from windlass.wire.permissions import By
from windlass.wire.runs import Outcome, Purpose, Run, RunState
from windlass.wire.sessions import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

logger = structlog.get_logger("windlass.workspace")
_decode_message = msgspec.json.Decoder(Message).decode
_decode_run = msgspec.json.Decoder(Run).decode
Result = TypeVar("Result")
_STOP_SECONDS = limits.STOP_ASK_SECONDS + limits.STOP_ABORT_SECONDS + limits.CLEAR_UP_SECONDS + 1


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
        self.permissions = Permissions(skip=opening.workspace.skip)
        self.attendance = Attendance(log, context.graces, self._review, self._quiet)
        self.claims = self.attendance.claims
        self.waiting = Waiting(context, log, self.lane_of, lambda: self.claims.held)
        self.desk = Desk(context, log, self.permissions, self.waiting, self._above)
        self.questions = QuestionsDesk(context, log, self.waiting, self._above)
        self.closed = False
        self.draining = False
        self._on_quiet = on_quiet
        self.sessions = Sessions(opening.sessions, self.is_session_busy, self.claims.attached_clients)
        self.agents = Agents(self)
        self.post = Post(self, context.mailroom)
        self.gains = Gains(context, log, self.sessions, self.agents.spend)
        self.file_versions = FileVersions(context, log, opening.files, opening.file_bytes)
        self.errands = Errands(self)
        self.mcp = context.mcp(self.path, self._mcp_changed)
        self._lanes: dict[str, Lane] = {}
        self._next_numbers = opening.next_numbers
        self._next_order = opening.next_order
        self._runners: dict[str, Runner] = {}  # by session
        self._driving: set[asyncio.Task[Any]] = set()
        self._held: set[str] = set()  # sessions on which nothing starts, because something else is done to them
        self._abandoned: set[asyncio.Task[Any]] = set()
        self._reservations = Reservations()
        self._idle_waiters: dict[str, list[asyncio.Future[None]]] = {}  # by session
        for grant in opening.grants:
            self.permissions.remember(*grant)

    # -- sessions -----------------------------------------------------------------------------------------------------

    async def create_session(self, title: str, by: By) -> Session:
        self.context.journal.check_room()
        now = self.context.clock.seconds()
        session = Session(id=self.context.new_id("ses"), title=checked_title(title), created_at=now, updated_at=now)
        head = self.log.append([self.sessions.create(session, by)])
        await self.log.durable(head)
        return session

    async def rename_session(self, session_id: str, title: str, by: By) -> None:
        self.sessions.get(session_id)
        now = self.context.clock.seconds()
        head = self.log.append(self.sessions.change(session_id, by, title=checked_title(title), updated_at=now))
        await self.log.durable(head)

    async def set_plan(self, session_id: str, plan: bool, by: By) -> None:
        """Let the session's runs, and those of its agents, only read from now on; or let later ones do everything."""
        self.sessions.get(session_id)
        now = self.context.clock.seconds()
        await self.log.durable(self.log.append(self.sessions.change(session_id, by, plan=plan, updated_at=now)))

    async def delete_session(self, session_id: str, by: By) -> None:
        """Cancel its runs, wait for their terminals, remove its content and its agents'. New prompts are refused at
        once."""
        self.context.journal.check()
        self._check_staying()
        self.sessions.get(session_id)
        doomed = [session.id for session in self.sessions.family(session_id) if self.sessions.has(session.id)]
        # They stay in memory until their end is decided: their runs still end, and a crash before must find them whole.
        self.sessions.leaving.update(doomed)
        for id in doomed:
            self.cancel_now(id, by)
        # A caller that goes away must not leave a session that is gone from memory and not from the disk.
        await self.see_through(self._delete(doomed, by), f"delete {session_id}")

    async def see_through(self, work: "Coroutine[Any, Any, Result]", name: str) -> "Result":
        """Do something to its end, whether or not the caller stays to hear of it."""
        task = asyncio.create_task(work, name=name)
        self._driving.add(task)
        task.add_done_callback(self._seen_through)
        return await asyncio.shield(task)

    def _seen_through(self, task: asyncio.Task[Any]) -> None:
        self._driving.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may be gone, and then nobody else looks

    async def _delete(self, session_ids: list[str], by: By) -> None:
        try:
            for session_id in session_ids:
                await self._until_idle(session_id)
            head = self.log.append([self._forget_session(session_id, by) for session_id in session_ids])
            await self.log.durable(head)
            for session_id in session_ids:
                self.context.let_go(session_id)
                await self.post.forget(session_id)
        finally:
            self.sessions.leaving.difference_update(session_ids)
            self._quiet()

    def _forget_session(self, session_id: str, by: By) -> Fact:
        self._lanes.pop(session_id, None)
        self.permissions.forget_session(session_id)
        self.file_versions.forget_session(session_id)
        return self.sessions.delete(session_id, by, self.context.clock.seconds())

    async def _until_idle(self, session_id: str) -> None:
        while self.is_session_busy(session_id) or session_id in self._held:
            self.context.journal.check()
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle_waiters.setdefault(session_id, []).append(waiter)
            await waiter

    def hold(self, session_ids: list[str]) -> None:
        """Let nothing start on these sessions until `release`: what is accepted meanwhile waits. Raises Conflict for
        one that is busy; looking and holding are one step, so nothing can start in between."""
        for session_id in session_ids:
            whose = "This session" if session_id == session_ids[0] else "An agent of this session"
            if session_id in self._held:
                raise Conflict(f"{whose} is being undone already. Try again when that is done.")
            if self.is_session_busy(session_id):
                raise Conflict(f"{whose} is busy. Wait for its run to end, or cancel it; then try again.")
        self._held.update(session_ids)

    def release(self, session_ids: list[str]) -> None:
        self._held.difference_update(session_ids)
        for session_id in session_ids:
            if (lane := self._lanes.get(session_id)) is not None and not self.log.closed:
                self._pump(lane)
            self._settle(session_id)

    # -- accepting ----------------------------------------------------------------------------------------------------

    async def prompt(self, body: Prompt, by: By) -> Accepted:
        """Accept a prompt; returns when it is on disk (I1). The same `run_id` and body is the same run (I8)."""
        check_terms(body)
        digest = _digest(body)
        try:
            async with self._reservations.hold(body.run_id):
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
        await self.log.durable(head)
        return accepted

    def check_accepting(self) -> None:
        """Raise what `accept_agent` would raise, before anything else is done for it."""
        self.context.journal.check_room()
        self._check_staying()

    def accept_agent(self, body: Prompt, by: By, admission: Admission) -> None:
        """Accept the prompt of a run for one of its agents. The caller waits until it is on disk."""
        self._accept(body, "", by, admission)

    def accept_errand(self, session_id: str, text: str, purpose: Purpose, by: By, term_width: int = 0) -> str:
        """Accept something a person asks of a session beside a prompt; the id of its run. The caller waits until it is
        on disk."""
        body = Prompt(session_id, text)
        return self._accept(body, "", by, purpose=purpose, term_width=term_width)[0].run_id

    def _accept(
        self,
        body: Prompt,
        digest: str,
        by: By,
        admission: Admission | None = None,
        purpose: Purpose = "prompt",
        term_width: int = 0,
    ) -> tuple[Accepted, int]:
        self.context.journal.check_room()
        self._check_staying()
        self.sessions.get(body.session_id)
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
            parent_run="" if admission is None else admission.parent_run,
            purpose=purpose,
            term_width=term_width,
            max_cost=body.max_cost,
            allow=body.allow,
        )
        acceptance = lane.accept(request, by, self.context.clock.rfc3339())
        self._next_order += 1
        if admission is not None:
            # In its family before anything else can happen: a cancel of its parent reaches it from here on.
            family, parent, depth = admission.family, admission.parent_run, admission.depth
            self.agents.families.join(family, request.run_id, lane.session_id, parent, depth)
        below = self.agents.cover_below(acceptance.stopped, by)
        withdrawn = self._withdraw(acceptance.stopped, by)
        after = f"{self.log.epoch}.{self.log.head}"
        head = self.log.append([*self._covered_facts(below, by), *acceptance.facts, *withdrawn])
        self._stop_covered(lane)
        self._stop_below(below)
        if acceptance.run.disposition == "steered":
            self._runners[lane.session_id].steer.wake()
        self._pump(lane)
        return self._accepted(acceptance.run, after), head

    def _accepted(self, run: Run, after: str = "") -> Accepted:
        lane = self._lanes.get(run.session_id)
        return Accepted(
            run_id=run.id,
            session_id=run.session_id,
            state=run.state,
            disposition=run.disposition,
            position=0 if lane is None else lane.position(run.id),
            into=run.into,
            after=after,
        )

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

    def _check_staying(self) -> None:
        if self.draining:
            raise Unavailable("This server is leaving. Start it again, then repeat the request.")
        if self.closed:
            raise Conflict("This workspace is closing. Open it again and repeat the request.")

    def is_session_busy(self, session_id: str) -> bool:
        lane = self._lanes.get(session_id)
        return lane is not None and lane.is_busy

    def lane_of(self, run_id: str) -> Lane | None:
        entry = self._entry(run_id)
        return None if entry is None else self._lanes[entry.run.session_id]

    def _above(self, session_id: str) -> list[str]:
        return [session.id for session in self.sessions.lineage(session_id)[:-1]]

    def runner_of(self, run_id: str) -> Runner | None:
        """Who drives this run, if it is going on."""
        entry = self._entry(run_id) if run_id else None
        runner = None if entry is None else self._runners.get(entry.run.session_id)
        return runner if runner is not None and runner.entry is entry else None

    def active_run(self, session_id: str) -> str:
        """The run that is going on there, or the first that waits; "" for an idle session."""
        lane = self._lanes.get(session_id)
        if lane is None or not lane.is_busy:
            return ""
        return (lane.active or lane.entries[0]).run.id

    def session_state(self, session_id: str) -> str:
        """What a busy session's first run is doing; "" for an idle one."""
        lane = self._lanes.get(session_id)
        first = None if lane is None else next(iter(lane.entries), None)
        return "" if first is None else first.run.state

    async def until_any_idle(self, session_ids: list[str], seconds: float) -> bool:
        """Return when one of these busy sessions is idle; False when none was after this long."""
        waiters = {id: asyncio.get_running_loop().create_future() for id in session_ids}
        for id, waiter in waiters.items():
            self._idle_waiters.setdefault(id, []).append(waiter)
        try:
            done, _ = await asyncio.wait(waiters.values(), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return bool(done)
        finally:
            for id, waiter in waiters.items():
                if waiter in self._idle_waiters.get(id, []):
                    self._idle_waiters[id].remove(waiter)
                if waiter.done():
                    waiter.exception()  # a poisoned journal: the run that waits hears of it elsewhere

    # -- cancelling ---------------------------------------------------------------------------------------------------

    async def cancel(self, session_id: str, by: By) -> list[str]:
        """Cancel everything accepted so far on this session; the ids it covers that are not over yet."""
        run_ids = self.cancel_now(session_id, by)
        await self.log.durable(self.log.head)
        return run_ids

    def cancel_now(self, session_id: str, by: By) -> list[str]:
        """The decision of `cancel` alone; the caller waits until it is on disk."""
        lane = self._lanes.get(session_id)
        return [] if lane is None else self._cancel(lane, by)

    def _cancel(self, lane: Lane, by: By) -> list[str]:
        return self._cover(lane, lane.cancel(by), by)

    async def cancel_run(self, run_id: str, by: By) -> RunState:
        """Cancel one run; its state now. Raises NotFound for one that never was."""
        while (entry := self._entry(run_id)) is None:
            run = await self._ended_run(run_id)
            if run.is_terminal or self.closed:
                return run.state
            # It was accepted while we looked on the disk: look again, or it would go on after this answer.
        lane = self._lanes[entry.run.session_id]
        self._cover(lane, lane.cancel_run(run_id, by), by)
        # Its state as decided: it may end while we wait, and that end may not be on disk yet (I12).
        state = entry.run.state
        await self.log.durable(self.log.head)
        return state

    async def remove_run(self, run_id: str, by: By) -> RunState:
        """Take a run out of the queue; one that is running is refused with Conflict."""
        while (entry := self._entry(run_id)) is None:
            run = await self._ended_run(run_id)
            if run.is_terminal or self.closed:
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
        """Commit a cancel, of the runs and of every agent below them, and stop all of it at once."""
        below = self.agents.cover_below(cover.run_ids, by)
        self.log.append(self._covered_facts([*below, (lane, cover)], by))
        self._stop_covered(lane)
        self._stop_below(below)
        self._pump(lane)
        self._settle(lane.session_id)
        return cover.run_ids

    def cancel_below(self, entry: Entry) -> None:
        """A run is over, or is ending: its agents go with it."""
        below = self.agents.cover_below([entry.run.id], entry.by)
        if not self.log.closed:
            self.log.append(self._covered_facts(below, entry.by))
        self._stop_below(below)

    def _covered_facts(self, covers: "Sequence[tuple[Lane, Cover]]", by: By) -> list[Fact]:
        facts: list[Fact] = []
        for _, cover in covers:
            facts += [*cover.facts, *self._withdraw(cover.run_ids, by)]
        return facts

    def _withdraw(self, run_ids: list[str], by: By) -> list[Fact]:
        """Whatever these runs asked people goes, everywhere (I11)."""
        return [*self.desk.withdraw(run_ids, by), *self.questions.withdraw(run_ids, by)]

    def _stop_below(self, below: "Sequence[tuple[Lane, Cover]]") -> None:
        for lane, _ in below:
            self._stop_covered(lane)
        for lane, _ in below:
            self._pump(lane)
            self._settle(lane.session_id)

    def stop_run(self, session_id: str, run_id: str, outcome: Outcome, reason: str) -> None:
        """End a run that may not go on. One that has not started is taken out of its queue."""
        runner, lane = self.runner_of(run_id), self._lanes.get(session_id)
        if runner is not None:
            runner.stop(outcome, reason)
        elif lane is not None and lane.get(run_id) is not None:
            self._cover(lane, lane.cancel_run(run_id, SERVER), SERVER)

    def cancel_runs(self, run_ids: list[str], by: By) -> None:
        """Cancel these and nothing else; the caller waits until it is on disk."""
        for run_id in run_ids:
            lane = self.lane_of(run_id)
            if lane is not None:
                self._cover(lane, lane.cancel_run(run_id, by), by)

    def _stop_covered(self, lane: Lane) -> None:
        runner = self._runners.get(lane.session_id)
        if runner is None:
            return
        runner.steer.wake()  # what it was handed and has not taken may be among what was cancelled
        if lane.covered(runner.entry):
            runner.stop()

    # -- starting and ending ------------------------------------------------------------------------------------------

    def _pump(self, lane: Lane) -> None:
        """Start what can start; end unstarted what a cancel covers."""
        while lane.session_id not in self._held and (entry := lane.head()) is not None:
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
        session = self.sessions.change(lane.session_id, entry.by, updated_at=now.seconds())
        head = self.log.append([*session, *facts, user_message])
        runner = Runner(self, lane, entry, transcript)
        self._runners[lane.session_id] = runner
        task = asyncio.create_task(runner.drive(head), name=f"drive {entry.run.id}")
        self._driving.add(task)
        task.add_done_callback(self._driving.discard)

    def _user_message(self, lane: Lane, entry: Entry, transcript: Transcript) -> Fact:
        parts = attachment_parts(entry.private.attachments)
        message = transcript.user(entry.run.prompt, self.context.clock.seconds(), parts)
        lane.note(entry, message_id=message.id)
        return transcript.create(message)

    def _transcript(self, entry: Entry) -> Transcript:
        return Transcript(entry.run.id, entry.run.session_id, entry.number, entry.by, self.context.new_id)

    def finish_run(
        self, lane: Lane, entry: Entry, transcript: Transcript, outcome: Outcome, error: str, kept: Any = None
    ) -> None:
        """The runner's last call: write the ending, and go on with the next run."""
        if self._runners.get(lane.session_id) is not None:
            del self._runners[lane.session_id]
        self._finish(lane, entry, transcript, outcome, error, kept=kept)
        self._pump(lane)
        self._settle(lane.session_id)

    def _finish(
        self,
        lane: Lane,
        entry: Entry,
        transcript: Transcript,
        outcome: Outcome,
        error: str,
        first: "Sequence[Fact]" = (),
        written: "Callable[[str], Message | None] | None" = None,
        kept: Any = None,
    ) -> None:
        now = self.context.clock
        messages = transcript.end(outcome, error, written or self.log.staged_message, now.seconds())
        for fact in messages:
            if fact.change == "created":
                lane.note(entry, message_id=fact.key)
        withdrawn = self._withdraw([entry.run.id], SERVER)
        ending = Ending(outcome, transcript.last_assistant_id, transcript.last_text, error, kept)
        runs = lane.finish(entry, ending, now.rfc3339())
        changes = self._session_at_end(entry, transcript, messages)
        session = self.sessions.change(lane.session_id, entry.by, updated_at=now.seconds(), **changes)
        # One append is one commit: either all of an ending is there after a crash, or none of it.
        self.log.append([*first, *messages, *withdrawn, *session, *runs])
        ended = Ended(outcome, transcript.last_text, error)
        for fact in runs:
            if fact.kind == "run_complete":
                self.agents.ended(lane.session_id, fact.run, ended)
                self.errands.ended(fact.run)

    def _session_at_end(self, entry: Entry, transcript: Transcript, messages: list[Fact]) -> dict[str, Any]:
        """What its session is told of a run that ends, beside that it did."""
        known = self.sessions.ending(entry.run.session_id)
        if known is None:
            return {}
        changes: dict[str, Any] = {"message_count": known.message_count + transcript.added}
        if entry.run.started_at and entry.private.purpose == "prompt" and not known.title:
            # Whoever executed it found no title; people still have to tell their sessions apart.
            changes["title"] = suggested_title(entry.run.prompt)[: limits.FIRST_TITLE_CHARACTERS]
        for fact in messages:
            if is_whole_summary(fact.body):
                changes["summary_message_id"] = fact.key
        return changes

    def _settle(self, session_id: str) -> None:
        if not self.is_session_busy(session_id) and session_id not in self._held:
            for waiter in self._idle_waiters.pop(session_id, []):
                if not waiter.done():
                    waiter.set_result(None)
            self._quiet()

    def give_up(self) -> None:
        """The journal is poisoned: no run ends any more, so whoever waits for one to end is told."""
        self.agents.give_up()
        self.errands.give_up()
        error = self.context.journal.poisoned
        waiters = [waiter for some in self._idle_waiters.values() for waiter in some]
        self._idle_waiters.clear()
        for waiter in waiters:
            if error is not None and not waiter.done():
                waiter.set_exception(error)

    def report(self, entry: Entry, text: str) -> None:
        """Hand a text to a run at its next step boundary; gone with the run if it ends before."""
        runner = self._runners.get(entry.run.session_id)
        if runner is not None and runner.entry is entry:
            runner.mail.put(Report(self.context.new_id("news"), text))
            runner.steer.wake()

    def mail_arrived(self, session_id: str) -> None:
        runner = self._runners.get(session_id)
        if runner is not None:
            runner.look_for_mail()

    def abandon(self, task: asyncio.Task[Any]) -> None:
        """An executor that ignores its cancel: kept, so that it is not collected in the middle of what it does."""
        self._abandoned.add(task)
        task.add_done_callback(self._forget_abandoned)

    def _forget_abandoned(self, task: asyncio.Task[Any]) -> None:
        self._abandoned.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Its run is over and nobody awaits it: without this, asyncio would complain when it is collected.
            logger.warning("an abandoned executor failed", exc_info=error)

    # -- what keeps it open -------------------------------------------------------------------------------------------

    def look_at(self, client_id: str, session_id: str) -> None:
        """This client shows that session now ("" for none)."""
        if session_id:
            self.sessions.get(session_id)
        self.attendance.look_at(client_id, session_id)

    async def set_skip(self, skip: bool, by: By) -> None:
        """Ask nobody from now on, or ask again; a deny rule is never skipped."""
        self.permissions.skip = skip
        fact = Fact("config_changed", "updated", ConfigChanged(self.id), by, key="skip", private={"skip": skip})
        await self.log.durable(self.log.append([fact]))

    def config_changed(self, by: By) -> int:
        return self.log.append([Fact("config_changed", "updated", ConfigChanged(self.id), by)])

    def _mcp_changed(self, state: McpState) -> None:
        if not self.closed and not self.log.closed:
            with contextlib.suppress(JournalPoisoned):
                self.log.append([Fact("mcp_event", "updated", state, SERVER, key=state.name)])

    def _review(self) -> None:
        self.waiting.review()

    def _quiet(self) -> None:
        self._on_quiet(self)

    @property
    def is_busy(self) -> bool:
        return any(lane.is_busy for lane in self._lanes.values())

    @property
    def is_needed(self) -> bool:
        """Whether something keeps it open: a claim or a run (I17)."""
        return self.claims.held or self.is_busy or bool(self.sessions.leaving or self._held)

    # -- reading ------------------------------------------------------------------------------------------------------

    async def conversation(self, session_id: str) -> list[Message]:
        """The conversation as it is on disk, oldest first: all of it, or its newest summary and what came after."""
        session = self.sessions.ending(session_id)
        first = "" if session is None else session.summary_message_id
        bodies = await self.context.journal.read(view.conversation, self.id, session_id, first)
        if len(bodies) <= limits.DECODED_AT_ONCE:
            return _decode_messages(bodies)
        # A session of years takes longer than a stream may stand still.
        messages: list[Message] = await self.context.in_thread(_decode_messages, bodies)
        return messages

    async def read(self, query: "Callable[..., Result]", *arguments: Any) -> "Result":
        """A query of the journal's view, answered when everything it saw is visible to streams too."""
        return await self.context.journal.read_published(self.log, query, *arguments)

    async def run(self, run_id: str) -> Run:
        row = await self.read(view.run, self.id, run_id)
        if row is None:
            raise NotFound("There is no such run in this workspace.")
        return _decode_run(row[0])

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
            self._settle(lane.session_id)

    async def drain(self, seconds: float) -> None:
        """Start nothing more; let active runs end, then make them. Queued runs stay queued (B35)."""
        self.draining = True
        if self._driving:
            await asyncio.wait(set(self._driving), timeout=seconds)
        self.interrupt_runs()
        if self._driving:
            await asyncio.wait(set(self._driving), timeout=_STOP_SECONDS)
        with contextlib.suppress(JournalPoisoned):
            # On disk and published before its readers end: the last words of a run are the ones people wait for.
            await self.log.durable(self.log.head)

    def interrupt_runs(self) -> None:
        for runner in list(self._runners.values()):
            runner.stop("interrupted")

    def close(self) -> None:
        """Let go of everything. Called when nothing needs it, or when the server leaves."""
        self.closed = True
        self.attendance.close()
        self.waiting.close()
        self.agents.close()
        self.errands.close()
        self.mcp.close()
        for session_id in self.sessions.ids:
            self.context.let_go(session_id)
        self.context.journal.close_log(self.log)


def _digest(body: Prompt) -> str:
    """What makes two prompts with one run_id the same."""
    same: tuple[Any, ...] = (body.session_id, body.prompt, body.attachments, body.on_busy)
    if body.max_cost or body.allow:  # only then: the digests of prompts without them are on disk as they always were
        same += (body.max_cost, body.allow)
    return hashlib.sha256(msgspec.json.encode(same)).hexdigest()


def _decode_messages(bodies: "Sequence[bytes]") -> list[Message]:
    return [_decode_message(body) for body in bodies]
