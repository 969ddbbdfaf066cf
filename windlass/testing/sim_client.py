"""A simulated client: it opens workspaces, prompts, cancels, answers, looks, leaves and comes back, as its seed says.

It goes on from one server process to the next with what a real client keeps: its id and the cursors of its streams.
"""

import asyncio
from collections.abc import Awaitable, Callable

from windlass.engine.subscription import Cursor
from windlass.engine.workspace import Workspace
from windlass.errors import WindlassError
from windlass.testing.sim_requests import SimRequests
from windlass.testing.sim_server import SimServer
from windlass.testing.sim_stream import SimStream
from windlass.testing.sim_world import CREATE_GRACE_SECONDS, DETACH_GRACE_SECONDS, World
from windlass.wire.permissions import By

_PAUSES = (0.0, 0.01, 0.01, 0.02, 0.05, 0.1, 0.3)
_MOST_STREAMS = 2
_LOST_EPOCH = "lost"  # of a log that is no more, as a client remembers it after a backup was put in its place


class SimClient(SimRequests):
    """It acts from `begin` until the server rests or leaves; `rest` and `hang_up` end what it has under way."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, number)
        self._goodbyes = 0
        self._cursors: dict[str, Cursor] = {}  # by path
        self._reset_life()

    def _reset_life(self) -> None:
        self.streams: list[SimStream] = []  # open ones
        self._following: list[asyncio.Task[None]] = []
        self._tasks = []
        self._claimed: set[str] = set()  # paths with a create in flight

    # -- a life -------------------------------------------------------------------------------------------------------

    def begin(self, server: SimServer) -> None:
        """A server process is there; everything of the last one is gone."""
        self._server = server
        self._reset_life()

    async def live(self) -> None:
        """Act until the server leaves. Several actions may be under way at once."""
        while not self._server.resting and not self._server.closed:
            await asyncio.sleep(self._rng.choice(_PAUSES))
            if self._rng.random() < 0.3:
                self._spawn(self._act())
            else:
                await self._act()

    async def rest(self) -> None:
        """Let everything under way come to its end; streams stay open."""
        while pending := [task for task in self._tasks if not task.done()]:
            await asyncio.wait(pending)
        for task in self._tasks:
            task.result()  # what went wrong in there is an error of the simulation or of the server

    async def come_back(self, seconds: float) -> None:
        """Open a workspace again at a moment when the server may be about to leave, and go again."""
        await asyncio.sleep(seconds)
        usual, self._hurry = self._hurry, 0.5
        if not self._server.closed:
            await self._create(str(self._rng.choice(self._world.paths)))
        self._hurry = usual
        await self.hang_up()

    async def hang_up(self) -> None:
        while self._following:
            await self._drop(0)

    async def _act(self) -> None:
        if self._server.closed:
            return
        path = str(self._rng.choice(self._world.paths))
        workspace = self._server.workspace(path)
        if workspace is None:
            await self._create(path)
            return
        if not self._world.sessions[path]:
            await self._create_session(path, workspace)
            return
        names, weights = zip(*_ACTIONS.items(), strict=True)
        (name,) = self._rng.choices(names, weights)
        action: Callable[[str, Workspace], Awaitable[None]] = getattr(self, f"_{name}")
        await action(path, workspace)

    # -- lifetimes ----------------------------------------------------------------------------------------------------

    async def _create(self, path: str, workspace: Workspace | None = None) -> None:
        given = f"{path}.link" if self._rng.random() < 0.3 else path
        self._claimed.add(path)
        registry, id = self._server.registry, self.id

        async def create() -> str:
            opened = await registry.create(given, id, self.by)
            if (registry.leaving or opened.closed) and not self._server.is_leaving:
                self._world.history.violate("I17", f"a create of {path} was answered by a server that had left it")
            return opened.id

        if self._rng.random() < 0.02:
            self._spawn(self._retire(path, None))
        created = await self._ask("create", create, path=path)
        self._claimed.discard(path)
        opened = self._server.workspace(path)
        if created is None or opened is None:
            return
        if self._rng.random() < 0.7:
            await self._attach(path, opened)
        else:
            self._spawn(self._check_hold(opened, self._goodbyes))

    async def _check_hold(self, workspace: Workspace, goodbyes: int) -> None:
        """Before the grace is over a workspace is there, unless its client said goodbye meanwhile (B30)."""
        await asyncio.sleep(self._rng.choice((0.1, CREATE_GRACE_SECONDS - 0.01)))
        if workspace.closed and self._goodbyes == goodbyes and not self._server.is_leaving:
            self._world.history.violate("I17", f"{workspace.id} was closed in the grace after {self.id} created it")

    async def _attach(self, path: str, workspace: Workspace) -> None:
        if len(self.streams) >= _MOST_STREAMS or self._server.closed:
            return
        self._notice_collision(workspace)
        start = self._rng.random()
        cursor = self._cursors.get(path) if start < 0.7 else None
        if start > 0.95:
            cursor = Cursor("", 0)
        elif start > 0.92:
            cursor = Cursor(_LOST_EPOCH, self._rng.choice((0, 1, workspace.log.published)))
        elif start > 0.89:
            # As one that was away for so long that the log begins just where it left.
            cursor = Cursor(workspace.log.epoch, max(0, workspace.log.floor + self._rng.choice((-1, 0, 0))))
        follow = self._follow(path, workspace, cursor, deltas=self._rng.random() < 0.6)
        self._following.append(asyncio.create_task(follow, name=f"{self.id} stream of {workspace.id}"))

    async def _follow(self, path: str, workspace: Workspace, cursor: Cursor | None, deltas: bool) -> None:
        # Attached in here, as the server does: a task that is cancelled before its first step must leave no claim.
        if workspace.closed:
            return
        try:
            self._server.registry.check_client(self.id)
            stream = SimStream(
                self._world.history,
                self._rng,
                workspace,
                self.id,
                cursor,
                deltas,
                self._on_question,
                self._on_batch,
                lambda: self._server.is_leaving,
            )
        except WindlassError:
            return
        self.streams.append(stream)
        try:
            await stream.read()
        finally:
            self.streams.remove(stream)
            if stream.cursor is not None:
                self._cursors[path] = stream.cursor

    def _notice_collision(self, workspace: Workspace) -> None:
        now = asyncio.get_running_loop().time()
        timers = workspace.attendance.timers
        if any(hold.client_id == self.id and timer.when() <= now for hold, timer in timers.items()):
            self._world.history.count("a hold expired at the instant of an attach")

    async def _drop_stream(self, path: str, workspace: Workspace) -> None:
        if self._following:
            await self._drop(self._rng.randrange(len(self._following)))
            if self._rng.random() < 0.3:
                # Back at the very moment when the grace is over.
                await asyncio.sleep(DETACH_GRACE_SECONDS)
                if not workspace.closed:
                    await self._attach(path, workspace)

    async def _drop(self, index: int) -> None:
        self._goodbyes += 1
        task = self._following.pop(index)
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()

    async def _release(self, path: str, workspace: Workspace) -> None:
        if self._rng.random() < 0.5:
            # Something is still on its way to the disk when the workspace closes.
            self._spawn(self._rename(path, workspace))
            await asyncio.sleep(0)
        self._goodbyes += 1
        self._world.history.place(f"{self.id} releases {workspace.id}")
        workspace.attendance.release(self.id)
        if workspace.closed:
            await self._create(path)

    async def _retire(self, path: str, workspace: Workspace | None) -> None:
        self._goodbyes += 1
        if self._claimed:
            self._world.history.count("a client retired during its create")
        self._world.history.goodbye(self.id)
        self._server.registry.retire(self.id)
        id = self.id
        self._lives += 1
        if self._rng.random() < 0.5:
            await self._ask("late_create", lambda: self._server.registry.create(path, id, By("token", id)), path=path)

    async def _look(self, path: str, workspace: Workspace) -> None:
        session_id = self._rng.choice(("", self._session(path)))

        async def look() -> None:
            workspace.look_at(self.id, session_id)

        await self._ask("look", look, session=session_id)


_ACTIONS = {
    "prompt": 34,
    "cancel": 5,
    "cancel_run": 5,
    "remove": 2,
    "clear": 2,
    "answer": 8,
    "attach": 14,
    "drop_stream": 8,
    "create": 5,
    "create_session": 2,
    "run": 2,
    "read": 2,
    "look": 3,
    "rename": 1,
    "delete": 2,
    "release": 2,
    "retire": 2,
    "skip": 1,
    "trim": 1,
}
