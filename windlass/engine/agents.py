"""The sub-agents of a workspace: runs that other runs start, wait for, steer and cancel, and how a family ends.

A sub-agent is an ordinary session with a parent, and its runs are ordinary runs in lanes of their own: streams, queues,
permissions, costs and recovery need nothing new. What is new is decided here and in `core/families.py`: who may start
one, who is told how it ended, and that nothing of a run outlives it.
"""

import asyncio
from typing import TYPE_CHECKING, assert_never

import msgspec
import structlog

from windlass import limits
from windlass.config import Config, RoleConfig, parse_duration
from windlass.core.families import Families, Family, FamilyLimits, Member
from windlass.core.lane import Cover, Entry, Lane
from windlass.engine.sessions import checked_title
from windlass.errors import Conflict, Invalid, NotFound, WindlassError
from windlass.wire.delegation import (
    AgentsRequest,
    AgentStatus,
    CancelAgent,
    ListAgents,
    MessageAgent,
    OwnerReply,
    StartAgent,
    SteerAgent,
    WaitForAgents,
)
from windlass.wire.http import Prompt
from windlass.wire.permissions import By
from windlass.wire.run_events import UsageGained
from windlass.wire.runs import OnBusy, Outcome
from windlass.wire.sessions import Session

if TYPE_CHECKING:
    from windlass.engine.workspace import Workspace

logger = structlog.get_logger("windlass.agents")
DEFAULT_ROLE = "general"
_TOO_DEAR = (
    "The run was stopped: with its agents it cost {cost:.4g}, and may cost {limit:g}. Send another message to let it "
    "go on, or raise the limit that came with the prompt (max_cost, or `windlass run --max-cost`)."
)
_LEAVING = "The server stopped before the run was over. Send the prompt again to go on."


class Admission(msgspec.Struct, frozen=True):
    """A run that another run may start: what it joins when it is accepted."""

    family: Family
    parent_run: str
    depth: int


class Ended(msgspec.Struct, frozen=True):
    """How an agent's last run ended, for its parent."""

    outcome: Outcome
    text: str
    error: str


