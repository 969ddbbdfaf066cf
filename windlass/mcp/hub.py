"""The MCP servers of a whole Windlass server: one configuration for all workspaces, and processes for each its own."""

import asyncio
from collections.abc import Iterable, Mapping

from windlass import limits
from windlass.mcp.place import Place, ServerSpawner
from windlass.mcp.server import Tell
from windlass.mcp.servers import Servers
from windlass.mcp.spec import ServerSpec


class Hub:
    """Made once by the composition root; `open` is the port that workspaces are given."""

    def __init__(self, spawner: ServerSpawner, environment: Mapping[str, str], specs: Iterable[ServerSpec]) -> None:
        self._spawner = spawner
        self._environment = environment
        self._specs = {spec.name: spec for spec in specs}
        self._open: set[Servers] = set()
        self._ending: set[asyncio.Task[None]] = set()  # servers that are on their way out

    def open(self, path: str, tell: Tell) -> Servers:
        """The servers of the workspace at this path. `tell` is called with each change of a state."""
        place = Place(path, self._spawner, self._environment)
        servers = Servers(place, self._specs, tell, self._open.discard, self._wait_for)
        self._open.add(servers)
        return servers

    def configure(self, specs: Iterable[ServerSpec]) -> None:
        """A reload: servers that changed are stopped in every workspace, the others go on."""
        self._specs = {spec.name: spec for spec in specs}
        for servers in self._open:
            servers.configure(self._specs)

    async def aclose(self) -> None:
        """Stop everything, and return when it is gone or a bound has passed; the guardian ends what is left then."""
        for servers in list(self._open):
            servers.close()
        if self._ending:
            await asyncio.wait(set(self._ending), timeout=limits.MCP_CLOSE_SECONDS)

    def _wait_for(self, ending: "asyncio.Task[None]") -> None:
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
