"""The open workspaces of a server: opened once per path, closed when nothing needs them, left together.

`leaving` is a latch: once it is set no create succeeds any more, and it is only set in the same synchronous step that
saw that nothing is open and nothing is being opened (R35, R36, I17).
"""

import asyncio
import os
from collections.abc import Callable

import structlog

from windlass import limits
from windlass.core.claims import Retired
from windlass.engine.context import Context
from windlass.engine.recovery import recover
from windlass.engine.workspace import Workspace
from windlass.errors import Conflict, Invalid, NotFound, TooMany, Unavailable
from windlass.journal import past, view
from windlass.wire.permissions import By

logger = structlog.get_logger("windlass.registry")


class Registry:
    """Workspaces by id and by path. `on_idle` is called whenever nothing is open and nothing is being opened."""

    def __init__(self, context: Context, data_dir: str, on_idle: Callable[[], None] = lambda: None) -> None:
        self.context = context
        self.leaving = False
        self._data_dir = os.path.realpath(data_dir)
        self._on_idle = on_idle
        self._open: dict[str, Workspace] = {}
        self._opening: dict[str, asyncio.Task[Workspace]] = {}  # by path
        self._creating = 0
        self.had_clients = False
        self._retired = Retired()

    # -- looking ------------------------------------------------------------------------------------------------------

    def get(self, workspace_id: str) -> Workspace:
        workspace = self._open.get(workspace_id)
        if workspace is None and self.leaving:
            self._check_staying()
        if workspace is None:
            raise NotFound("This workspace is not open. Open it by its path with POST /v1/workspaces.")
        return workspace

    @property
    def workspaces(self) -> list[Workspace]:
        return list(self._open.values())

    @property
    def is_idle(self) -> bool:
        return not self._open and not self._creating and not self._opening

    def check_client(self, client_id: str) -> None:
        if self._retired.holds(client_id, self.context.clock.now()):
            raise Conflict("This client has said goodbye (it was retired). Use a new client_id.")

    async def known(self) -> list[past.KnownWorkspace]:
        """Workspaces that are or were open and whose directory is still there, those used last first; bounded."""
        known = await self.context.journal.read(past.known_workspaces)
        there = await self.context.in_thread(_directories, [row.path for row in known])
        return [row for row in known if row.path in there]

    # -- opening ------------------------------------------------------------------------------------------------------

    async def create(self, path: str, client_id: str, by: By, *, yolo: bool = False, debug: bool = False) -> Workspace:
        """Open the workspace of this directory, or join it, and hold it for the client until its first stream."""
        self._check_staying()
        self.check_client(client_id)
        self._creating += 1
        try:
            real = await self.context.in_thread(self._real_directory, path)
            while True:
                workspace, opened = await self._open_path(real)
                # Look again: while it was being opened the client may have left, or others may have closed it.
                self.check_client(client_id)
                self._check_staying()
                if not workspace.closed:
                    break
            workspace.attendance.hold(client_id)
            self.had_clients = True
        finally:
            self._creating -= 1
            self._close_unneeded()
        if opened:
            workspace.debug = debug
            # In memory only: a flag of this opening must not turn questions off for whoever opens it next month.
            workspace.permissions.skip = workspace.permissions.skip or yolo
        return workspace

    def _check_staying(self) -> None:
        if self.leaving:
            raise Unavailable("This server is leaving. Start it again, or connect to another one.")
        self.context.journal.check()

    def _real_directory(self, path: str) -> str:
        if path.startswith("~/"):
            path = os.path.expanduser(path)  # as people type it on a page, where no shell does so for them
        if len(path) > limits.PATH_CHARACTERS or "\0" in path or not os.path.isabs(path):
            raise Invalid("path must be an absolute path of a directory: one that begins with / or ~/.")
        try:
            real = os.path.realpath(path, strict=True)
        except OSError:
            raise Invalid("path is no directory on the machine that the server runs on.") from None
        if not os.path.isdir(real) or not _is_text(real):
            raise Invalid("path is no directory on the machine that the server runs on.")
        if real == "/":
            raise Invalid("path is the root of the file system. Choose a project's directory.")
        if _holds(real, self._data_dir) or _holds(self._data_dir, real):
            raise Invalid("path holds or lies in the server's data directory. Choose another directory.")
        return real

    async def _open_path(self, path: str) -> tuple[Workspace, bool]:
        """The open workspace of a real path; all who ask at the same time get the same one (R32)."""
        for workspace in self._open.values():
            if workspace.path == path:
                return workspace, False
        task = self._opening.get(path)
        first = task is None
        if task is None:
            if len(self._open) + len(self._opening) >= limits.OPEN_WORKSPACES:
                raise TooMany("Too many workspaces are open on this server.", retry_after=10)
            task = self._opening[path] = asyncio.create_task(self._load(path), name="open workspace")
            task.add_done_callback(self._opened)
        # Shielded: one caller going away must not end the opening for the others (R25).
        return await asyncio.shield(task), first

    def _opened(self, task: "asyncio.Task[Workspace]") -> None:
        """Whoever asked may be gone: then nobody looks at a failure, and nobody lets go of what was opened."""
        if not task.cancelled():
            task.exception()
        if not self._creating:
            self._close_unneeded()

    async def _load(self, path: str) -> Workspace:
        try:
            row = await self.context.journal.workspace_for(path)
            return await self._start(row.id)
        finally:
            del self._opening[path]

    async def _start(self, workspace_id: str) -> Workspace:
        log, opening = await self.context.journal.open_log(workspace_id)
        workspace = Workspace(self.context, log, opening, self._on_quiet)
        await recover(workspace, opening)
        self._open[workspace_id] = workspace
        workspace.resume()
        return workspace

    async def recover(self) -> int:
        """Open every workspace with runs that are not over; returns how many. Called once, before clients come."""
        rows = await self.context.journal.read(view.workspaces_with_open_runs)
        for row in rows:
            await self._open_path(row.path)
        self._close_unneeded()
        return len(rows)

    # -- closing ------------------------------------------------------------------------------------------------------

    def retire(self, client_id: str) -> None:
        """The client says goodbye for good: its claims go at once, and a late create of it is refused (R34)."""
        self._retired.add(client_id, self.context.clock.now())
        for workspace in self.workspaces:
            workspace.attendance.release(client_id)

    def _on_quiet(self, workspace: Workspace) -> None:
        """Something that kept the workspace open is gone: close it if that was the last."""
        if workspace.is_needed or workspace.closed or self._open.get(workspace.id) is not workspace:
            return
        del self._open[workspace.id]
        workspace.close()
        logger.info("workspace closed", workspace=workspace.id)
        if self.is_idle:
            self._on_idle()

    def _close_unneeded(self) -> None:
        for workspace in self.workspaces:
            self._on_quiet(workspace)
        if self.is_idle:
            self._on_idle()

    def leave_if_idle(self) -> bool:
        """Decide to leave if nothing is open and nothing is being opened. From then on creates are refused."""
        if self.is_idle:
            self.leaving = True
        return self.leaving

    def hurry(self) -> None:
        """Stop waiting for runs that are going on: they end as interrupted."""
        for workspace in self.workspaces:
            workspace.interrupt_runs()

    async def drain(self, seconds: float) -> None:
        """Leave: no new work, runs get `seconds` to end and are then ended, everything is on disk, streams close."""
        self.leaving = True
        for workspace in self.workspaces:
            workspace.draining = True  # now, and not in the first step of a task: nothing more is accepted from here on
        await asyncio.gather(*(workspace.drain(seconds) for workspace in self.workspaces))
        for workspace in self.workspaces:
            del self._open[workspace.id]
            workspace.close()


def _directories(paths: list[str]) -> set[str]:
    return {path for path in paths if os.path.isdir(path)}


def _is_text(path: str) -> bool:
    """A name of bytes that are no text can be opened, but not told to anyone."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _holds(outer: str, inner: str) -> bool:
    """Whether `inner` is `outer` or lies in it."""
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")
