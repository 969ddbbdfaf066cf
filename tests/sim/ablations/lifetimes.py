"""Who keeps a workspace and a server open: what claims and the registry promise, taken out."""

import asyncio
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import pytest

from tests.sim.ablations.ablation import Ablation
from windlass.core.claims import Claims, Hold, Retired
from windlass.engine import registry as registry_module
from windlass.engine.attendance import Attendance
from windlass.engine.registry import Registry
from windlass.engine.workspace import Workspace


def let_old_timers_act(patch: pytest.MonkeyPatch) -> None:
    """A hold's timer does not carry its identity: it ends whatever claim its client has now (R30, R31)."""

    def expire(claims: Claims, hold: Hold) -> bool:
        return claims._clients.pop(hold.client_id, None) is not None

    patch.setattr(Claims, "expire", expire)


def close_under_runs(patch: pytest.MonkeyPatch) -> None:
    """Only claims keep a workspace open, runs do not."""
    patch.setattr(Workspace, "is_needed", property(lambda workspace: workspace.claims.held))


def create_without_a_hold(patch: pytest.MonkeyPatch) -> None:
    """A create holds nothing: the workspace is closed before its client's first stream (R28, B30)."""
    patch.setattr(Attendance, "hold", lambda attendance, client_id: None)


def drop_without_a_grace(patch: pytest.MonkeyPatch) -> None:
    """The end of a client's stream ends its claim at once, also one that it has taken since (R39)."""

    def detach(attendance: Attendance, client_id: str, stream: int) -> None:
        attendance.release(client_id)

    patch.setattr(Attendance, "detach", detach)


def open_one_path_twice(patch: pytest.MonkeyPatch) -> None:
    """Two who open one path at the same time get a workspace each (R32)."""

    async def open_path(registry: Registry, path: str) -> tuple[Workspace, bool]:
        for workspace in registry.workspaces:
            if workspace.path == path:
                return workspace, False
        row = await registry.context.journal.workspace_for(path)
        return await registry._start(row.id), True

    patch.setattr(Registry, "_open_path", open_path)


def share_the_opening(patch: pytest.MonkeyPatch) -> None:
    """A caller that hangs up while a workspace is being opened takes all others who wait for it with it (R25)."""
    unshielded = SimpleNamespace(create_task=asyncio.create_task, gather=asyncio.gather, shield=lambda task: task)
    patch.setattr(registry_module, "asyncio", unshielded)


def forget_what_was_opened(patch: pytest.MonkeyPatch) -> None:
    """A caller that hangs up while a workspace is being opened leaves it open for ever."""
    patch.setattr(Registry, "_opened", lambda registry, task: None)


def forget_creates_under_way(patch: pytest.MonkeyPatch) -> None:
    """A server with nothing open leaves, also under a create that has begun (R35)."""
    patch.setattr(Registry, "is_idle", property(lambda registry: not registry._open))


def create_on_a_server_that_leaves(patch: pytest.MonkeyPatch) -> None:
    """A server that has decided to leave still opens workspaces (R36)."""
    patch.setattr(Registry, "_check_staying", lambda registry: registry.context.journal.check())


def forget_goodbyes(patch: pytest.MonkeyPatch) -> None:
    """A create that arrives after its client's goodbye opens a workspace for nobody (R34)."""
    patch.setattr(Retired, "holds", lambda retired, client_id, now: False)


def look_once_for_a_goodbye(patch: pytest.MonkeyPatch) -> None:
    """A client that says goodbye while its create is under way is taken in all the same (R33)."""
    check, create = Registry.check_client, Registry.create
    looked = ContextVar("looked", default=False)

    def once(registry: Registry, client_id: str) -> None:
        if not looked.get():
            check(registry, client_id)

    async def created(registry: Registry, path: str, client_id: str, *rest: Any) -> Workspace:
        check(registry, client_id)
        token = looked.set(True)
        try:
            return await create(registry, path, client_id, *rest)
        finally:
            looked.reset(token)

    patch.setattr(Registry, "check_client", once)
    patch.setattr(Registry, "create", created)


ABLATIONS = [
    Ablation(let_old_timers_act, ("I17",), last_found=24),
    Ablation(close_under_runs, ("I17",), last_found=1),
    Ablation(create_without_a_hold, ("I17",)),
    Ablation(drop_without_a_grace, ("I17",)),
    Ablation(open_one_path_twice, ("I12", "I17", "I18"), last_found=1),
    Ablation(share_the_opening, ("B02",)),
    Ablation(forget_what_was_opened, ("I17",), last_found=4),
    Ablation(forget_creates_under_way, ("I17",), last_found=15),
    Ablation(create_on_a_server_that_leaves, ("I17",), last_found=2),
    Ablation(forget_goodbyes, ("I17",)),
    Ablation(look_once_for_a_goodbye, ("I17",)),
]
