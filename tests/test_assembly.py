"""Agents out of the configuration that a run keeps."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from windlass import assembly
from windlass.config import AgentConfig, Config, ModelConfig, ProviderConfig, RoleConfig
from windlass.errors import Invalid
from windlass.tools.files import WorkspaceRoot
from windlass.wire.execution import RunSpec

PROVIDERS = {"x": ProviderConfig("scripted")}


def spec(*roles: str, **fields: Any) -> RunSpec:
    whole = {"workspace_path": "/home/me/space", "prompt": "go", "messages": [], "model": "x/y", **fields}
    return RunSpec("run_1", "ses_2", "ses_1", roles=roles, **whole)


def test_a_role_that_is_gone_fails_the_run() -> None:
    """A31: with a role of our own making in its place, an agent that was to read only would have every tool."""
    with pytest.raises(Invalid, match="reader is no longer in the configuration"):
        assembly.agent_spec(Config(model="x/y", providers=PROVIDERS), spec("reader", "general"))


def test_an_agent_has_no_more_than_every_role_above_it_allows() -> None:
    """A31: a read-only agent could start one that writes."""
    roles = {"reader": RoleConfig(read_only=True, tools=("view", "agent"))}
    made = assembly.agent_spec(Config(model="x/y", providers=PROVIDERS, roles=roles), spec("reader", "general"))
    assert (made.read_only, made.tools) == (True, (("*",), ("view", "agent"), ("*",)))


SMALL = {**PROVIDERS, "z": ProviderConfig("scripted", models=[ModelConfig("tiny", input_price=2.0)])}


@pytest.mark.parametrize(
    ("small_model", "wants_title", "made"),
    [
        ("", True, (None, "")),
        ("x/mini", True, (None, "mini")),
        ("x/mini", False, (None, "mini")),
        ("z/tiny", True, ("z", "tiny")),
        ("z/tiny", False, (None, "")),
    ],
)
def test_a_key_is_given_only_to_a_run_that_needs_it(
    small_model: str, wants_title: bool, made: tuple[str | None, str]
) -> None:
    """A39: every worker would hold the key of a provider that it has nothing to ask."""
    settings = Config(model="x/y", small_model=small_model, providers=SMALL)
    agent = assembly.agent_spec(settings, spec(wants_title=wants_title))
    assert (agent.small and agent.small.name, agent.small_model) == made
    child = assembly.agent_spec(settings, spec("general", wants_title=wants_title))
    assert (child.small, child.small_model) == (None, "")


async def test_the_bounds_of_the_config_are_those_of_a_run(tmp_path: Path) -> None:
    """Otherwise a limit that a person set would be one in name only."""
    limited = AgentConfig(max_tokens=10, max_cost=0.5, max_time="90s", max_steps=7)
    blind = ProviderConfig("scripted", models=[ModelConfig("y", images=False)])
    settings = Config(model="x/y", providers={"x": blind}, agent=limited)
    agent = assembly.agent_spec(settings, spec())
    root = await asyncio.to_thread(WorkspaceRoot, str(tmp_path))
    made = assembly.Assembly(lambda: asyncio.sleep(0)).settings(agent, spec(), root)  # type: ignore[arg-type, return-value]
    root.close()
    assert (made.max_tokens, made.max_cost, made.max_seconds, made.max_steps) == (10, 0.5, 90.0, 7)
    assert made.images is False
