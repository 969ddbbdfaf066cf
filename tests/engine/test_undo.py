"""Undo over real files: what a run wrote is put back, and nothing that anybody else did is ever lost."""

import asyncio
import base64
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cast import Cast, Stage, forever
from engine_world import BY, EngineWorld
from own_worktrees import BUILDERS, OwnWorktrees

from windlass import limits
from windlass.engine import reading
from windlass.engine.file_versions import digest
from windlass.engine.undo import undo
from windlass.engine.workspace import Workspace
from windlass.errors import Conflict, Invalid, NotFound, Unavailable
from windlass.journal import rebuild
from windlass.tools.files import WorkspaceRoot
from windlass.wire.delegation import WaitForAgents
from windlass.wire.http import Prompt, Undone
from windlass.wire.permissions import By
from windlass.wire.run_events import FileWritten
from windlass.wire.sessions import FileVersion

SOMEONE = By("someone", "their client")


async def write(stage: Stage, name: str, content: str) -> None:
    """As `write` and `edit` do: change the file, and tell what it was."""
    path = Path(stage.spec.workspace_path) / name

    def change() -> str | None:
        was = path.read_text() if path.exists() else None
        path.write_text(content)
        return was

    was = await asyncio.to_thread(change)
    await stage.events.durable(FileWritten(str(path), content, was))


def writing(*changes: tuple[str, str]) -> Callable[[Stage], Awaitable[None]]:
    async def play(stage: Stage) -> None:
        for name, content in changes:
            await write(stage, name, content)

    return play


class Desk:
    """One workspace with its files, in which runs write what a test says."""

    def __init__(self, world: EngineWorld, workspace: Workspace, session_id: str) -> None:
        self.world = world
        self.workspace = workspace
        self.session_id = session_id
        self.path = Path(world.path)

    async def run(self, prompt: str) -> str:
        accepted = await self.workspace.prompt(Prompt(self.session_id, prompt), BY)
        await self.world.idle(self.workspace)
        return accepted.run_id

    async def undo(self, run_id: str) -> Undone:
        return await undo(self.workspace, self.session_id, run_id, SOMEONE)

    async def history(self) -> list[FileVersion]:
        bodies = await reading.file_history(self.workspace, self.session_id)
        return [msgspec.json.decode(body, type=FileVersion) for body in bodies]

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted(self.path.iterdir())}


class desk:
    """A Desk whose runs are played by these."""

    def __init__(self, tmp_path: Path, **players: Any) -> None:
        self._world = EngineWorld(tmp_path, Cast(**players))

    async def __aenter__(self) -> Desk:
        workspace = await self._world.open()
        session = await workspace.create_session("", BY)
        return Desk(self._world, workspace, session.id)

    async def __aexit__(self, *exception: object) -> None:
        await self._world.__aexit__()


class Gate:
    """Undo reaches the files, and goes no further until it is let."""

    def __init__(self, d: Desk) -> None:
        self.reached = asyncio.Event()
        self._open = threading.Event()
        self._loop = asyncio.get_running_loop()
        d.workspace.context.open_root = self._root

    def _root(self, path: str) -> WorkspaceRoot:
        self._loop.call_soon_threadsafe(self.reached.set)
        assert self._open.wait(10), "nobody opened the gate"
        return WorkspaceRoot(path)

    def open(self) -> None:
        self._open.set()


async def test_a_run_is_undone_to_what_was_before_it(tmp_path: Path) -> None:
    """A new file would stay, a changed one would keep the change."""
    async with desk(tmp_path, go=writing(("new", "1"), ("old", "2"), ("old", "3"))) as d:
        (d.path / "old").write_text("as it was")
        run_id = await d.run("go")
        undone = await d.undo(run_id)
        assert d.files() == {"old": "as it was"}
        assert (sorted(undone.restored), undone.refused) == ([str(d.path / "new"), str(d.path / "old")], [])
        assert undone.removed == [str(d.path / "new")]


