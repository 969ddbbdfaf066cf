"""Routes: sessions and their messages."""

from litestar import Response, Router, delete, get, post, put
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery, JSONBody

from windlass import limits
from windlass.engine import reading
from windlass.server.services import Connection, by_of, raw_list, whole_number, workspace_of
from windlass.wire.http import CreateSession, UpdateSession
from windlass.wire.messages import Message
from windlass.wire.sessions import Session


@get("/sessions")
async def list_sessions(state: State, workspace_id: FromPath[str], parent: FromQuery[str] = "") -> list[Session]:
    """Top-level sessions, the one that changed last first; `?parent=` lists the children of one."""
    return await reading.sessions(workspace_of(state, workspace_id), parent)


@post("/sessions", status_code=200)
async def create_session(
    state: State, request: Connection, workspace_id: FromPath[str], data: JSONBody[CreateSession]
) -> Session:
    """Begin a conversation."""
    return await workspace_of(state, workspace_id).create_session(data.title, by_of(request))


@get("/sessions/{session_id:str}")
async def get_session(state: State, workspace_id: FromPath[str], session_id: FromPath[str]) -> Session:
    """One session, with whether it is busy and who looks at it."""
    return await reading.session(workspace_of(state, workspace_id), session_id)


@put("/sessions/{session_id:str}")
async def update_session(
    state: State,
    request: Connection,
    workspace_id: FromPath[str],
    session_id: FromPath[str],
    data: JSONBody[UpdateSession],
) -> Session:
    """Rename a session; other fields are ignored."""
    workspace = workspace_of(state, workspace_id)
    await workspace.rename_session(session_id, data.title, by_of(request))
    return await reading.session(workspace, session_id)


@delete("/sessions/{session_id:str}", status_code=200)
async def delete_session(
    state: State, request: Connection, workspace_id: FromPath[str], session_id: FromPath[str]
) -> None:
    """Cancel its runs, wait for their end, and remove all of its content."""
    await workspace_of(state, workspace_id).delete_session(session_id, by_of(request))


@get("/sessions/{session_id:str}/messages")
async def list_messages(
    state: State,
    workspace_id: FromPath[str],
    session_id: FromPath[str],
    after: FromQuery[str] = "",
    limit: FromQuery[str] = "",
) -> Response[list[Message]]:
    """The conversation, oldest first; `?after=<message id>&limit=` for a stretch of it."""
    count = whole_number(limit, "limit", -1, limits.MESSAGES_PER_PAGE)
    return raw_list(await reading.messages(workspace_of(state, workspace_id), session_id, after, count))


@get("/sessions/{session_id:str}/messages/user")
async def list_user_messages(
    state: State, workspace_id: FromPath[str], session_id: FromPath[str]
) -> Response[list[Message]]:
    """What people said in this session, newest first."""
    return raw_list(await reading.user_messages(workspace_of(state, workspace_id), session_id))


@get("/messages/user")
async def list_all_user_messages(state: State, workspace_id: FromPath[str]) -> Response[list[Message]]:
    """What people said in this workspace, newest first."""
    return raw_list(await reading.user_messages(workspace_of(state, workspace_id)))


router = Router(
    path="/v1/workspaces/{workspace_id:str}",
    route_handlers=[
        list_sessions,
        create_session,
        get_session,
        update_session,
        delete_session,
        list_messages,
        list_user_messages,
        list_all_user_messages,
    ],
    tags=["Sessions and messages"],
)
