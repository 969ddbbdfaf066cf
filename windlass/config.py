"""Configuration: an immutable value. A reload makes a new one; a run keeps the one it started with.

Read from one TOML file of the user's, never from a workspace: a repository must not be able to change what its reader's
agent may do (A25).
"""

import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

import msgspec
import platformdirs

from windlass import limits
from windlass.models.known_providers import KNOWN_PROVIDERS, KnownProvider

ProviderType = Literal["openai", "openai-responses", "anthropic", "scripted"]
Placement = Literal["local", "process"]
AtLeastZero = Annotated[int, msgspec.Meta(ge=0)]
Price = Annotated[float, msgspec.Meta(ge=0, le=limits.USAGE_COST)]


class ConfigError(Exception):
    """The file cannot be used; the message names the file, the field and what is expected."""


class ModelConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the user says of a model. What is left out (0, "" or None) is what the catalogue knows of it."""

    id: str
    name: str = ""
    context_window: AtLeastZero = 0
    default_max_tokens: AtLeastZero = 0
    input_price: Price | None = None  # per million tokens
    output_price: Price | None = None
    cache_read_price: Price | None = None
    cache_write_price: Price | None = None
    images: bool | None = None
    reasoning: bool | None = None

    @property
    def said(self) -> dict[str, Any]:
        """The fields that the user filled in, by name."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name != "id"}
        not_said = {"name": "", "context_window": 0, "default_max_tokens": 0}
        # A price of nought is said: some models are free. A context window of nought is not.
        return {name: value for name, value in fields.items() if value != not_said.get(name)}


class ProviderConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A provider. One with a well-known name needs neither type nor address; `load` fills them in."""

    type: ProviderType | Literal[""] = ""
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
    # `agent` only sets other agents to work: what those do is asked for as if their parent did it. `question` asks
    # people itself, and `todos` changes nothing but a list that they are shown.
    allow: tuple[str, ...] = ("view", "ls", "glob", "grep", "agent", "job_output", "job_kill", "question", "todos")
    ask: tuple[str, ...] = ()  # and whatever no rule covers; a "*" here would be a rule that an `allow` must beat
    deny: tuple[str, ...] = ()
    unattended: Literal["wait", "deny"] = "wait"
    unattended_timeout: str = "24h"


class JournalConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sync: Literal["full", "normal"] = "full"
    retention_days: int = limits.RETENTION_DAYS
    retention_mb: int = limits.RETENTION_MB


class McpServerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An MCP server: a `command` that speaks over its standard input and output, or a `url` (streamable HTTP).

    `env` is what the command gets beside the harmless part of the server's own environment. `tools` are patterns of
    those that agents are told of; `read_only` of those that change nothing, if the server says so too.
    """

    command: tuple[str, ...] = ()
    url: str = ""
    env: dict[str, str] = {}
    headers: dict[str, str] = {}
    tools: tuple[str, ...] = ("*",)
    read_only: tuple[str, ...] = ()
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
        description="Looks around and answers a question. It can read, and change nothing.", read_only=True
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
    variables = os.environ if environment is None else environment
    config = _with_known_providers(_with_environment(config, variables), variables)
    _check(config, file)
    return config


def _with_environment(config: Config, environment: Any) -> Config:
    """Without a model of the user's choosing: a key in the environment decides, else the demo that needs none."""
    if config.model:
        return config
    for name in ("anthropic", "openai"):
        known = KNOWN_PROVIDERS[name]
        if environment.get(known.key_env):
            small = config.small_model or f"{name}/{known.small_model}"
            return msgspec.structs.replace(config, model=f"{name}/{known.model}", small_model=small)
    demo = ProviderConfig(type="scripted", models=[ModelConfig(id="demo", name="Built-in demo")])
    return msgspec.structs.replace(config, model="scripted/demo", providers={"scripted": demo, **config.providers})


def _with_known_providers(config: Config, environment: Any) -> Config:
    """Fill in what the names of providers say. A model may name a well-known one that is not in the file at all."""
    chosen = (config.model, config.small_model, *(role.model for role in config.roles.values()))
    named = {model.partition("/")[0] for model in chosen if "/" in model}
    providers = {name: ProviderConfig() for name in sorted(named) if name in KNOWN_PROVIDERS} | config.providers
    return msgspec.structs.replace(
        config,
        providers={
            name: _filled_in(provider, KNOWN_PROVIDERS[name], environment) if name in KNOWN_PROVIDERS else provider
            for name, provider in providers.items()
        },
    )


def _filled_in(provider: ProviderConfig, known: KnownProvider, environment: Any) -> ProviderConfig:
    # Who keeps a key in the environment for a server elsewhere says there too where that is: it must not be sent to
    # the provider itself.
    usual = (known.base_url_env and environment.get(known.base_url_env)) or known.base_url
    is_itself = _host(provider.base_url or usual) == _host(known.base_url)
    # Servers that imitate OpenAI's speak chat completions, and only some of them the newer protocol as well.
    type = provider.type or (known.types[0] if is_itself else known.types[-1])
    filled = msgspec.structs.replace(provider, type=type)
    if type not in known.types or provider.base_url not in ("", usual):
        return filled  # somebody else under the same name: neither the address nor the key is for us to guess
    key_env = provider.api_key_env or ("" if provider.api_key else known.key_env)
    return msgspec.structs.replace(filled, base_url=usual, api_key_env=key_env)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""  # no address at all; whoever connects to it says so


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
        if not provider_config.type:
            types = ", ".join(get_args(ProviderType))
            raise ConfigError(f"{file}: providers.{name} needs a type: one of {types}.")
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
    for kind in ("allow", "ask", "deny"):
        for pattern in getattr(config.permissions, kind):
            if not is_rule(pattern):
                raise ConfigError(
                    f'{file}: permissions.{kind}: {pattern[:50]!r} is no pattern; write "tool" or "tool:argument", at '
                    f"most {limits.PATTERN_CHARACTERS} characters, on one line."
                )
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


def is_rule(text: str) -> bool:
    """Whether this can be a rule for tools, here or with a prompt: "tool" or "tool:argument", on one line."""
    return 0 < len(text) <= limits.PATTERN_CHARACTERS and text.isprintable()


_ROLE_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, None: 1.0}


def parse_duration(text: str) -> float:
    """Seconds of "24h", "90s", "10m", "2d" or a bare number."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f'"{text}" is not a duration; write 90s, 10m, 24h or 2d.')
    return float(match[1]) * _UNIT_SECONDS[match[2]]
