"""What a rule or an earlier answer allows: on disk before a tool runs, also after a restart."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from engine_world import EngineWorld, Playing

from windlass.config import Config, PermissionsConfig
from windlass.engine.workspace import Workspace
from windlass.errors import Invalid
from windlass.journal import maintenance
from windlass.wire.execution import Events, PermissionAsk, RunOutcome, Verdict
from windlass.wire.http import Prompt
from windlass.wire.permissions import By

ANN = By("ann", "c1")


class Asker:
    """An executor that asks for the commands it was given, one after the other, and keeps what it was told."""

    def __init__(self, *commands: str) -> None:
        self.commands = list(commands)
        self.told: list[Verdict] = []
        self.facts_seen: list[int] = []

    def __call__(self, workspace: Workspace, *_: object) -> Playing:
        async def play(events: Events) -> RunOutcome:
            for command in self.commands:
                ask = PermissionAsk("call", "bash", "execute", "Run it", "/", command, {"command": command})
                self.told.append(await events.approve(ask))
                self.facts_seen.append(workspace.log.published)
            return RunOutcome("completed")

        return Playing(play)


async def notes(world: EngineWorld, workspace: Workspace) -> list[tuple[str, str, str]]:
    bodies: list[dict[str, Any]] = [
        msgspec.json.decode(row.body) for row in await world.facts(workspace, "permission_notification")
    ]
    return [(body["outcome"], body["by"]["name"], body["pattern"]) for body in bodies]


async def answer_next(world: EngineWorld, workspace: Workspace, pattern: str) -> None:
    (id,) = await pending(workspace)
    assert await workspace.desk.resolve(id, "allow_session", ANN, pattern)
    await world.idle(workspace)


async def pending(workspace: Workspace) -> list[str]:
    async with asyncio.timeout(10):
        while not workspace.log.permissions:
            await workspace.log.changed(asyncio.get_running_loop().create_future())
    return list(workspace.permissions.pending)


async def test_a_typed_pattern_survives_a_restart_and_grows_by_nothing(tmp_path: Path) -> None:
    """B26 A28 I15: a restart would forget what people allowed, or remember more than they typed."""
    async with EngineWorld(tmp_path, Asker("npm test")) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        await answer_next(world, workspace, "npm test*")
    asker = Asker("npm test -- -u", "npm test; rm x", "npm install")
    config = Config(model="x/y", permissions=PermissionsConfig(unattended="deny"))
    async with EngineWorld(tmp_path, asker, config) as world:
        workspace = await world.open()
        await workspace.prompt(Prompt(session_id, "go"), ANN)
        for _ in asker.commands[1:]:
            (id,) = await pending(workspace)
            assert await workspace.desk.resolve(id, "deny", ANN)
            assert not workspace.log.permissions
        await world.idle(workspace)
        assert asker.told == ["granted", "denied", "denied"]
        granted = [note for note in await notes(world, workspace) if note[0] == "granted"]
        assert granted == [("granted", "ann", "npm test*"), ("granted", "grant", "npm test*")]
    assert maintenance.check(tmp_path / "data" / "journal.db") == []


async def test_a_pattern_that_does_not_fit_leaves_the_question_open(tmp_path: Path) -> None:
    """I10: a slip of the keyboard would let the run go on."""
    asker = Asker("npm test; rm x")
    async with EngineWorld(tmp_path, asker) as world:
        workspace = await world.open()
        await world.prompted(workspace)
        (id,) = await pending(workspace)
        with pytest.raises(Invalid, match="simple command"):
            await workspace.desk.resolve(id, "allow_session", ANN, "npm test*")
        assert (asker.told, list(workspace.permissions.pending)) == ([], [id])
        assert await workspace.desk.resolve(id, "deny", ANN)
        await world.idle(workspace)
        assert asker.told == ["denied"]


async def test_what_a_rule_decides_is_on_disk_before_the_tool_hears_of_it(tmp_path: Path) -> None:
    """I10 B46: a crash could take away the only trace of why a command ran."""
    asker = Asker("git status", "rm x")
    rules = PermissionsConfig(allow=("bash:git status*", "*"), deny=("bash:rm *",))
    async with EngineWorld(tmp_path, asker, Config(model="x/y", permissions=rules)) as world:
        workspace = await world.open()
        await world.ran(workspace)
        rows = await world.facts(workspace, "permission_notification")
        assert asker.told == ["granted", "denied"]
        assert [seen >= row.seq for seen, row in zip(asker.facts_seen, rows, strict=True)] == [True, True]
        assert await notes(world, workspace) == [
            ("granted", "policy", "bash:git status*"),
            ("denied", "policy", "bash:rm *"),
        ]


async def test_skipping_questions_does_not_skip_a_deny_that_hides_in_a_line(tmp_path: Path) -> None:
    """I10 A28: with asking switched off, two more words would get a command past the rule against it."""
    asker = Asker("ls", "cd a && rm x", "sh -c 'rm x'")
    rules = PermissionsConfig(deny=("bash:rm *",))
    async with EngineWorld(tmp_path, asker, Config(model="x/y", permissions=rules)) as world:
        workspace = await world.open()
        await workspace.set_skip(True, ANN)
        await world.ran(workspace)
        assert asker.told == ["granted", "denied", "denied"]


async def test_an_allow_for_everything_needs_no_second_word(tmp_path: Path) -> None:
    """`allow = ["*"]` would be asked about as if nothing had been said."""
    asker = Asker("anything; at all")
    rules = PermissionsConfig(allow=("*",))
    async with EngineWorld(tmp_path, asker, Config(model="x/y", permissions=rules)) as world:
        await world.ran(await world.open())
        assert asker.told == ["granted"]
