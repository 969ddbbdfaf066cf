"""What a worker is told on its standard input when it is started: who it is, what it executes, and its secrets.

Never in its arguments or its environment, which every process of the user can read (A39).
"""

import msgspec


class ModelSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    context_window: int = 0
    default_max_tokens: int = 0
    input_price: float = 0.0  # per million tokens
    output_price: float = 0.0
    cache_read_price: float = 0.0
    cache_write_price: float = 0.0
    images: bool = True


class ProviderSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A provider with the one credential it needs."""

    name: str
    type: str
    base_url: str = ""
    key: str = ""
    script: str = ""
    models: tuple[ModelSpec, ...] = ()

    def __repr__(self) -> str:
        return f"ProviderSpec(name={self.name!r}, type={self.type!r})"  # without its key: a repr ends up in logs


class RoleSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A role an agent may give to the sub-agents it starts."""

    name: str
    description: str = ""


class AgentSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an agent is made of. `tools` are glob patterns on names; `roles`: none means that it may start no agents."""

    provider: ProviderSpec
    tools: tuple[tuple[str, ...], ...] = (("*",),)  # a tool must fit one pattern of each: its own and its parents'
    read_only: bool = False
    instructions: str = ""
    is_child: bool = False  # another agent reads its answer
    max_steps: int = 0
    max_seconds: float = 0.0
    max_tokens: int = 0
    max_cost: float = 0.0
    small: ProviderSpec | None = None  # for titles; None: the provider itself
    small_model: str = ""
    mcp: bool = False  # whether the owner of the run has MCP servers to offer
    fetch_private: bool = False
    sandbox: str = "auto"  # whether commands are confined: auto, off or require
    protected_paths: tuple[str, ...] = ()  # what confined commands are kept from: the server's own files
    protected_ports: tuple[int, ...] = ()  # and its doors
    roles: tuple[RoleSpec, ...] = ()


class WorkerSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """`parent_fd`: an inherited descriptor whose end means that the parent is gone (0: standard input itself, and this
    document is one line of it then). Left out, it is standard input, if that stays open after the document.
    `workspace_path` is the directory as this machine knows it.
    """

    secret: str
    executor: str = "agent"
    identity: str = ""
    workspace_path: str = ""
    agent: AgentSpec | None = None
    parent_fd: int | None = None

    def __repr__(self) -> str:
        return f"WorkerSpec(executor={self.executor!r}, identity={self.identity!r})"
