"""Where MCP servers run: the workspace they are for, and what is common to all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from windlass.wire.tools import Process


class ServerSpawner(Protocol):
    """Starts processes that cannot outlive this one, with an input and an error pipe of their own."""

    async def spawn(
        self, argv: Sequence[str], *, cwd: str, env: dict[str, str], stdin: int | None, stderr: int | None
    ) -> Process: ...


@dataclass(frozen=True, repr=False)
class Place:
    """`environment` is all that a process gets beside what is configured for its server."""

    path: str
    spawner: ServerSpawner
    environment: Mapping[str, str]