async def test_every_version_is_kept_with_where_it_came_from(tmp_path: Path) -> None:
    """B46: nobody could see what a run did, or who took it back."""
    async with desk(tmp_path, go=writing(("old", "2"), ("old", "3"))) as d:
        (d.path / "old").write_text("1")
        run_id = await d.run("go")
        await d.undo(run_id)
        versions = await d.history()
        assert [(v.version, v.origin, v.content, v.run_id) for v in versions] == [
            (1, "before", "1", run_id),
            (2, "after", "2", run_id),
            (3, "after", "3", run_id),
            (4, "undo", "1", run_id),
        ]
        facts = await d.world.facts(d.workspace, "file")
        assert [(row.run, msgspec.json.decode(row.by, type=By)) for row in facts][-1] == ("", SOMEONE)
        assert {row.run for row in facts[:-1]} == {run_id}


async def test_undoing_twice_is_undoing_once(tmp_path: Path) -> None:
    """Who clicks again would be told of failures, or have something else undone."""
    async with desk(tmp_path, go=writing(("a", "1"))) as d:
        run_id = await d.run("go")
        assert (await d.undo(run_id)).restored
        assert await d.undo(run_id) == Undone([], [])
        assert len(await d.history()) == 3


async def test_runs_are_undone_one_after_the_other_down_to_the_start(tmp_path: Path) -> None:
    """People could go back one step and no further."""
    players = {f"p{n}": writing(("a", f"a{n}"), (f"b{n}", "x")) for n in range(4)}
    async with desk(tmp_path, **players) as d:
        (d.path / "a").write_text("start")
        runs = [await d.run(prompt) for prompt in players]
        for number, run_id in reversed(list(enumerate(runs))):
            assert (await d.undo(run_id)).refused == []
            assert d.files()["a"] == (f"a{number - 1}" if number else "start")
        assert d.files() == {"a": "start"}


async def test_what_a_later_run_changed_is_refused_and_the_rest_put_back(tmp_path: Path) -> None:
    """The later run's work would be lost without anyone having asked for that."""
    async with desk(tmp_path, first=writing(("a", "1"), ("b", "1")), second=writing(("a", "2"))) as d:
        first = await d.run("first")
        await d.run("second")
        undone = await d.undo(first)
        assert d.files() == {"a": "2"}
        assert [(Path(file.path).name, "changed since" in file.reason) for file in undone.refused] == [("a", True)]


@pytest.mark.parametrize("change", ["edited", "deleted", "a directory", "a link"])
async def test_what_a_person_did_since_is_refused(tmp_path: Path, change: str) -> None:
    """A20 A21: their work would be lost; or what their link points to be written over."""
    async with desk(tmp_path, go=writing(("a", "1"))) as d:
        run_id = await d.run("go")
        (tmp_path / "elsewhere").write_text("1")
        (d.path / "a").unlink()
        match change:
            case "edited":
                (d.path / "a").write_text("mine")
            case "a directory":
                (d.path / "a").mkdir()
            case "a link":
                (d.path / "a").symlink_to(tmp_path / "elsewhere")
        undone = await d.undo(run_id)
        # A file that was not there before the run, and is gone, is as it was.
        assert [bool(file.reason) for file in undone.refused] == ([] if change == "deleted" else [True])
        assert undone.restored == [] and (tmp_path / "elsewhere").read_text() == "1"


async def test_what_a_person_did_while_the_run_was_going_on_is_refused(tmp_path: Path) -> None:
    """The run's last version has their change in it; what was before the run has not."""

    async def go(stage: Stage) -> None:
        await write(stage, "a", "the agent's")
        await asyncio.to_thread((Path(stage.spec.workspace_path) / "a").write_text, "the agent's and mine")
        await write(stage, "a", "both, and more")

    async with desk(tmp_path, go=go) as d:
        (d.path / "a").write_text("start")
        undone = await d.undo(await d.run("go"))
        assert d.files() == {"a": "both, and more"}
        assert ["while the run was going on" in file.reason for file in undone.refused] == [True]
        assert [v.origin for v in await d.history()] == ["before", "after", "before", "after"]


