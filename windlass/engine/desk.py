"""Where tools ask and people answer: the permissions of a workspace, with those who wait for them.

`core/permissions.py` decides; here the facts are committed and the asker is woken. Nothing ever turns into an allow.
"""

import asyncio
from collections.abc import Callable, Sequence

from windlass.config import Config
from windlass.core.lane import Entry
from windlass.core.permissions import Permissions, Settled
from windlass.core.policy import Policy
from windlass.engine.context import Context
from windlass.engine.waiting import Waiting
from windlass.errors import WindlassError
from windlass.journal.log import Log
from windlass.wire.events import Fact
from windlass.wire.execution import PermissionAsk, Verdict
from windlass.wire.permissions import Action, By, PermissionRequest

SERVER = By("server")


class Desk:
    """`above` are the sessions above a sub-agent's, the root first."""

    def __init__(
        self,
        context: Context,
        log: Log,
        permissions: Permissions,
        waiting: Waiting,
        above: Callable[[str], list[str]],
    ) -> None:
        self.permissions = permissions
        self._context = context
        self._log = log
        self._waiting = waiting
        self._above = above
        self._asking: dict[str, asyncio.Future[tuple[Verdict, int]]] = {}  # by permission id
        waiting.add(self)

    async def ask(self, entry: Entry, ask: PermissionAsk, config: Config) -> Verdict:
        """Ask policy and people; returns when the decision is on disk. Anything but `granted` means no (I10)."""
        above = self._above(entry.run.session_id)
        request = self._request(entry, ask, next(iter(above), entry.run.session_id))
        policy = _policy(config, entry.private.allow)
        asked = self.permissions.ask(request, ask.resource, policy, entry.by, above)
        if asked.verdict is not None:
            await self._log.durable(self._log.append(asked.facts))
            return asked.verdict
        answer: asyncio.Future[tuple[Verdict, int]] = asyncio.get_running_loop().create_future()
        self._asking[request.id] = answer
        self._log.append([*self._waiting.state(entry.run.id, entry.by), *asked.facts])
        self._waiting.review(config)
        try:
            verdict, head = await answer
        except asyncio.CancelledError:
            self._take_back(request.id)
            raise
        finally:
            self._asking.pop(request.id, None)
        await self._log.durable(head)
        return verdict

    async def refuse(self, entry: Entry, ask: PermissionAsk, by: By) -> Verdict:
        """Say no at once, on behalf of something that no answer can overrule; returns when that is on disk."""
        above = self._above(entry.run.session_id)
        request = self._request(entry, ask, next(iter(above), entry.run.session_id))
        await self._log.durable(self._log.append(self.permissions.refuse(request, by).facts))
        return "denied"

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

    async def resolve(self, permission_id: str, action: Action, by: By, pattern: str = "") -> bool:
        """Answer a request; whether this answer decided it. A loser waits too: what it lost to must be on disk.

        Raises Invalid for a pattern that does not cover the request, and then it goes on waiting.
        """
        try:
            settled = self.permissions.resolve(permission_id, action, by, pattern)
        except WindlassError:
            await self._log.durable(self._log.head)  # the request it does not fit must be on disk before it is told
            raise
        if settled.resolved:
            self._settle(permission_id, settled, by)
        await self._log.durable(self._log.head)
        return settled.resolved

    def _settle(self, permission_id: str, settled: Settled, by: By) -> None:
        """Commit the notification and the run that goes on (unless it waits for another answer); wake the asker."""
        self._log.append([*settled.facts, *self._waiting.state(settled.run_id, by)])
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

    # -- as one kind of what people are asked -------------------------------------------------------------------------

    @property
    def has_pending(self) -> bool:
        return bool(self.permissions.pending)

    def is_waiting(self, run_id: str) -> bool:
        return self.permissions.waiting(run_id)

    def expire_pending(self) -> None:
        for permission_id in list(self.permissions.pending):
            self._settle(permission_id, self.permissions.expire(permission_id), SERVER)


def _policy(config: Config, for_run: Sequence[str]) -> Policy:
    rules = config.permissions
    return Policy(tuple(rules.allow), tuple(rules.ask), tuple(rules.deny), tuple(for_run))
