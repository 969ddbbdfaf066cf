"""Builds agents from their description, for the server and for a worker alike: one way, whichever process it is in.

Beside `app.py` and `worker_app.py` the only file that knows the agent, the models and the tools together.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec
import structlog

from windlass import config, limits
from windlass.agent.executor import AgentExecutor
from windlass.agent.instructions import project_notes
from windlass.agent.prompt import system_prompt
from windlass.agent.settings import AgentSettings, Prices, SmallModel
from windlass.errors import Invalid
from windlass.guardian.handle import Guardian
from windlass.ids import new_id
from windlass.mcp.spec import ServerSpec
from windlass.models.catalogue import ModelProfile, models_of, profile
from windlass.models.known_providers import is_known_address
from windlass.models.providers import build_model
from windlass.tools.agent import Agent
from windlass.tools.bash import Bash
from windlass.tools.confinement import confinement
from windlass.tools.environment import child_environment
from windlass.tools.fetch import Fetch
from windlass.tools.file_tools import file_tools
from windlass.tools.files import WorkspaceRoot
from windlass.tools.job_kill import JobKill
from windlass.tools.job_output import JobOutput
from windlass.tools.jobs import Jobs
from windlass.tools.mcp import mcp_tools
from windlass.tools.question import AskPeople
from windlass.tools.registry import ToolRegistry
from windlass.tools.todos import Todos
from windlass.tools.whereabouts import last_directory
from windlass.wire.delegation import ListMcpTools, McpTool
from windlass.wire.execution import Cancel, Events, Executor, RunOutcome, RunSpec, Steer
from windlass.wire.model import Model
from windlass.wire.tools import Fence, Process, Spawner, Tool
from windlass.wire.worker import AgentSpec, ModelSpec, ProviderSpec, RoleSpec, WorkerSpec

logger = structlog.get_logger("windlass.assembly")
SpawnerSource = Callable[[], Awaitable[Spawner]]


class Assembly:
    """Makes executors. Models are shared by all runs that use the same provider, so that connections are too."""

    def __init__(self, spawner: SpawnerSource, *, keeps_jobs: bool = True) -> None:
        """`keeps_jobs`: whether commands in the background go on after their run."""
        self._jobs = Jobs(LazySpawner(spawner))
        self._keeps_jobs = keeps_jobs
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

    def settings(
        self, agent: AgentSpec, spec: RunSpec, root: WorkspaceRoot, notes: str = "", offered: Sequence[McpTool] = ()
    ) -> AgentSettings:
        """What the agent of one run is made of; `notes` are the project's own, as `project_notes` gives them.

        `offered` are the tools of MCP servers that the owner of the run has.
        """
        provider, _, model_name = spec.model.partition("/")
        model = _known_model(agent.provider, model_name)
        return AgentSettings(
            model=self.model(agent.provider),
            model_name=model_name,
            provider_name=provider,
            tools=lambda spec, events: self._tools(agent, spec, root, events, offered),
            new_message_id=lambda: new_id("msg"),
            prompt=lambda path, names, plan: system_prompt(
                path, names, plan, instructions=agent.instructions, is_child=agent.is_child, notes=notes
            ),
            max_steps=agent.max_steps or limits.RUN_STEPS,
            max_seconds=agent.max_seconds,
            max_tokens=agent.max_tokens,
            max_cost=agent.max_cost,
            images=model.images,
            small=self._small(agent),
            context_window=model.context_window,
            default_max_tokens=model.default_max_tokens,
            prices=_prices(model),
        )

    def _small(self, agent: AgentSpec) -> SmallModel | None:
        if not agent.small_model:
            return None
        provider = agent.small or agent.provider
        return SmallModel(self.model(provider), agent.small_model, _prices(_known_model(provider, agent.small_model)))

    def _tools(
        self, agent: AgentSpec, spec: RunSpec, root: WorkspaceRoot, events: Events, offered: Sequence[McpTool]
    ) -> list[Tool]:
        environment = child_environment(dict(os.environ))
        tools: list[Tool] = [
            *file_tools(root, spec.messages, environment),
            *self._commands(agent, spec, root, environment),
            AskPeople(events.delegate),
            Todos(events.emit),
            Fetch(agent.fetch_private),
        ]
        if agent.roles:
            tools.append(Agent(events.delegate, agent.roles))
        tools += mcp_tools(offered, events.delegate, {tool.name for tool in tools})
        if agent.read_only:
            tools = [tool for tool in tools if tool.read_only]
        # A tool must be allowed at every level: a child never has one that its parent has not (A31).
        allowed = [
            tool
            for tool in tools
            if all(any(fnmatchcase(tool.name, pattern) for pattern in patterns) for patterns in agent.tools)
        ]
        return list(ToolRegistry(allowed))

    def _commands(
        self, agent: AgentSpec, spec: RunSpec, root: WorkspaceRoot, environment: dict[str, str]
    ) -> list[Tool]:
        if agent.read_only:
            return []  # it has no command to look at either
        confined = confinement(agent.sandbox, agent.protected_paths, agent.protected_ports, root.path)
        jobs = self._jobs.view(spec.session_id, spec.run_id)
        bash = Bash(root, jobs, environment, confined, last_directory(spec.messages))
        return [bash, JobOutput(jobs), JobKill(jobs)]

    async def end_jobs(self, spec: RunSpec, outcome: RunOutcome | None) -> None:
        """End what a run left in the background, unless it completed and its session has someone to look after it."""
        is_over = outcome is None or outcome.status == "canceled"
        if is_over or spec.roles or not self._keeps_jobs:
            await self._jobs.end_run(spec.run_id)

    def let_go(self, session_id: str) -> None:
        """A session is deleted, or its workspace closes: what it left in the background ends."""
        self._jobs.let_go(session_id)

    async def aclose(self) -> None:
        await self._jobs.aclose()
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
        outcome = None
        try:
            notes = await asyncio.to_thread(project_notes, root)
            offered = await _offered_tools(events, cancel) if self._agent.mcp and spec.purpose == "prompt" else ()
            settings = self._assembly.settings(self._agent, spec, root, notes, offered)
            outcome = await AgentExecutor(settings).run(spec, events, steer, cancel)
            return outcome
        finally:
            root.close()
            await self._assembly.end_jobs(spec, outcome)


async def _offered_tools(events: Events, cancel: Cancel) -> Sequence[McpTool]:
    """What the MCP servers of the run's owner offer. A run that is cancelled while they start does not wait for it."""
    asked = asyncio.ensure_future(events.delegate(ListMcpTools()))
    stop = asyncio.ensure_future(cancel.wait())
    try:
        await asyncio.wait((asked, stop), return_when=asyncio.FIRST_COMPLETED)
    finally:
        asked.cancel()
        stop.cancel()
        await asyncio.wait((asked, stop))
    if asked.cancelled():
        return ()
    reply = asked.result()
    if reply.error:
        logger.warning("a run goes on without tools of MCP servers", why=reply.error)
    return reply.mcp_tools


