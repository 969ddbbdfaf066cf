"""Routes: what people are asked, and their answers."""

from litestar import Response, Router, get, post
from litestar.datastructures import State
from litestar.params import FromPath, JSONBody

from windlass.errors import BadRequest
from windlass.server.services import Connection, by_of, raw_list, workspace_of
from windlass.wire.http import Grant, Resolved, Skip
from windlass.wire.permissions import PermissionRequest


@get("/permissions")
async def list_permissions(state: State, workspace_id: FromPath[str]) -> Response[list[PermissionRequest]]:
    """What waits for an answer."""
    workspace = workspace_of(state, workspace_id)
    return raw_list([bytes(body) for body in workspace.log.permissions.values()])


@post("/permissions/grant", status_code=200)
async def grant_permission(
    state: State, request: Connection, workspace_id: FromPath[str], data: JSONBody[Grant]
) -> Resolved:
    """Answer a request. The first answer decides and is told so; everyone later is told that it did not.

    With `allow_session` a `pattern` may say what else is allowed for the rest of the session, for the same tool and
    action. It must cover the request itself.
    """
    workspace = workspace_of(state, workspace_id)
    match data.action:
        case "allow" | "allow_session" | "deny":
            by = by_of(request)
            return Resolved(await workspace.desk.resolve(data.permission.id, data.action, by, data.pattern))
        case _:
            raise BadRequest("action must be one of: allow, allow_session, deny.")


@get("/permissions/skip")
async def get_skip(state: State, workspace_id: FromPath[str]) -> Skip:
    """Whether questions are skipped in this workspace."""
    workspace = workspace_of(state, workspace_id)
    skip = Skip(workspace.permissions.skip)
    await workspace.log.durable(workspace.log.head)  # a crash could take it back until then (I12)
    return skip


@post("/permissions/skip", status_code=200)
async def set_skip(state: State, request: Connection, workspace_id: FromPath[str], data: JSONBody[Skip]) -> Skip:
    """Skip questions from now on, or ask again. A deny rule is never skipped."""
    await workspace_of(state, workspace_id).set_skip(data.skip, by_of(request))
    return data


router = Router(
    path="/v1/workspaces/{workspace_id:str}",
    route_handlers=[list_permissions, grant_permission, get_skip, set_skip],
    tags=["Permissions"],
)
