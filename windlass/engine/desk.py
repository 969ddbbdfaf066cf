"""Where tools ask and people answer: the permissions of a workspace, with those who wait for them.

`core/permissions.py` decides; here the facts are committed, the asker is woken, and a question that nobody is there to
answer runs out of time. Nothing ever turns into an allow.
"""

import asyncio
from collections.abc import Callable

from windlass.config import Config, parse_duration
from windlass.core.lane import Entry, Lane
from windlass.core.permissions import Permissions, Settled
from windlass.core.policy import Policy
from windlass.engine.context import Context
from windlass.journal.log import Log
from windlass.wire.events import Fact
from windlass.wire.execution import PermissionAsk, Verdict
from windlass.wire.permissions import Action, By, PermissionRequest

SERVER = By("server")


class Desk:
    """`lane_of` finds the lane of a run that is not over; `is_held` tells whether any client holds the workspace.

    `above` are the sessions above a sub-agent's, the root first.
    """

    def __init__(
        self,
        context: Context,
        log: Log,
        permissions: Permissions,
        lane_of: Callable[[str], Lane | None],
        is_held: Callable[[], bool],
        above: Callable[[str], list[str]],
    ) -> None:
        self.permissions = permissions
        self._context = context
        self._log = log
        self._lane_of = lane_of
        self._is_held = is_held
        self._above = above
        self._asking: dict[str, asyncio.Future[tuple[Verdict, int]]] = {}  # by permission id
        self._unattended: asyncio.TimerHandle | None = None

    async def ask(self, lane: Lane, entry: Entry, ask: PermissionAsk, config: Config) -> Verdict:
        """Ask policy and people; returns when the decision is on disk. Anything but `granted` means no (I10)."""
        above = self._above(entry.run.session_id)
        request = self._request(entry, ask, next(iter(above), entry.run.session_id))
        asked = self.permissions.ask(request, ask.resource, _policy(config), entry.by, above)
        if asked.verdict is not None:
            await self._log.durable(self._log.append(asked.facts))
            return asked.verdict
        answer: asyncio.Future[tuple[Verdict, int]] = asyncio.get_running_loop().create_future()
        self._asking[request.id] = answer
        self._log.append([*lane.set_waiting(entry.run.id, True, entry.by), *asked.facts])
        self.review(config)
        try:
            verdict, head = await answer
        except asyncio.CancelledError:
            self._take_back(request.id)
            raise
        finally:
            self._asking.pop(request.id, None)
        await self._log.durable(head)
        return verdict

    def _take_back(self, permission_id: str) -> None:
        """The asker is gone, and its run may go on (a worker withdrew it): people would answer a question of nobody."""
        settled = self.permissions.withdraw_one(permission_id, SERVER)
        if settled.resolved and not self._log.closed:
            self._settle(permission_id, settled, SERVER)

    def _request(self, entry: Entry, ask: PermissionAsk, root_session_id: str) -> PermissionRequest:
        return PermissionRequest(
            id=self._context.new_id("perm"),
            session_id=entry.run.session_id,
            tool_call_id=ask.tool_call_id,
            tool_name=ask.tool_name,
            description=ask.description,
            action=ask.action,
            params=ask.params,
            path=ask.path,
            root_session_id=root_session_id,
            confined=ask.confined,
            run_id=entry.run.id,
        )

    async def resolve(self, permission_id: str, action: Action, by: By) -> bool:
        """Answer a request; whether this answer decided it. A loser waits too: what it lost to must be on disk."""
        settled = self.permissions.resolve(permission_id, action, by)
        if settled.resolved:
            self._settle(permission_id, settled, by)
        await self._log.durable(self._log.head)
        return settled.resolved

    def _settle(self, permission_id: str, settled: Settled, by: By) -> None:
        """Commit the notification and the run that goes on (unless it waits for another answer); wake the asker."""
        lane = self._lane_of(settled.run_id)
        waiting = self.permissions.waiting(settled.run_id)
        run = [] if lane is None else lane.set_waiting(settled.run_id, waiting, by)
        self._log.append([*settled.facts, *run])
        self._tell(permission_id, settled)

    def _tell(self, permission_id: str, settled: Settled) -> None:
        answer = self._asking.get(permission_id)
        if answer is not None and not answer.done():
            answer.set_result((settled.verdict, self._log.head))

    def withdraw(self, run_ids: list[str], by: By) -> list[Fact]:
        """The questions of these runs go, everywhere; the facts are the caller's to commit with its own."""
        facts: list[Fact] = []
        for run_id in run_ids:
            for settled in self.permissions.withdraw(run_id, by):
                facts += settled.facts
                # Whoever asked may not be cancelled with the run (a task of the executor's own): it must not wait on.
                self._tell(settled.facts[0].body.id, settled)
        return facts

    # -- when nobody is there -----------------------------------------------------------------------------------------

    def review(self, config: Config | None = None) -> None:
        """Someone came, went or asked: while nobody holds the workspace, a question waits only so long."""
        alone = bool(self.permissions.pending) and not self._is_held()
        if not alone:
            self.close()
        elif self._unattended is None:
            seconds = self._unattended_seconds(config or self._context.config)
            self._unattended = asyncio.get_running_loop().call_later(seconds, self._expire_pending)

    def _unattended_seconds(self, config: Config) -> float:
        if self._context.graces.unattended is not None:
            return self._context.graces.unattended
        if config.permissions.unattended == "deny":
            return 0.0
        return parse_duration(config.permissions.unattended_timeout)

    def _expire_pending(self) -> None:
        self._unattended = None
        if self._is_held() or self._log.closed:
            return
        for permission_id in list(self.permissions.pending):
            self._settle(permission_id, self.permissions.expire(permission_id), SERVER)

    def close(self) -> None:
        """Stop the clock."""
        if self._unattended is not None:
            self._unattended.cancel()
            self._unattended = None


def _policy(config: Config) -> Policy:
    rules = config.permissions
    return Policy(tuple(rules.allow), tuple(rules.ask), tuple(rules.deny))
