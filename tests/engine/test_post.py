"""Letters over the real engine and real mailboxes: each is read once, and none is lost on the way."""

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from cast import Cast, Stage
from engine_world import BY, EngineWorld
from own_worktrees import BUILDERS, OwnWorktrees
from structlog.testing import capture_logs

from windlass.engine.workspace import Workspace
from windlass.fleet.mailbox.mailbox import Mailbox
from windlass.fleet.mailbox.mailbox_shapes import MailboxStatistics
from windlass.fleet.mailbox.mailroom import ClaimedLetter, Mailroom
from windlass.fleet.store.store import Store
from windlass.limits import MAILBOX_ATTEMPTS
from windlass.wire.delegation import MessageAgent, SteerAgent, WaitForAgents
from windlass.wire.http import Prompt
from windlass.wire.run_events import SteerTaken

PATIENCE_SECONDS = 10  # of a thread that a test holds up


class Reader:
    """A player that reads its letters at its first step; `read` is their last lines."""

    def __init__(self) -> None:
        self.read: list[str] = []

    async def __call__(self, stage: Stage) -> None:
        for message in stage.steer.take():
            self.read.append(message.text.splitlines()[-1])
            stage.events.emit(SteerTaken(message.run_id))


async def a_letter(room: Mailroom, workspace: Workspace, text: str) -> str:
    """A new session with a letter in its mailbox: its id."""
    session = await workspace.create_session("", BY)
    await asyncio.to_thread(room.deliver, workspace.path, session.id, "ses_other", "general", text)
    return session.id


async def run(world: EngineWorld, workspace: Workspace, session_id: str) -> None:
    await workspace.prompt(Prompt(session_id, "root"), BY)
    await world.idle(workspace)


def mailbox(root: Path, workspace: Workspace, session_id: str) -> Mailbox:
    return Store(root / "mail").mailbox(Path(workspace.path), session_id)


async def held(root: Path, workspace: Workspace, session_id: str) -> MailboxStatistics:
    return await asyncio.to_thread(mailbox(root, workspace, session_id).statistics)


async def test_a_letter_is_read_once_and_is_then_gone(tmp_path: Path) -> None:
    """B71: read again in every run, it would be done again in every run."""
    room, reader = Mailroom(tmp_path / "mail"), Reader()
    async with EngineWorld(tmp_path, Cast(root=reader), mailroom=room) as world:
        workspace = await world.open()
        session_id = await a_letter(room, workspace, "look left")
        await run(world, workspace, session_id)
        await run(world, workspace, session_id)
        said = [message.text for message in await workspace.conversation(session_id)]
        assert [text for text in said if "look left" in text] == ["(Message from general ses_other; steer)\nlook left"]
        left = await held(tmp_path, workspace, session_id)
        assert (left.waiting, left.claimed, left.set_aside) == (0, 0, 0)
    assert reader.read == ["look left"]


async def test_a_letter_is_acknowledged_when_it_is_on_disk(tmp_path: Path) -> None:
    """I23: a crash in between would leave it neither in its mailbox nor in the conversation."""
    on_disk: list[int] = []

    class Watched(Mailroom):
        def acknowledge(self, letter: ClaimedLetter) -> None:
            with closing(sqlite3.connect(tmp_path / "data" / "journal.db")) as journal:
                count = journal.execute("SELECT count(*) FROM messages WHERE id = ?", (f"msg_{letter.id}",))
                on_disk.extend(count.fetchone())
            super().acknowledge(letter)

    room = Watched(tmp_path / "mail")
    async with EngineWorld(tmp_path, Cast(root=Reader()), mailroom=room) as world:
        workspace = await world.open()
        await run(world, workspace, await a_letter(room, workspace, "look left"))
    assert on_disk == [1]


async def test_a_letter_whose_acknowledgement_was_lost_is_not_read_again(tmp_path: Path) -> None:
    """I23: after a crash between the two, what it asks for would be done twice."""

    class Forgetful(Mailroom):
        crashes = True

        def acknowledge(self, letter: ClaimedLetter) -> None:
            if self.crashes:
                raise OSError("the disk is gone")
            super().acknowledge(letter)

    room, reader = Forgetful(tmp_path / "mail"), Reader()
    async with EngineWorld(tmp_path, Cast(root=reader), mailroom=room) as world:
        workspace = await world.open()
        session_id = await a_letter(room, workspace, "look left")
        with capture_logs() as logs:
            await run(world, workspace, session_id)
        assert [entry["event"] for entry in logs] == ["letter not acknowledged"]
        room.crashes = False
        box = mailbox(tmp_path, workspace, session_id)
        assert await asyncio.to_thread(box.recover, everything=True) == 1  # as after a crash of its reader
        await run(world, workspace, session_id)
        left = await held(tmp_path, workspace, session_id)
        assert (left.waiting, left.claimed) == (0, 0)
    assert reader.read == ["look left"]


