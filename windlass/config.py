"""Configuration: an immutable value. A reload makes a new one; a run keeps the one it started with.

Read from one TOML file of the user's, never from a workspace: a repository must not be able to change what its reader's
agent may do (A25).
"""

import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import platformdirs

from windlass import limits

ProviderType = Literal["openai", "openai-responses", "anthropic", "scripted"]
Placement = Literal["local", "process"]
AtLeastZero = Annotated[int, msgspec.Meta(ge=0)]


class ConfigError(Exception):
    """The file cannot be used; the message names the file, the field and what is expected."""


class ModelConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    name: str = ""
    context_window: int = 128_000
    default_max_tokens: int = 8_192
    input_price: float = 0.0  # per million tokens
    output_price: float = 0.0
    cache_read_price: float = 0.0
    cache_write_price: float = 0.0
    images: bool = True


class ProviderConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    type: ProviderType
    base_url: str = ""
    api_key: str = ""
    api_key_env: str = ""
    models: list[ModelConfig] = []
    script: str = ""

    def __repr__(self) -> str:
        # The default repr would print the key, and a repr ends up in logs and tracebacks (A39).
        return f"ProviderConfig(type={self.type!r}, base_url={self.base_url!r})"

    def key(self) -> str:
        return self.api_key or (os.environ.get(self.api_key_env, "") if self.api_key_env else "")


class AgentConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    allowed_tools: tuple[str, ...] = ("*",)
    max_steps: int = limits.RUN_STEPS
    max_time: str = f"{limits.RUN_SECONDS:g}s"
    max_tokens: AtLeastZero = 0  # all that a run sends and gets back; 0: no limit
    max_cost: float = 0.0  # of a run, in the currency of the prices; 0: no limit


class PermissionsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    # `agent` only sets other agents to work: what those do is asked for as if their parent did it.
    allow: tuple[str, ...] = ("view", "ls", "glob", "grep", "agent")
    ask: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    unattended: Literal["wait", "deny"] = "wait"
    unattended_timeout: str = "24h"


class JournalConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sync: Literal["full", "normal"] = "full"
    retention_days: int = limits.RETENTION_DAYS
    retention_mb: int = limits.RETENTION_MB


class McpServerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An MCP server: a `command` that speaks over its standard input and output, or a `url` (streamable HTTP).

    `env` is what the command gets beside the harmless part of the server's own environment.
    """

    command: tuple[str, ...] = ()
    url: str = ""
    env: dict[str, str] = {}
    headers: dict[str, str] = {}
    tools: tuple[str, ...] = ("*",)
    connect_timeout: str = f"{limits.MCP_CONNECT_SECONDS:g}s"
    call_timeout: str = f"{limits.MCP_CALL_SECONDS:g}s"
    disabled: bool = False

    def __repr__(self) -> str:
        # Without `env`, `headers`, arguments and the address: any of them may hold a key (A39).
        return f"McpServerConfig(command={self.command[:1]!r}, disabled={self.disabled!r})"


class FetchConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`allow_private`: whether `fetch` may go to this machine and to private networks."""

    allow_private: bool = False


class BashConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`sandbox`: "auto" confines commands where the kernel can, "require" refuses to run them where it cannot."""

    sandbox: Literal["auto", "off", "require"] = "auto"


class RunsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where top-level runs are executed: in the server's process, or each in a worker process from the pool."""

    placement: Placement = "local"


class AgentsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sub-agents: where they are executed, and what the agents of one top-level run may use together."""

    placement: Placement = "process"
    max_depth: AtLeastZero = limits.AGENT_DEPTH
    max_running: AtLeastZero = limits.AGENTS_RUNNING
    max_total: AtLeastZero = limits.AGENTS_PER_RUN
    max_tokens: AtLeastZero = limits.AGENT_TOKENS
    max_time: str = f"{limits.AGENT_SECONDS:g}s"


class RoleConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a sub-agent is: its instructions, its model ("": its parent's), the tools it may use of its parent's."""

    description: str = ""
    prompt: str = ""
    model: str = ""
    reasoning_effort: str = ""
    tools: tuple[str, ...] = ("*",)
    read_only: bool = False
    worktree: bool = False


