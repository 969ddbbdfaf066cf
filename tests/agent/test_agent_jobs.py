"""Commands in the background and the runs that started them: a whole agent with a real shell."""

import asyncio
import json
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from agent_recorders import CancelToken, RecordedEvents, Steers

from windlass import limits
from windlass.assembly import Assembly, protected_paths
from windlass.guardian.handle import Guardian
from windlass.wire.execution import RunSpec
from windlass.wire.messages import ToolResultData
from windlass.wire.run_events import Delta, MessageStart
from windlass.wire.worker import AgentSpec, ProviderSpec


class World:
    """An assembly, an agent that follows a script, and a mark by which to find what it started."""

    def __init__(self, tmp_path: Path, guardian: Guardian) -> None:
        self._guardian = guardian
        self._path = tmp_path
        self.assembly = Assembly(self._spawner)
        self.events = RecordedEvents()
        self.cancel = CancelToken()
        self.mark = f"0.{secrets.randbelow(10**15):015d}"
        (tmp_path / "space").mkdir()

    async def _spawner(self) -> Guardian:
        return self._guardian

    def agent(self, *replies: list[dict[str, Any]], name: str = "script.json", **more: Any) -> AgentSpec:
        script = self._path / name
        script.write_text(json.dumps({"rules": [{"match": "*", "replies": replies}]}))
        provider = ProviderSpec("scripted", "scripted", script=str(script))
        self.assembly.model(provider)  # it reads its script here, where nobody waits
        return AgentSpec(provider, **more)

    def spec(self, run_id: str = "run", **more: Any) -> RunSpec:
        return RunSpec(run_id, "ses", "ses", str(self._path / "space"), "go", [], model="scripted/x", **more)

    async def run(self, agent: AgentSpec, **more: Any) -> str:
        executor = self.assembly.executor(agent)
        outcome = await executor.run(self.spec(**more), self.events, Steers(), self.cancel)  # type: ignore[arg-type]
        return outcome.status

    @property
    def sleeper(self) -> dict[str, Any]:
        return {"tool": "bash", "input": {"command": f"echo up; sleep 3600 {self.mark}", "background": True}}

    @property
    def alive(self) -> int:
        count = 0
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    count += f"\0{self.mark}\0".encode() in Path(f"/proc/{name}/cmdline").read_bytes()
                except OSError:
                    pass
        return count

    @property
    def results(self) -> list[ToolResultData]:
        return self.events.results()  # streamed or not: that is a matter of how soon a command is done


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(limits, "JOB_SETTLE_SECONDS", 0.3)
    guardian = await Guardian.start()
    world = World(tmp_path, guardian)
    yield world
    await world.assembly.aclose()
    await guardian.aclose()


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)


async def test_a_run_that_completes_leaves_its_jobs_to_the_next(world: World) -> None:
    """A development server would end with the answer that says that it runs."""
    assert await world.run(world.agent([world.sleeper], [{"say": "It runs."}])) == "completed"
    await until(lambda: world.alive == 1)  # its result may come before it has become what is looked for
    world.assembly.let_go("ses")
    await until(lambda: world.alive == 0)


@pytest.mark.parametrize("how", ["by the token", "by force"])
async def test_a_run_that_is_cancelled_ends_its_jobs(world: World, how: str) -> None:
    """B18: what the user stopped would go on."""
    agent = world.agent([world.sleeper], [{"pause_ms": 60_000}, {"say": "late"}])
    running = asyncio.create_task(world.run(agent))
    await until(lambda: bool(world.results))
    await until(lambda: world.alive == 1)
    if how == "by the token":
        world.cancel.request()
        assert await running == "canceled"
    else:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert world.alive == 0


async def test_the_jobs_of_a_sub_agent_end_with_its_run(world: World) -> None:
    """Nobody could look at them or end them: its parent has a session of its own."""
    await world.run(world.agent([world.sleeper], [{"say": "Done."}]), roles=("general",))
    assert world.alive == 0


async def test_jobs_in_a_worker_end_with_the_assignment(world: World) -> None:
    """The worker's next run is of another session, or the process ends."""
    world.assembly = Assembly(world._spawner, keeps_jobs=False)
    await world.run(world.agent([world.sleeper], [{"say": "Done."}]))
    assert world.alive == 0


async def test_what_a_command_says_is_streamed_and_then_its_result(world: World) -> None:
    """People would see nothing until the end, or other words than the model."""
    await world.run(
        world.agent([{"tool": "bash", "input": {"command": "echo one; sleep 0.3; echo two"}}], [{"say": "."}])
    )
    messages = [
        event.message_id for event in world.events.all if isinstance(event, MessageStart) and event.role == "tool"
    ]
    shown = "".join(
        event.text for event in world.events.all if isinstance(event, Delta) and event.message_id in messages
    )
    assert shown in ("one\n", "one\ntwo\n")
    assert [result.content for result in world.results] == ["one\ntwo\n[exit code 0]"]


async def test_the_agent_confines_its_commands(world: World, tmp_path: Path) -> None:
    """A30: the description says what is protected, and nobody would put up the fence."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "token").write_text("canary")
    agent = world.agent(
        [{"tool": "bash", "input": {"command": "cat ../data/token"}}],
        [{"say": "."}],
        sandbox="require",
        protected_paths=protected_paths(tmp_path / "data", None),
    )
    await world.run(agent)
    assert world.events.asks[0].confined
    assert "Permission denied" in world.results[0].content and "canary" not in world.results[0].content


async def test_a_read_only_agent_has_no_commands(world: World) -> None:
    """A31: it would have a tool for jobs that it cannot start."""
    await world.run(world.agent([world.sleeper, {"tool": "job_output"}], [{"say": "."}], read_only=True))
    assert world.alive == 0
    refused = [
        event.parts[0].data.content for event in world.events.all if isinstance(event, MessageStart) and event.parts
    ]
    assert all("There is no tool" in words for words in refused) and len(refused) == 2


async def test_looking_at_a_job_again_and_again_is_waiting(world: World) -> None:
    """An agent that looks after a long build would be told that it goes in circles, and the build with it be lost."""
    await world.run(world.agent([world.sleeper], [{"say": "It runs."}]))
    (started,) = world.results
    look = [{"tool": "job_output", "input": {"id": json.loads(started.metadata)["job"]}}]
    looks = [look] * (2 * limits.IDENTICAL_STEPS)
    assert await world.run(world.agent(*looks, [{"say": "Enough."}], name="again.json"), run_id="next") == "completed"
    told = [result.content for result in world.events.results()]
    assert len(set(told[-limits.IDENTICAL_STEPS :])) == 1  # or this shows nothing
