"""Builds agents from their description, for the server and for a worker alike: one way, whichever process it is in.

Beside `app.py` and `worker_app.py` the only file that knows the agent, the models and the tools together.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from windlass import config, limits
from windlass.agent.executor import AgentExecutor
from windlass.agent.prompt import system_prompt
from windlass.agent.settings import AgentSettings, Prices
from windlass.errors import Invalid
from windlass.guardian.handle import Guardian
from windlass.ids import new_id
from windlass.models.providers import build_model
from windlass.tools.agent import Agent
from windlass.tools.bash import Bash
from windlass.tools.edit import Edit
from windlass.tools.environment import child_environment
from windlass.tools.files import WorkspaceRoot
from windlass.tools.ls import Ls
from windlass.tools.registry import ToolRegistry
from windlass.tools.view import View
from windlass.tools.write import Write
from windlass.wire.execution import Cancel, Events, Executor, RunOutcome, RunSpec, Steer
from windlass.wire.model import Model
from windlass.wire.tools import Process, Spawner, Tool
from windlass.wire.worker import AgentSpec, ModelSpec, ProviderSpec, RoleSpec, WorkerSpec

SpawnerSource = Callable[[], Awaitable[Spawner]]


class Assembly:
    """Makes executors. Models are shared by all runs that use the same provider, so that connections are too."""

    def __init__(self, spawner: SpawnerSource) -> None:
        self._spawner = spawner
        self._models: dict[bytes, Model] = {}

    def executor(self, agent: AgentSpec, local_root: str = "") -> Executor:
        """An agent for one run. `local_root`: where the workspace is on this machine, if not where its owner says."""
        return _RootedAgent(self, agent, local_root)

    def model(self, provider: ProviderSpec) -> Model:
        """The model behind a provider; raises Invalid when its description cannot work."""
        key = msgspec.json.encode(provider)
        if key not in self._models:
            try:
                self._models[key] = build_model(
                    provider.name, provider.type, base_url=provider.base_url, key=provider.key, script=provider.script
                )
            except ValueError as error:
                raise Invalid(str(error)) from None
        return self._models[key]

    def settings(self, agent: AgentSpec, spec: RunSpec, root: WorkspaceRoot) -> AgentSettings:
        provider, _, model_name = spec.model.partition("/")
        known = {model.id: model for model in agent.provider.models}
        model = known.get(model_name, ModelSpec(model_name))
        return AgentSettings(
            model=self.model(agent.provider),
            model_name=model_name,
            provider_name=provider,
            tools=lambda spec, events: self._tools(agent, root, events),
            new_message_id=lambda: new_id("msg"),
            prompt=lambda path, names: system_prompt(path, names, agent.instructions, agent.is_child),
            max_steps=agent.max_steps or limits.RUN_STEPS,
            context_window=model.context_window,
            default_max_tokens=model.default_max_tokens,
            prices=Prices(
                model.input_price,
                model.output_price,
                # A price nobody gave is not nought: what comes out of a cache costs no more than what is sent anew.
                model.cache_read_price or model.input_price,
                model.cache_write_price or model.input_price,
            ),
        )

    def _tools(self, agent: AgentSpec, root: WorkspaceRoot, events: Events) -> list[Tool]:
        environment = child_environment(dict(os.environ))
        tools: list[Tool] = [
            View(root),
            Ls(root),
            Write(root),
            Edit(root),
            Bash(root, LazySpawner(self._spawner), environment),
        ]
        if agent.roles:
            tools.append(Agent(events.delegate, agent.roles))
        if agent.read_only:
            tools = [tool for tool in tools if tool.read_only]
        # A tool must be allowed at every level: a child never has one that its parent has not (A31).
        allowed = [
            tool
            for tool in tools
            if all(any(fnmatchcase(tool.name, pattern) for pattern in patterns) for patterns in agent.tools)
        ]
        return list(ToolRegistry(allowed))

    async def aclose(self) -> None:
        for model in self._models.values():
            await model.aclose()


class _RootedAgent:
    """An agent that holds its directory open for the length of one run."""

    def __init__(self, assembly: Assembly, agent: AgentSpec, local_root: str) -> None:
        self._assembly = assembly
        self._agent = agent
        self._local_root = local_root

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        if self._local_root:
            spec = msgspec.structs.replace(spec, workspace_path=self._local_root)
        # In a thread: a directory on a network can take its time, and everyone would wait.
        root = await asyncio.to_thread(WorkspaceRoot, spec.workspace_path)
        try:
            settings = self._assembly.settings(self._agent, spec, root)
            return await AgentExecutor(settings).run(spec, events, steer, cancel)
        finally:
            root.close()


class LazySpawner:
    """Starts its guardian with the first command: most workers never run one."""

    def __init__(self, source: SpawnerSource) -> None:
        self._source = source

    async def spawn(self, argv: Sequence[str], *, cwd: str, env: dict[str, str]) -> Process:
        return await (await self._source()).spawn(argv, cwd=cwd, env=env)


# -- descriptions out of the config ------------------------------------------------------------------------------------


def agent_spec(settings: config.Config, spec: RunSpec) -> AgentSpec:
    """What the agent of one run is made of, by the config that this run keeps and the roles of its lineage."""
    provider_name = spec.model.partition("/")[0]
    provider = settings.providers.get(provider_name)
    if provider is None:
        raise Invalid(f"The provider {provider_name} is no longer in the configuration.")
    roles = [_known_role(settings, name) for name in spec.roles]
    may_delegate = len(spec.roles) < settings.agents.max_depth
    return AgentSpec(
        provider=provider_spec(provider_name, provider),
        tools=(settings.agent.allowed_tools, *(role.tools for role in roles)),
        read_only=any(role.read_only for role in roles),
        instructions=roles[-1].prompt if roles else "",
        is_child=bool(roles),
        max_steps=settings.agent.max_steps,
        max_seconds=config.parse_duration(settings.agent.max_time),
        max_tokens=settings.agent.max_tokens,
        max_cost=settings.agent.max_cost,
        mcp=any(not server.disabled for server in settings.mcp.values()),
        fetch_private=settings.fetch.allow_private,
        roles=_offered(settings) if may_delegate else (),
    )


def _known_role(settings: config.Config, name: str) -> config.RoleConfig:
    role = settings.role(name)
    if role is None:
        # Never a role of our own making: what was to be read-only would have every tool.
        raise Invalid(f"The role {name} is no longer in the configuration.")
    return role


def provider_spec(name: str, provider: config.ProviderConfig) -> ProviderSpec:
    models = tuple(
        ModelSpec(
            model.id,
            model.context_window,
            model.default_max_tokens,
            model.input_price,
            model.output_price,
            model.cache_read_price,
            model.cache_write_price,
            model.images,
        )
        for model in provider.models
    )
    return ProviderSpec(name, provider.type, provider.base_url, provider.key(), provider.script, models)


def _offered(settings: config.Config) -> tuple[RoleSpec, ...]:
    return tuple(RoleSpec(name, role.description) for name, role in sorted(settings.all_roles.items()))


# -- in a worker -------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def agent_executor_factory(spec: WorkerSpec) -> AsyncIterator[Callable[[], Executor]]:
    """Agents for a worker: each run gets a new one. What they start ends with this, at the latest."""
    if spec.agent is None:
        raise Invalid("The worker was told to be an agent, but not which: its description has no `agent`.")
    agent = spec.agent
    async with contextlib.AsyncExitStack() as stack:
        guardian = _OneGuardian(stack)
        assembly = Assembly(guardian.get)
        stack.push_async_callback(assembly.aclose)
        assembly.model(agent.provider)  # one that cannot work is said now, not in the first run
        yield lambda: assembly.executor(agent, spec.workspace_path)


class _OneGuardian:
    """The worker's own guardian, started when it is first needed."""

    def __init__(self, stack: contextlib.AsyncExitStack) -> None:
        self._stack = stack
        self._starting: asyncio.Task[Guardian] | None = None

    async def get(self) -> Guardian:
        # Also one that was cancelled: what a run leaves behind is, and it may have been the first to need a guardian.
        if self._starting is None or (
            self._starting.done() and (self._starting.cancelled() or self._starting.exception() is not None)
        ):
            self._starting = asyncio.create_task(Guardian.start(), name="start the guardian")
            self._stack.push_async_callback(self._close, self._starting)
        # Shielded: the run that asked first may be cancelled, and another may be waiting for the same guardian.
        return await asyncio.shield(self._starting)

    async def _close(self, starting: "asyncio.Task[Guardian]") -> None:
        await asyncio.wait({starting})
        if not starting.cancelled() and starting.exception() is None:
            await starting.result().aclose()


def default_worker_spec(config_file: Path | None = None) -> WorkerSpec:
    """An agent worker that a person starts by hand: the user's own config, in the directory it was started in."""
    settings = config.load(config_file)
    path = os.getcwd()
    run = RunSpec("", "", "", path, "", [], model=settings.model)
    agent = msgspec.structs.replace(agent_spec(settings, run), roles=())
    return WorkerSpec(secret="", executor="agent", identity="agent", workspace_path=path, agent=agent)