# What there is without any [roles]; a role of the user's with the same name takes its place.
BUILT_IN_ROLES = {
    "general": RoleConfig(description="Does a whole piece of work by itself, with all of your tools."),
    "explore": RoleConfig(
        description="Looks around and answers a question. It can read files and nothing else.", read_only=True
    ),
}


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file. `model` is `provider/model`; "" means: what the environment offers, else the built-in demo."""

    model: str = ""
    small_model: str = ""
    reasoning_effort: str = ""
    providers: dict[str, ProviderConfig] = {}
    agent: AgentConfig = AgentConfig()
    permissions: PermissionsConfig = PermissionsConfig()
    journal: JournalConfig = JournalConfig()
    runs: RunsConfig = RunsConfig()
    agents: AgentsConfig = AgentsConfig()
    roles: dict[str, RoleConfig] = {}
    mcp: dict[str, McpServerConfig] = {}
    fetch: FetchConfig = FetchConfig()
    bash: BashConfig = BashConfig()

    def role(self, name: str) -> RoleConfig | None:
        return self.all_roles.get(name)

    @property
    def all_roles(self) -> dict[str, RoleConfig]:
        return {**BUILT_IN_ROLES, **self.roles}


def default_data_dir() -> Path:
    return Path(platformdirs.user_data_dir("windlass", appauthor=False))


def default_config_file() -> Path:
    return Path(platformdirs.user_config_dir("windlass", appauthor=False)) / "config.toml"


def load(path: Path | None, environment: dict[str, str] | None = None) -> Config:
    """Read the file (a missing default file is an empty one) and fill in what the environment offers."""
    file = path or default_config_file()
    try:
        raw: dict[str, Any] = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        if path is not None:
            raise ConfigError(f"There is no config file at {file}. Create it, or leave --config away.") from None
        raw = {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not valid TOML: {error}.") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}.") from None
    try:
        config = msgspec.convert(raw, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file}: {error}.") from None
    config = _with_environment(config, os.environ if environment is None else environment)
    _check(config, file)
    return config


def _with_environment(config: Config, environment: Any) -> Config:
    """Without a model of the user's choosing: a key in the environment decides, else the demo that needs none."""
    if config.model:
        return config
    if environment.get("ANTHROPIC_API_KEY"):
        # Their chat-completions endpoint: one adapter serves both until each has its own.
        provider = ProviderConfig(
            type="openai", base_url="https://api.anthropic.com/v1", api_key_env="ANTHROPIC_API_KEY"
        )
        name, model = "anthropic", "anthropic/claude-sonnet-4-5"
    elif environment.get("OPENAI_API_KEY"):
        base = environment.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        provider = ProviderConfig(type="openai", base_url=base, api_key_env="OPENAI_API_KEY")
        name, model = "openai", "openai/gpt-4.1"
    else:
        name, model = "scripted", "scripted/demo"
        provider = ProviderConfig(type="scripted", models=[ModelConfig(id="demo", name="Built-in demo")])
    return msgspec.structs.replace(config, model=model, providers={name: provider, **config.providers})


def _check(config: Config, file: Path) -> None:
    chosen = {"model": config.model, "small_model": config.small_model}
    chosen |= {f"roles.{name}.model": role.model for name, role in config.roles.items()}
    for field, value in chosen.items():
        if not value:
            continue
        provider, _, model = value.partition("/")
        if not model:
            raise ConfigError(f'{file}: {field} is "{value}"; write it as "provider/model".')
        if provider not in config.providers:
            known = ", ".join(sorted(config.providers)) or "none"
            raise ConfigError(f"{file}: {field} names the provider {provider!r}, but [providers] has: {known}.")
    for name, provider_config in config.providers.items():
        if provider_config.type != "scripted" and not provider_config.base_url:
            raise ConfigError(f"{file}: providers.{name} needs a base_url.")
    for name in config.roles:
        if _ROLE_NAME.fullmatch(name) is None:
            raise ConfigError(f"{file}: roles.{name}: a role's name is 1 to 40 letters, digits, - and _.")
    for name, server in config.mcp.items():
        if _ROLE_NAME.fullmatch(name) is None:
            raise ConfigError(f"{file}: mcp.{name}: a server's name is 1 to 40 letters, digits, - and _.")
        if bool(server.command) == bool(server.url):
            raise ConfigError(f"{file}: mcp.{name} needs either a command or a url.")
    for field, duration in (
        ("permissions.unattended_timeout", config.permissions.unattended_timeout),
        ("agents.max_time", config.agents.max_time),
        ("agent.max_time", config.agent.max_time),
        *((f"mcp.{name}.connect_timeout", server.connect_timeout) for name, server in config.mcp.items()),
        *((f"mcp.{name}.call_timeout", server.call_timeout) for name, server in config.mcp.items()),
    ):
        try:
            parse_duration(duration)
        except ConfigError as error:
            raise ConfigError(f"{file}: {field}: {error}") from None


_ROLE_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, None: 1.0}


def parse_duration(text: str) -> float:
    """Seconds of "24h", "90s", "10m", "2d" or a bare number."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f'"{text}" is not a duration; write 90s, 10m, 24h or 2d.')
    return float(match[1]) * _UNIT_SECONDS[match[2]]
