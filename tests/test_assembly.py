"""Agents out of the configuration that a run keeps."""

import pytest

from windlass import assembly
from windlass.config import Config, ProviderConfig, RoleConfig
from windlass.errors import Invalid
from windlass.wire.execution import RunSpec

PROVIDERS = {"x": ProviderConfig("scripted")}


def spec(*roles: str) -> RunSpec:
    return RunSpec("run_1", "ses_2", "ses_1", "/home/me/space", "go", [], model="x/y", roles=roles)


def test_a_role_that_is_gone_fails_the_run() -> None:
    """A31: with a role of our own making in its place, an agent that was to read only would have every tool."""
    with pytest.raises(Invalid, match="reader is no longer in the configuration"):
        assembly.agent_spec(Config(model="x/y", providers=PROVIDERS), spec("reader", "general"))


def test_an_agent_has_no_more_than_every_role_above_it_allows() -> None:
    """A31: a read-only agent could start one that writes."""
    roles = {"reader": RoleConfig(read_only=True, tools=("view", "agent"))}
    made = assembly.agent_spec(Config(model="x/y", providers=PROVIDERS, roles=roles), spec("reader", "general"))
    assert (made.read_only, made.tools) == (True, (("*",), ("view", "agent"), ("*",)))