async def test_what_was_there_before_must_be_known(tmp_path: Path) -> None:
    """An executor of someone else's that does not say would have files emptied or deleted in its name."""

    async def go(stage: Stage) -> None:
        path = Path(stage.spec.workspace_path) / "a"
        await asyncio.to_thread(path.write_text, "1")
        await stage.events.durable(FileWritten(str(path), "1"))

    async with desk(tmp_path, go=go) as d:
        undone = await d.undo(await d.run("go"))
        assert d.files() == {"a": "1"}
        assert [file.reason for file in undone.refused] == ["What it was before the run is not known."]


async def test_a_path_outside_the_workspace_is_refused(tmp_path: Path) -> None:
    """A20: a run that claims to have written a file elsewhere could have it overwritten by an undo."""
    victim = tmp_path / "victim"
    victim.write_text("after")

    async def go(stage: Stage) -> None:
        await stage.events.durable(FileWritten(str(victim), "after", "before"))

    async with desk(tmp_path, go=go) as d:
        undone = await d.undo(await d.run("go"))
        assert ["outside" in file.reason for file in undone.refused] == [True]
        assert victim.read_text() == "after"


async def test_bytes_that_are_no_text_come_back_as_they_were(tmp_path: Path) -> None:
    """A picture that an agent replaced would come back broken."""
    before, after = b"\xff\x00\xfe", b"\x00\x01\xff"

    async def go(stage: Stage) -> None:
        path = Path(stage.spec.workspace_path) / "a"
        await asyncio.to_thread(path.write_bytes, after)
        texts = [base64.b64encode(content).decode() for content in (after, before)]
        await stage.events.durable(FileWritten(str(path), texts[0], texts[1], "base64", "base64"))

    async with desk(tmp_path, go=go) as d:
        assert (await d.undo(await d.run("go"))).refused == []
        assert (d.path / "a").read_bytes() == before


@pytest.mark.parametrize(("content", "encoding"), [("not base64!", "base64"), ("x", "utf-16"), ("\ud800", "")])
async def test_a_content_that_is_none_fails_its_run(tmp_path: Path, content: str, encoding: str) -> None:
    """I15: it could be neither compared nor put back, nor perhaps stored."""

    async def go(stage: Stage) -> None:
        stage.events.emit(FileWritten(f"{stage.spec.workspace_path}/a", content, None, encoding))

    async with desk(tmp_path, go=go) as d:
        assert (await d.workspace.run(await d.run("go"))).state == "failed"
        assert await d.history() == []