def _known_model(provider: ProviderSpec, name: str) -> ModelSpec:
    """What the config says of a model, filled in; of one that it does not mention, what the catalogue knows."""
    said = {model.id: model for model in provider.models}.get(name)
    return said or _model_spec(profile(name, provider.base_url))


def _prices(model: ModelSpec) -> Prices:
    # A price nobody gave is not nought: what comes out of a cache costs no more than what is sent anew.
    read, write = model.cache_read_price or model.input_price, model.cache_write_price or model.input_price
    return Prices(model.input_price, model.output_price, read, write)


class LazySpawner:
    """Starts its guardian with the first command: most workers never run one."""

    def __init__(self, source: SpawnerSource) -> None:
        self._source = source

    async def spawn(self, argv: Sequence[str], *, cwd: str, env: dict[str, str], fence: Fence | None = None) -> Process:
        return await (await self._source()).spawn(argv, cwd=cwd, env=env, fence=fence)


# -- descriptions out of the config ------------------------------------------------------------------------------------


def agent_spec(settings: config.Config, spec: RunSpec) -> AgentSpec:
    """What the agent of one run is made of, by the config that this run keeps and the roles of its lineage."""
    provider_name = spec.model.partition("/")[0]
    provider = settings.providers.get(provider_name)
    if provider is None:
        raise Invalid(f"The provider {provider_name} is no longer in the configuration.")
    roles = [_known_role(settings, name) for name in spec.roles]
    may_delegate = len(spec.roles) < settings.agents.max_depth
    small, small_model = _small_model(settings, spec)
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
        small=small,
        small_model=small_model,
        mcp=any(not server.disabled for server in settings.mcp.values()),
        fetch_private=settings.fetch.allow_private,
        sandbox=settings.bash.sandbox,
        roles=_offered(settings) if may_delegate else (),
    )