class Agents:
    """The agents of one workspace and their families."""

    def __init__(self, workspace: "Workspace") -> None:
        self.families = Families()
        self._workspace = workspace
        self._endings: dict[str, tuple[Family, Ended]] = {}  # by session, while its family lives
        self._told: dict[str, set[str]] = {}  # by parent run: sessions whose end it was told of
        self._started: dict[str, list[str]] = {}  # by parent run: sessions it set to work
        self._end_waiters: dict[str, list[asyncio.Future[None]]] = {}  # by run
        self._clocks: dict[str, asyncio.TimerHandle] = {}  # by root run

    # -- what an executor asks for ------------------------------------------------------------------------------------

    async def delegate(self, entry: Entry, config: Config, request: AgentsRequest) -> OwnerReply:
        """Do what a run wants of its agents. A refusal is a reply that says why."""
        try:
            sessions = await self._carry_out(entry, config, request)
        except WindlassError as error:
            return OwnerReply(error=error.message)
        whole = not isinstance(request, ListAgents)
        statuses = tuple([await self._status(session_id, whole) for session_id in sessions])
        # What the reply tells of must be on disk: after a crash the parent would believe in an agent that never was.
        await self._workspace.log.durable(self._workspace.log.head)
        if isinstance(request, WaitForAgents) and request.report:
            self._workspace.report(entry, _told(statuses))
        return OwnerReply(statuses)

    async def _carry_out(self, entry: Entry, config: Config, request: AgentsRequest) -> list[str]:
        """The sessions that the reply tells of."""
        match request:
            case StartAgent():
                return [self._start(entry, config, request)]
            case WaitForAgents():
                return await self._wait(entry, request)
            case ListAgents():
                children = self._workspace.sessions.children(entry.run.session_id)
                return [session.id for session in children[-limits.AGENTS_LISTED :]]
            case MessageAgent():
                return [await self._message(entry, request)]
            case SteerAgent():
                return [self._steer(entry, config, request)]
            case CancelAgent():
                return [await self._cancel(entry, request)]
            case _:
                assert_never(request)

    def _start(self, entry: Entry, config: Config, request: StartAgent) -> str:
        """A new session below the run's, with its first prompt accepted: one synchronous step, so that a cancel of the
        parent either prevents it or reaches it."""
        workspace = self._workspace
        name = request.role or DEFAULT_ROLE
        role = _role(config, name)
        _check_prompt(request.prompt)
        model, effort = self._model(entry, role, request.model, request.reasoning_effort)
        _check_model(config, model, effort)
        workspace.check_accepting()  # a refusal further on would leave a session that nobody started
        admission = self._admit(entry, config, new_agent=True)
        now = workspace.context.clock.seconds()
        first_line = request.prompt.strip().partition("\n")[0][: limits.FIRST_TITLE_CHARACTERS]
        session = Session(
            id=workspace.context.new_id("ses"),
            parent_session_id=entry.run.session_id,
            title=checked_title(f"{name}: {first_line}"),
            created_at=now,
            updated_at=now,
            role=name,
        )
        prompt = Prompt(session.id, request.prompt, reasoning_effort=effort, model=model, allow=entry.private.allow)
        workspace.log.append([workspace.sessions.create(session, entry.by)])
        workspace.accept_agent(prompt, entry.by, admission)
        self._note_start(entry.run.id, session.id)
        self._watch_time(admission.family)
        return session.id

    def _steer(self, entry: Entry, config: Config, request: SteerAgent) -> str:
        """Into its active run; an agent that is idle starts a run with it."""
        session = self._child(entry, request.id)
        _check_prompt(request.text)
        active = self._workspace.active_run(session.id)
        if active and self.families.of(active) is not self.families.of(entry.run.id):
            raise Conflict("People are using this agent themselves now. Wait until they are done, or start another.")
        admission = self._admit(entry, config, new_agent=not active)
        on_busy: OnBusy = "steer"
        model, effort = self._model(entry, config.role(session.role) or RoleConfig())
        prompt = Prompt(
            session.id,
            request.text,
            on_busy=on_busy,
            reasoning_effort=effort,
            model=model,
            allow=entry.private.allow,
        )
        self._workspace.accept_agent(prompt, entry.by, admission)
        self._note_start(entry.run.id, session.id)
        self._watch_time(admission.family)
        return session.id

    def _model(self, entry: Entry, role: RoleConfig, model: str = "", effort: str = "") -> tuple[str, str]:
        """What was asked for, else the role's, else the parent's."""
        chosen = model or role.model or entry.private.model
        return chosen, effort or role.reasoning_effort or entry.private.reasoning_effort

    def _admit(self, entry: Entry, config: Config, new_agent: bool) -> Admission:
        depth = len(self._workspace.sessions.lineage(entry.run.session_id))
        now = self._workspace.context.clock.monotonic()
        family = self.families.admit(entry.run.id, depth, _limits(config), now, new_agent)
        return Admission(family, entry.run.id, depth)

    def _note_start(self, run_id: str, session_id: str) -> None:
        started = self._started.setdefault(run_id, [])
        if session_id not in started:
            started.append(session_id)
        self._told.setdefault(run_id, set()).discard(session_id)

    async def _message(self, entry: Entry, request: MessageAgent) -> str:
        """Into its mailbox: an agent that works reads it at its next step, one that does not when it runs again."""
        session = self._child(entry, request.id)
        _check_prompt(request.text)
        sender = self._workspace.sessions.ending(entry.run.session_id)
        await self._workspace.post.deliver(
            session.id, entry.run.session_id, sender.role if sender else "", request.text
        )
        return session.id

    async def _cancel(self, entry: Entry, request: CancelAgent) -> str:
        session = self._child(entry, request.id)
        family = self.families.of(entry.run.id)
        members = [] if family is None else self.families.members(family)
        # Its family's runs and no others: people may have queued something of their own there.
        run_ids = [member.run_id for member in members if member.session_id == session.id]
        self._workspace.cancel_runs(run_ids, entry.by)
        await self._until_ended(run_ids)
        return session.id

    async def _wait(self, entry: Entry, request: WaitForAgents) -> list[str]:
        wanted = [self._child(entry, id).id for id in request.ids] or self._untold(entry.run.id)
        if not wanted:
            raise Invalid("There is no agent to wait for: you have been told of the end of each one you started.")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(request.timeout_seconds or limits.AGENT_WAIT_SECONDS, limits.AGENT_WAIT_SECONDS)
        in_time = True
        while True:
            busy = [id for id in wanted if self._workspace.is_session_busy(id)]
            done = [id for id in wanted if id not in busy]
            if not busy or (done and request.until == "any") or not in_time:
                break
            in_time = await self._workspace.until_any_idle(busy, max(0.0, deadline - loop.time()))
        self._told.setdefault(entry.run.id, set()).update(done)
        return done if request.until == "any" and done else wanted

    def _untold(self, run_id: str) -> list[str]:
        """Agents this run set to work and has not yet been told the end of."""
        told = self._told.get(run_id, set())
        sessions = self._workspace.sessions
        return [id for id in self._started.get(run_id, []) if id not in told and sessions.has(id)]

    def _child(self, entry: Entry, session_id: str) -> Session:
        session = self._workspace.sessions.ending(session_id)
        if session is None or session.parent_session_id != entry.run.session_id:
            # Also for a session of someone else: an agent must not learn of it, let alone steer it (A31).
            raise NotFound(f"You have no agent {session_id!r}. `list` shows those you have.")
        return session

    async def _status(self, session_id: str, whole: bool) -> AgentStatus:
        session = self._workspace.sessions.ending(session_id)
        if session is None:
            return AgentStatus(session_id, "", "deleted")
        state, text, error = self._workspace.session_state(session_id), "", ""
        if not state:
            _, ended = self._endings.get(session_id, (None, None))
            if ended is not None:
                state, text, error = ended.outcome, ended.text, ended.error
            else:
                state, text = "idle", await self._last_words(session_id) if whole else ""
        return AgentStatus(session_id, session.role, state, session.title, text, error, session.branch, session.cost)

    async def _last_words(self, session_id: str) -> str:
        """The answer of an agent that ended under an earlier run, or before a restart."""
        messages = await self._workspace.conversation(session_id)
        answers = [message.text for message in messages if message.role == "assistant"]
        return _shortened(answers[-1]) if answers else ""

    # -- what a family spends -----------------------------------------------------------------------------------------

    def spend(self, entry: Entry, gained: UsageGained) -> None:
        """Count tokens of a family's run; when they are used up, its agents end, and the root can go on alone."""
        tokens = gained.usage.prompt_tokens + gained.usage.completion_tokens
        family = self.families.spend(entry.run.id, tokens, gained.cost)
        if family is not None:
            self._stop_overspent(family)
            self._stop_too_dear(family, 0.0 if family.root != entry.run.id else gained.cost)

    def _stop_too_dear(self, family: Family, last: float) -> None:
        """End the root when it and its agents together cost more than its prompt lets it. They end with it.

        What the root spent `last` is left out: an answer that is whole is not thrown away for its own last tokens, and
        the root's executor looks at what the root alone costs.
        """
        lane = self._workspace.lane_of(family.root)
        root = None if lane is None else lane.get(family.root)
        if root is None or not root.private.max_cost or self._workspace.log.closed:
            return
        cost = root.run.cost + family.agents_cost
        if cost - last > root.private.max_cost:
            reason = _TOO_DEAR.format(cost=cost, limit=root.private.max_cost)
            self._workspace.stop_run(root.run.session_id, root.run.id, "failed", reason)

    def _watch_time(self, family: Family) -> None:
        if family.root not in self._clocks:
            loop = asyncio.get_running_loop()
            self._clocks[family.root] = loop.call_later(family.limits.seconds, self._time_is_up, family)

    def _time_is_up(self, family: Family) -> None:
        """A timer may fire a little before its time by the loop's own clock: then it is set again."""
        now = self._workspace.context.clock.monotonic()
        if self.families.overspent(family, now):
            self._stop_overspent(family)
        else:
            rest = family.began_at + family.limits.seconds - now + 0.01
            self._clocks[family.root] = asyncio.get_running_loop().call_later(rest, self._time_is_up, family)

    def _stop_overspent(self, family: Family) -> None:
        reason = self.families.overspent(family, self._workspace.context.clock.monotonic())
        if reason and not self._workspace.log.closed:
            for member in self.families.members(family):
                self._workspace.stop_run(member.session_id, member.run_id, "failed", reason)

    # -- how a family ends --------------------------------------------------------------------------------------------

    def cover_below(self, run_ids: list[str], by: By) -> list[tuple[Lane, Cover]]:
        """Flag everything below runs that are being cancelled, the deepest first. The caller commits and stops it."""
        below: list[Member] = []
        for run_id in run_ids:
            below += self.families.descendants(run_id)
        below.sort(key=lambda member: -member.depth)
        covers = []
        for member in below:
            lane = self._workspace.lane_of(member.run_id)
            if lane is not None:
                covers.append((lane, lane.cancel_run(member.run_id, by)))
        return covers

    async def end_below(self, entry: Entry) -> None:
        """Return when no agent of this run is at work, so that its own end is the last. Everything is stopped at once,
        at every level; the bound is only there in case one of them cannot be."""
        members = self.families.descendants(entry.run.id)
        if not self._workspace.draining:
            self._workspace.cancel_below(entry)
        else:
            # The server leaves: what runs is stopped as everything is, what waits is found by the next start.
            members = [member for member in members if self._workspace.runner_of(member.run_id) is not None]
            for member in members:
                self._workspace.stop_run(member.session_id, member.run_id, "interrupted", _LEAVING)
        await self._until_ended([member.run_id for member in members])

    async def _until_ended(self, run_ids: list[str]) -> None:
        waiters = []
        for run_id in run_ids:
            if self._workspace.lane_of(run_id) is not None:
                waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._end_waiters.setdefault(run_id, []).append(waiter)
                waiters.append(waiter)
        if waiters and not self._workspace.log.closed:
            await asyncio.wait(waiters, timeout=limits.FAMILY_END_SECONDS)

    def ended(self, session_id: str, run_id: str, ended: Ended) -> None:
        """A run is over. Its parent can be told; a root takes all that was kept for its family with it."""
        family = self.families.of(run_id)
        kept = self._endings.get(session_id)
        if family is None and kept is not None:
            self._endings[session_id] = (kept[0], ended)  # people went on with it: that is its last word now
        if family is not None and family.root != run_id and self.families.of(family.root) is family:
            text = _shortened(ended.text)
            self._endings[session_id] = (family, msgspec.structs.replace(ended, text=text))
        self.families.ended(run_id)
        self._told.pop(run_id, None)
        self._started.pop(run_id, None)
        for waiter in self._end_waiters.pop(run_id, []):
            if not waiter.done():
                waiter.set_result(None)
        if family is not None and family.root == run_id:
            self._endings = {id: kept for id, kept in self._endings.items() if kept[0] is not family}
            clock = self._clocks.pop(run_id, None)
            if clock is not None:
                clock.cancel()

    def give_up(self) -> None:
        """The journal is poisoned: no run ends any more."""
        waiters = [waiter for some in self._end_waiters.values() for waiter in some]
        self._end_waiters.clear()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def close(self) -> None:
        for clock in self._clocks.values():
            clock.cancel()
        self._clocks.clear()


