"""Routes: the MCP servers of a workspace."""

from litestar import Router, get
from litestar.datastructures import State
from litestar.params import FromPath

from windlass.server.services import workspace_of
from windlass.wire.mcp import McpState


@get("/mcp/states")
async def mcp_states(state: State, workspace_id: FromPath[str]) -> list[McpState]:
    """The servers of the configuration, by name, and whether each is connected. `mcp_event` tells of changes."""
    workspace = workspace_of(state, workspace_id)
    states = workspace.mcp.states
    await workspace.log.durable(workspace.log.head)  # no stream has told of them before that (I12)
    return states


router = Router(path="/v1/workspaces/{workspace_id:str}", route_handlers=[mcp_states], tags=["MCP servers"])