async def test_what_a_session_keeps_is_bounded_and_what_is_not_kept_cannot_be_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B45: an agent that rewrites a large file all night would fill the disk."""
    monkeypatch.setattr(limits, "FILE_HISTORY_BYTES", 3_000)
    async with desk(tmp_path, first=writing(("a", "1" * 1_000)), second=writing(("b", "2" * 2_500))) as d:
        (d.path / "b").write_text("b" * 1_500)
        first, second = await d.run("first"), await d.run("second")
        kept = [(v.origin, len(v.content), v.omitted) for v in await d.history()]
        assert kept == [("before", 0, False), ("after", 1_000, False), ("before", 0, True), ("after", 0, True)]
        assert ["was not kept" in file.reason for file in (await d.undo(second)).refused] == [True]
        assert (await d.undo(first)).restored == [str(d.path / "a")]


# -- agents ------------------------------------------------------------------------------------------------------------


async def test_what_a_runs_agents_wrote_is_undone_with_it(tmp_path: Path) -> None:
    """B72: half of what a prompt did would stay, and people would have to know which agent did what."""

    async def root(stage: Stage) -> None:
        await write(stage, "shared", "by the parent")
        await stage.start("child")
        await stage.events.delegate(WaitForAgents())
        await write(stage, "shared", "by the parent again")

    async def child(stage: Stage) -> None:
        await write(stage, "shared", "by the child")
        await write(stage, "own", "by the child")

    async with desk(tmp_path, root=root, child=child) as d:
        (d.path / "shared").write_text("start")
        undone = await d.undo(await d.run("root"))
        assert (undone.refused, d.files()) == ([], {"shared": "start"})


async def test_what_an_agent_did_in_a_worktree_of_its_own_is_left_on_its_branch(tmp_path: Path) -> None:
    """It is not in the people's directory, so there is nothing to put back, and nothing to complain about."""

    async def root(stage: Stage) -> None:
        await stage.start("child", role="builder")
        await stage.events.delegate(WaitForAgents())
        await write(stage, "a", "1")

    async def child(stage: Stage) -> None:
        await stage.events.durable(FileWritten(f"{stage.spec.workspace_path}/a", "elsewhere", None))

    world = EngineWorld(tmp_path, Cast(root=root, child=child), BUILDERS, worktrees=OwnWorktrees())
    async with world:
        workspace = await world.open()
        session_id, run_id = await world.prompted(workspace)
        await world.idle(workspace)
        undone = await undo(workspace, session_id, run_id, BY)
        assert (undone.restored, undone.refused) == ([f"{world.path}/a"], [])


# -- when it may be done -----------------------------------------------------------------------------------------------


async def test_a_run_that_is_not_of_the_session_is_unknown(tmp_path: Path) -> None:
    """A15: another session's work would be undone by whoever knows an id."""
    async with desk(tmp_path, go=writing(("a", "1"))) as d:
        run_id = await d.run("go")
        other = await d.workspace.create_session("", BY)
        for session_id, id in ((other.id, run_id), (d.session_id, "run_unknown"), ("ses_unknown", run_id)):
            with pytest.raises(NotFound):
                await undo(d.workspace, session_id, id, BY)
        assert d.files() == {"a": "1"}


async def test_a_session_that_is_busy_is_not_undone(tmp_path: Path) -> None:
    """A run would find files changed under it; one that is going on has no end to go back from."""
    async with desk(tmp_path, go=writing(("a", "1")), busy=forever) as d:
        done = await d.run("go")
        going_on = (await d.workspace.prompt(Prompt(d.session_id, "busy"), BY)).run_id
        with pytest.raises(Conflict, match="busy"):
            await d.undo(done)
        with pytest.raises(Invalid, match="not over"):
            await d.undo(going_on)
        assert d.files() == {"a": "1"}


async def test_nothing_starts_while_files_are_being_put_back(tmp_path: Path) -> None:
    """A run that begins in between would work on half of the old and half of the new."""
    seen: list[dict[str, str]] = []

    async def look(stage: Stage) -> None:
        seen.append(await asyncio.to_thread(d.files))

    async with desk(tmp_path, go=writing(*((f"f{n}", "x") for n in range(20))), look=look) as d:
        run_id = await d.run("go")
        gate = Gate(d)
        undoing = asyncio.create_task(d.undo(run_id))
        await gate.reached.wait()
        await d.workspace.prompt(Prompt(d.session_id, "look"), BY)
        with pytest.raises(Conflict, match=r"busy|being undone"):
            await d.undo(run_id)
        gate.open()
        assert len((await undoing).restored) == 20
        await d.world.idle(d.workspace)
    assert seen == [{}]