def _told(agents: tuple[AgentStatus, ...]) -> str:
    lines = ["(You ended your turn while agents of yours were at work. This is what came of them since.)"]
    for agent in agents:
        branch = f" Its work is on the git branch {agent.branch}." if agent.branch else ""
        lines.append(f"{agent.id} ({agent.role}): {agent.state}.{branch}\n{agent.error or agent.text}".rstrip())
    return "\n\n".join(lines)


def _role(config: Config, name: str) -> RoleConfig:
    role = config.role(name)
    if role is None:
        raise NotFound(f"There is no role {name!r}. There are: {', '.join(sorted(config.all_roles))}.")
    return role


def _limits(config: Config) -> FamilyLimits:
    agents = config.agents
    seconds = parse_duration(agents.max_time)
    return FamilyLimits(agents.max_depth, agents.max_running, agents.max_total, agents.max_tokens, seconds)


def _check_prompt(text: str) -> None:
    if not text.strip():
        raise Invalid("The text is empty. Say what the agent is to do.")
    if not _is_text(text):
        raise Invalid("The text holds half a character. Write it again.")
    if len(text) > limits.AGENT_PROMPT_CHARACTERS:
        raise Invalid(f"The text is over {limits.AGENT_PROMPT_CHARACTERS:,} characters. Put the material into a file.")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_model(config: Config, model: str, effort: str) -> None:
    if len(model) > limits.ID_CHARACTERS or len(effort) > limits.ID_CHARACTERS or not _is_text(model + effort):
        raise Invalid("The name of the model or of the effort is too long.")
    provider, _, name = model.partition("/")
    if model and not name:
        raise Invalid(f"Write the model as provider/model, not {model!r}.")
    if model and provider not in config.providers:
        known = ", ".join(sorted(config.providers)) or "none"
        raise Invalid(f"There is no provider {provider!r} for the model {model!r}. There are: {known}.")


def _shortened(text: str) -> str:
    limit = limits.AGENT_RESULT_CHARACTERS
    return text if len(text) <= limit else text[: limit - 40] + "\n[... the rest is in its session ...]"
