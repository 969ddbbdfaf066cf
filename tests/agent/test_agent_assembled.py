"""An agent as it is assembled: the config, a real directory and the real tools, with the ports of its run in memory."""

from pathlib import Path
from typing import Any

import msgspec
from agent_recorders import Harness, ToldModel
from agent_recorders import spec as run_spec

from windlass import assembly
from windlass.config import Config, ProviderConfig
from windlass.wire.execution import RunOutcome
from windlass.wire.model import FinishChunk, ModelRequest, TextChunk

SETTINGS = Config(model="x/y", providers={"x": ProviderConfig("scripted")})


async def asked_in(directory: Path, **fields: Any) -> ModelRequest:
    """What the model is sent in one run in this directory."""

    async def no_commands() -> Any:
        raise AssertionError("nothing is run here")

    kept = ToldModel(lambda request: [TextChunk("ok"), FinishChunk("end_turn")])
    harness = Harness(kept)
    run = run_spec(workspace_path=str(directory), model="x/y", **fields)
    agent = assembly.agent_spec(SETTINGS, run)
    made = assembly.Assembly(no_commands)
    made._models[msgspec.json.encode(agent.provider)] = kept
    outcome = await made.executor(agent).run(run, harness.events, harness.steers, harness.cancel)
    assert outcome == RunOutcome("completed")
    await made.aclose()
    return kept.requests[-1]


async def test_the_notes_of_the_project_are_in_the_prompt_of_each_run(tmp_path: Path) -> None:
    """Otherwise an agent would not know how the project it works on is built and tested."""
    (tmp_path / "AGENTS.md").write_text("Run make check.")
    request = await asked_in(tmp_path)
    assert request.system.endswith("Run make check.")


async def test_a_run_that_plans_is_offered_nothing_that_changes_anything(tmp_path: Path) -> None:
    """Otherwise plan mode would be a wish."""
    request = await asked_in(tmp_path, plan=True)
    offered = {tool.name for tool in request.tools}
    assert {"view", "ls", "agent", "question", "todos"} <= offered
    assert not offered & {"write", "edit", "multiedit", "bash", "job_kill"}