async def test_a_session_that_is_deleted_meanwhile_leaves_nothing_behind(tmp_path: Path) -> None:
    """B45: versions that are recorded after the deletion would stay for ever."""
    async with desk(tmp_path, go=writing(*((f"f{n}", "secret words") for n in range(10)))) as d:
        run_id = await d.run("go")
        gate = Gate(d)
        undoing = asyncio.create_task(d.undo(run_id))
        await gate.reached.wait()
        deleting = asyncio.create_task(d.workspace.delete_session(d.session_id, BY))
        await asyncio.sleep(0)
        gate.open()
        await deleting
        assert undoing.done()
        left = await d.world.journal.read(
            lambda connection: connection.execute("SELECT count(*) FROM files").fetchone()
        )
        assert left == (0,) and await d.world.journal.read(rebuild.compare) == []


async def test_a_caller_that_leaves_does_not_leave_half_of_it(tmp_path: Path) -> None:
    """B02: a phone that loses its connection would leave a directory that is neither old nor new."""
    async with desk(tmp_path, go=writing(*((f"f{n}", "x") for n in range(20)))) as d:
        run_id, gate = await d.run("go"), Gate(d)
        undoing = asyncio.create_task(d.undo(run_id))
        await gate.reached.wait()
        undoing.cancel()
        await asyncio.wait({undoing})
        d.world.registry.retire("client")
        assert not d.workspace.closed, "what is under way keeps it open (I17)"
        gate.open()
        async with asyncio.timeout(10):
            await d.workspace._until_idle(d.session_id)
        assert d.files() == {}


async def test_after_a_restart_the_chain_goes_on_where_it_was(tmp_path: Path) -> None:
    """I15: the version before a run would be kept once more, or the wrong one be put back."""
    async with desk(tmp_path, go=writing(("a", "1"))) as d:
        await d.run("go")
        session_id = d.session_id
    async with EngineWorld(tmp_path, Cast(more=writing(("a", "2")))) as world:
        workspace = await world.open()
        again = Desk(world, workspace, session_id)
        run_id = await again.run("more")
        assert [(v.version, v.origin) for v in await again.history()] == [(1, "before"), (2, "after"), (3, "after")]
        assert (await again.undo(run_id)).restored and again.files() == {"a": "1"}
        assert await world.journal.read(rebuild.compare) == []


async def test_an_undo_is_refused_by_a_server_that_began_to_leave_while_it_was_looked_up(tmp_path: Path) -> None:
    """I17: files would be changed behind a log that is closed, and nobody would be told of it."""
    async with EngineWorld(tmp_path, Cast(root=writing(("a", "new")))) as world:
        workspace = await world.open()
        session_id, run_id = await world.prompted(workspace)
        await world.idle(workspace)
        asked = asyncio.create_task(undo(workspace, session_id, run_id, SOMEONE))
        await asyncio.sleep(0)  # its first step: it reads
        workspace.draining = True
        with pytest.raises(Unavailable):
            await asked
        workspace.draining = False
        assert (Path(world.path) / "a").read_text() == "new"


@pytest.mark.parametrize("is_true", [True, False])
async def test_the_digest_of_a_large_file_is_taken_as_it_was_told(tmp_path: Path, is_true: bool) -> None:
    """Hashing megabytes on the event loop would hold up everyone. One that is wrong loses nobody's work."""
    before, after = "é" * limits.FILE_DIGEST_BYTES, "è" * limits.FILE_DIGEST_BYTES

    async def root(stage: Stage) -> None:
        path = Path(stage.spec.workspace_path) / "a"
        await asyncio.to_thread(path.write_text, after)
        told = digest(after.encode()) if is_true else "0" * 64
        await stage.events.durable(FileWritten(str(path), after, before, "", "", told, digest(before.encode())))

    async with EngineWorld(tmp_path, Cast(root=root)) as world:
        workspace = await world.open()
        session_id, run_id = await world.prompted(workspace)
        await world.idle(workspace)
        undone = await undo(workspace, session_id, run_id, SOMEONE)
        assert bool(undone.restored) is is_true and bool(undone.refused) is not is_true
        text = await asyncio.to_thread((Path(world.path) / "a").read_text)
        assert text == (before if is_true else after)