class HeldUp(Mailroom):
    """Whoever claims something waits for the test, which is told by `claimed`."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.claimed = asyncio.Event()
        self.go_on = threading.Event()
        self._loop = asyncio.get_running_loop()

    def claim(self, project: str, session_id: str, limit: int) -> list[ClaimedLetter]:
        letters = super().claim(project, session_id, limit)
        if letters:
            self._loop.call_soon_threadsafe(self.claimed.set)
            self.go_on.wait(PATIENCE_SECONDS)
        return letters


async def test_a_cancel_in_the_middle_of_a_claim_loses_no_letter(tmp_path: Path) -> None:
    """I23: the thread claims it all the same, and for ten minutes nobody could read it."""
    room, reader = HeldUp(tmp_path / "mail"), Reader()
    async with EngineWorld(tmp_path, Cast(root=reader), mailroom=room) as world:
        workspace = await world.open()
        session_id = await a_letter(room, workspace, "look left")
        await workspace.prompt(Prompt(session_id, "root"), BY)
        await room.claimed.wait()
        await workspace.cancel(session_id, BY)
        room.go_on.set()
        await world.idle(workspace)
        await run(world, workspace, session_id)
        assert [state for _, state in await world.ends(workspace)] == ["canceled", "completed"]
    assert reader.read == ["look left"]


async def test_a_letter_that_comes_while_a_run_winds_up_waits_for_the_next(tmp_path: Path) -> None:
    """I23: claimed by a run that will not step again, it would be read by nobody."""
    settling, sent = asyncio.Event(), asyncio.Event()
    reader = Reader()

    async def settle() -> None:
        settling.set()
        await sent.wait()

    async def root(stage: Stage) -> None:
        child = await stage.start("child", role="builder")
        await settling.wait()
        await stage.events.delegate(MessageAgent(child.id, "look left"))
        sent.set()
        await stage.events.delegate(WaitForAgents())
        await stage.events.delegate(SteerAgent(child.id, "again"))
        await stage.events.delegate(WaitForAgents())

    cast = Cast(root=root, child=Reader(), again=reader)
    room = Mailroom(tmp_path / "mail")
    async with EngineWorld(tmp_path, cast, BUILDERS, room, OwnWorktrees(settle)) as world:
        workspace = await world.open()
        await world.prompted(workspace)
        await world.idle(workspace)
    assert reader.read == ["look left"]


async def test_a_letter_that_comes_while_another_is_fetched_is_read_too(tmp_path: Path) -> None:
    """B71: an agent that waits for it would wait until something else wakes it."""
    room = HeldUp(tmp_path / "mail")
    read: list[str] = []

    async def root(stage: Stage) -> None:
        child = await stage.start("child")
        await cast.on_stage("child")
        await stage.events.delegate(MessageAgent(child.id, "one"))
        await room.claimed.wait()
        await stage.events.delegate(MessageAgent(child.id, "two"))
        room.go_on.set()
        await stage.events.delegate(WaitForAgents(timeout_seconds=5))

    async def child(stage: Stage) -> None:
        while len(read) < 2:
            message = await stage.steer.next()
            read.append(message.text.splitlines()[-1])
            stage.events.emit(SteerTaken(message.run_id))

    cast = Cast(root=root, child=child)
    async with EngineWorld(tmp_path, cast, mailroom=room) as world:
        workspace = await world.open()
        await world.prompted(workspace)
        await world.idle(workspace)
    assert read == ["one", "two"]


async def test_a_letter_that_comes_while_another_is_acknowledged_is_read_too(tmp_path: Path) -> None:
    """B71: a slow disk would hide what came in that moment from an agent that waits for it."""
    read: list[str] = []
    acknowledging, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    class Slow(Mailroom):
        def acknowledge(self, letter: ClaimedLetter) -> None:
            loop.call_soon_threadsafe(acknowledging.set)
            go_on.wait(PATIENCE_SECONDS)
            super().acknowledge(letter)

    async def root(stage: Stage) -> None:
        child = await stage.start("child")
        await cast.on_stage("child")
        await stage.events.delegate(MessageAgent(child.id, "one"))
        await acknowledging.wait()
        await stage.events.delegate(MessageAgent(child.id, "two"))
        go_on.set()
        await stage.events.delegate(WaitForAgents(timeout_seconds=5))

    async def child(stage: Stage) -> None:
        while len(read) < 2:
            message = await stage.steer.next()
            read.append(message.text.splitlines()[-1])
            stage.events.emit(SteerTaken(message.run_id))

    cast = Cast(root=root, child=child)
    async with EngineWorld(tmp_path, cast, mailroom=Slow(tmp_path / "mail")) as world:
        workspace = await world.open()
        await world.prompted(workspace)
        await world.idle(workspace)
    assert read == ["one", "two"]


async def test_runs_that_never_step_do_not_use_up_a_letters_attempts(tmp_path: Path) -> None:
    """B71: a provider that is down for a while would have every letter set aside as broken, unread."""

    class Broken(Cast):
        provider_is_down = True

        def __call__(self, *_: object) -> Cast:
            if self.provider_is_down:
                raise RuntimeError("the provider is down")
            return self

    room, reader = Mailroom(tmp_path / "mail"), Reader()
    cast = Broken(root=reader)
    async with EngineWorld(tmp_path, cast, mailroom=room) as world:
        workspace = await world.open()
        session_id = await a_letter(room, workspace, "look left")
        with capture_logs():
            for _ in range(MAILBOX_ATTEMPTS):
                await run(world, workspace, session_id)
        cast.provider_is_down = False
        await run(world, workspace, session_id)
    assert reader.read == ["look left"]


async def test_deleting_a_session_deletes_its_mailbox(tmp_path: Path) -> None:
    """B45: what was said to it would stay on disk, and people were told that it is gone."""
    room = Mailroom(tmp_path / "mail")
    async with EngineWorld(tmp_path, Cast(), mailroom=room) as world:
        workspace = await world.open()
        session_id = await a_letter(room, workspace, "a secret")
        await workspace.delete_session(session_id, BY)
    left = [path for path in (tmp_path / "mail").rglob("*") if path.is_file() and b"a secret" in path.read_bytes()]
    assert left == []