def _small_model(settings: config.Config, spec: RunSpec) -> tuple[ProviderSpec | None, str]:
    """What finds a title. Another provider's only for a run that wants one: a worker gets no key it does not need."""
    name, _, model = settings.small_model.partition("/")
    provider = settings.providers.get(name)
    if spec.roles or provider is None:
        return None, ""
    if name == spec.model.partition("/")[0]:
        return None, model
    return (provider_spec(name, provider), model) if spec.wants_title else (None, "")


def _known_role(settings: config.Config, name: str) -> config.RoleConfig:
    role = settings.role(name)
    if role is None:
        # Never a role of our own making: what was to be read-only would have every tool.
        raise Invalid(f"The role {name} is no longer in the configuration.")
    return role


def provider_spec(name: str, provider: config.ProviderConfig) -> ProviderSpec:
    models = tuple(_model_spec(profile(model.id, provider.base_url, model.said)) for model in provider.models)
    return ProviderSpec(name, provider.type, provider.base_url, provider.key(), provider.script, models)


def _model_spec(model: ModelProfile) -> ModelSpec:
    return ModelSpec(
        model.id,
        model.context_window,
        model.default_max_tokens,
        model.input_price,
        model.output_price,
        model.cache_read_price,
        model.cache_write_price,
        model.images,
    )


def model_profiles(settings: config.Config, name: str) -> list[ModelProfile]:
    """The models a provider offers: those that the config lists, else those that the catalogue knows of it.

    Those that the config chooses are always among them.
    """
    provider = settings.providers[name]
    listed: dict[str, dict[str, Any]] = {model.id: model.said for model in provider.models}
    if not listed and is_known_address(name, provider.base_url):
        listed = {model.id: {} for model in models_of(name)}
    chosen = (settings.model, settings.small_model, *(role.model for role in settings.roles.values()))
    used = [model.removeprefix(f"{name}/") for model in chosen if model.startswith(f"{name}/")]
    return [profile(id, provider.base_url, listed.get(id)) for id in dict.fromkeys([*used, *listed])]


def _offered(settings: config.Config) -> tuple[RoleSpec, ...]:
    return tuple(RoleSpec(name, role.description) for name, role in sorted(settings.all_roles.items()))


def mcp_servers(settings: config.Config) -> tuple[ServerSpec, ...]:
    return tuple(
        ServerSpec(
            name,
            server.command,
            server.url,
            server.env,
            server.headers,
            server.tools,
            server.read_only,
            config.parse_duration(server.connect_timeout),
            config.parse_duration(server.call_timeout),
            server.disabled,
        )
        for name, server in settings.mcp.items()
    )


# -- in a worker -------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def agent_executor_factory(spec: WorkerSpec) -> AsyncIterator[Callable[[], Executor]]:
    """Agents for a worker: each run gets a new one. What they start ends with this, at the latest."""
    if spec.agent is None:
        raise Invalid("The worker was told to be an agent, but not which: its description has no `agent`.")
    agent = spec.agent
    async with contextlib.AsyncExitStack() as stack:
        guardian = _OneGuardian(stack)
        assembly = Assembly(guardian.get, keeps_jobs=False)  # nobody could look at them: the next run is elsewhere
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


def protected_paths(data_dir: Path, config_file: Path | None, *more: Path | str | None) -> tuple[str, ...]:
    """What commands are kept from: tokens and conversations, and what decides over what an agent may do (A23, A30).

    Of a config file that the user named only the file: its directory may be anything. `more`: files with a secret.
    """
    files = [data_dir, config.default_config_file().parent, config_file, *more]
    return tuple(dict.fromkeys(os.path.abspath(file) for file in files if file is not None))


def default_worker_spec(config_file: Path | None = None) -> WorkerSpec:
    """An agent worker that a person starts by hand: the user's own config, in the directory it was started in."""
    settings = config.load(config_file)
    path = os.getcwd()
    run = RunSpec("", "", "", path, "", [], model=settings.model)
    agent = msgspec.structs.replace(
        agent_spec(settings, run), roles=(), protected_paths=protected_paths(config.default_data_dir(), config_file)
    )
    return WorkerSpec(secret="", executor="agent", identity="agent", workspace_path=path, agent=agent)
