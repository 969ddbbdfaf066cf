"""Runs that wait for people: their state says so, and while nobody is there they do not wait for ever.

A run waits as long as anything it asked is pending, of whichever kind: it must not look as if it went on because one
of two answers came (B15).
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from windlass.config import Config, parse_duration
from windlass.core.lane import Lane
from windlass.engine.context import Context
from windlass.journal.log import Log
from windlass.wire.events import Fact
from windlass.wire.permissions import By


class Asked(Protocol):
    """What people are asked of one kind: permissions, or questions."""

    @property
    def has_pending(self) -> bool: ...

    def is_waiting(self, run_id: str) -> bool: ...

    def expire_pending(self) -> None:
        """Nobody was there in time: whoever asked is told."""


class Waiting:
    """`lane_of` finds the lane of a run that is not over; `is_held` tells whether any client holds the workspace."""

    def __init__(
        self, context: Context, log: Log, lane_of: Callable[[str], Lane | None], is_held: Callable[[], bool]
    ) -> None:
        self._context = context
        self._log = log
        self._lane_of = lane_of
        self._is_held = is_held
        self._kinds: list[Asked] = []
        self._unattended: asyncio.TimerHandle | None = None

    def add(self, kind: Asked) -> None:
        self._kinds.append(kind)

    def state(self, run_id: str, by: By) -> list[Fact]:
        """The fact that the run waits now, or goes on; none if that is what everyone knows."""
        lane = self._lane_of(run_id)
        waits = any(kind.is_waiting(run_id) for kind in self._kinds)
        return [] if lane is None else lane.set_waiting(run_id, waits, by)

    # -- when nobody is there -----------------------------------------------------------------------------------------

    def review(self, config: Config | None = None) -> None:
        """Someone came, went or asked: while nobody holds the workspace, what was asked waits only so long."""
        alone = any(kind.has_pending for kind in self._kinds) and not self._is_held()
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
        for kind in self._kinds:
            kind.expire_pending()

    def close(self) -> None:
        """Stop the clock."""
        if self._unattended is not None:
            self._unattended.cancel()
            self._unattended = None
