"""Being an approver: what waits is decided once each, and an answer gets through (B23, B24, I9)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from fake_windlass import FakeWindlass, a_notification, a_permission

from windlass.client import Action, Decide, PermissionRequest, WorkspaceHandle


class Asked:
    """Remembers what `decide` was asked, and says when that was."""

    def __init__(self, answer: Callable[[PermissionRequest], Action | None]) -> None:
        self._answer = answer
        self.ids: list[str] = []
        self._more = asyncio.Event()

    def __call__(self, request: PermissionRequest) -> Action | None:
        self.ids.append(request.id)
        self._more.set()
        return self._answer(request)

    async def reached(self, number: int) -> None:
        async with asyncio.timeout(10):
            while len(self.ids) < number:
                self._more.clear()
                await self._more.wait()


@asynccontextmanager
async def approving(workspace: WorkspaceHandle, decide: Decide) -> AsyncIterator["asyncio.Task[None]"]:
    task = asyncio.create_task(workspace.answer_permissions(decide))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def granted(server: FakeWindlass, number: int) -> None:
    async with asyncio.timeout(10):
        while len(server.grants) < number:
            server.answer_went.clear()
            await server.answer_went.wait()


def ask(server: FakeWindlass, permission_id: str) -> None:
    """A tool asks: as the server tells it."""
    request = a_permission(permission_id)
    server.pending.append(request)
    server.fact("permission_notification", "created", a_notification(permission_id, "asked"))
    server.fact("permission_request", "created", request)


async def test_what_waits_already_and_what_comes_later_is_decided_once_each(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """B24: an approver that is started late would leave a run waiting; a reconnect would ask a person twice."""
    ask(server, "perm_1")
    asked = Asked(lambda request: "deny" if request.id == "perm_2" else "allow")
    async with approving(workspace, asked):
        await granted(server, 1)
        ask(server, "perm_2")
        await granted(server, 2)
        server.drop_streams()
        ask(server, "perm_3")
        await granted(server, 3)
    assert asked.ids == ["perm_1", "perm_2", "perm_3"]
    assert server.grants == [("perm_1", "allow"), ("perm_2", "deny"), ("perm_3", "allow")]


async def test_what_is_left_to_others_is_not_answered_and_not_asked_again(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """A program that only knows some of it would answer for people, or nag."""
    ask(server, "perm_1")
    asked = Asked(lambda request: None if request.id == "perm_1" else "allow")
    async with approving(workspace, asked):
        await asked.reached(1)
        server.drop_streams()
        ask(server, "perm_2")
        await granted(server, 1)
    assert (asked.ids, server.grants) == (["perm_1", "perm_2"], [("perm_2", "allow")])


async def test_a_person_is_not_asked_on_about_what_somebody_else_settled(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """B23: the question would stay on the screen, and what waits behind it would never be shown."""
    asked, ended = asyncio.Event(), asyncio.Event()

    async def decide(request: PermissionRequest) -> Action | None:
        if request.id == "perm_2":
            return "allow"
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "allow"

    ask(server, "perm_1")
    ask(server, "perm_2")
    async with approving(workspace, decide):
        await asyncio.wait_for(asked.wait(), 10)
        server.pending.pop(0)
        server.fact("permission_notification", "created", a_notification("perm_1", "denied"))
        await asyncio.wait_for(ended.wait(), 10)
        await granted(server, 1)
    assert server.grants == [("perm_2", "allow")]


async def test_an_answer_that_was_lost_on_the_way_is_given_again_without_asking_again(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """The run would wait for ever for an answer that a person has given."""
    server.refuse("/permissions/grant", None)
    ask(server, "perm_1")
    asked = Asked(lambda request: "allow")
    async with approving(workspace, asked):
        await granted(server, 1)
    assert (asked.ids, server.grants) == (["perm_1"], [("perm_1", "allow")])


@pytest.mark.parametrize("is_async", [False, True])
async def test_what_decide_raises_ends_it(server: FakeWindlass, workspace: WorkspaceHandle, is_async: bool) -> None:
    """A mistake in the rule would pass unseen, and nothing would ever be answered."""

    async def fails_later(request: PermissionRequest) -> Action | None:
        raise ZeroDivisionError

    def fails(request: PermissionRequest) -> Action | Awaitable[Action | None] | None:
        if is_async:
            return fails_later(request)
        raise ZeroDivisionError

    ask(server, "perm_1")
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(workspace.answer_permissions(fails), 10)


async def test_what_was_asked_in_a_stretch_that_was_trimmed_is_decided(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """B41: a `reset` in the middle of a stream brings no `hello`: a run would wait for one who knows nothing."""
    asked = Asked(lambda request: "allow")
    async with approving(workspace, asked):
        await asyncio.wait_for(server.attached.wait(), 10)
        server.pending.append(a_permission("perm_1"))
        server.live("reset", {"reason": "trimmed", "epoch": server.epoch, "head": len(server.facts)})
        await granted(server, 1)
    assert asked.ids == ["perm_1"]
