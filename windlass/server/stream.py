"""The event stream: server-sent events from a cursor into the workspace's log.

A raw ASGI response: what is new is taken as ready-made bytes and written once per wake-up. There is no queue for this
reader; when it is slow, its position simply falls behind.
"""

import asyncio
import re
from typing import Any

from litestar import Router, get
from litestar.datastructures import State
from litestar.params import FromPath
from litestar.response.base import ASGIResponse

from windlass import limits
from windlass.engine.subscription import Cursor, Subscription
from windlass.engine.workspace import Workspace
from windlass.errors import BadRequest
from windlass.server.services import Connection, Services, check_client_id, identity_of
from windlass.server.tokens import Identity, TokenStore

_EVENT_ID = re.compile(r"([A-Za-z0-9_-]{1,64})\.([0-9]{1,18})")
_BARE = re.compile(r"[0-9]{1,18}")


def parse_cursor(last_event_id: str | None, after: str | None) -> Cursor | None:
    """`Last-Event-ID` wins over `?after=`; nonsense is refused, never guessed at (A18)."""
    text = last_event_id if last_event_id is not None else after
    if text is None:
        return None
    match = _EVENT_ID.fullmatch(text)
    if match is not None:
        return Cursor(match[1], int(match[2]))
    if last_event_id is None and _BARE.fullmatch(text):
        return Cursor("", int(text))
    raise BadRequest("The cursor is not an event id such as 'epoch.17'. Send the id of the last event you have.")


class EventStream(ASGIResponse):
    """One client's stream. Its claim lives exactly as long as this call."""

    def __init__(
        self,
        workspace: Workspace,
        client_id: str,
        cursor: Cursor | None,
        deltas: bool,
        tokens: TokenStore,
        identity: Identity,
    ) -> None:
        super().__init__(media_type="text/event-stream")
        self._workspace = workspace
        self._client_id = client_id
        self._cursor = cursor
        self._deltas = deltas
        self._tokens = tokens
        self._identity = identity
        self._gone = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        # Attached here and not in the route: a claim whose answer is never begun would never be let go.
        subscription = Subscription(self._workspace, self._client_id, self._cursor, self._deltas)
        # Without someone listening for it, a client that left is never noticed.
        watcher = asyncio.create_task(self._watch(subscription, receive), name="stream watcher")
        try:
            greeting = b"retry: 1000\n\n" + subscription.greeting
            await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
            await send({"type": "http.response.body", "body": greeting, "more_body": True})
            # In a task of its own: each event wakes it, and awaited here directly it would wake with it every frame of
            # the server's layers above. A cancel passes on to it, and comes back when it has ended.
            await asyncio.create_task(self._pass_on(subscription, send), name="stream")
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            watcher.cancel()
            subscription.close()

    async def _watch(self, subscription: Subscription, receive: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        subscription.wake()

    async def _pass_on(self, subscription: Subscription, send: Any) -> None:
        loop = asyncio.get_running_loop()
        written = loop.time()
        while self._is_welcome(subscription):
            data = await subscription.next(max(0.0, written + limits.HEARTBEAT_SECONDS - loop.time()))
            if not data:
                if subscription.is_over:
                    return
                if loop.time() < written + limits.HEARTBEAT_SECONDS:
                    continue  # woken, for instance because a token was revoked: look again
                data = b": hb\n\n"
            await send({"type": "http.response.body", "body": data, "more_body": True})
            written = loop.time()

    def _is_welcome(self, subscription: Subscription) -> bool:
        """Whether the client is still there, and its claim and token still stand."""
        if self._gone or not subscription.is_attached:
            return False
        return self._tokens.is_live(self._identity)


_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)


@get("/events", media_type="text/event-stream")
async def events(state: State, request: Connection, workspace_id: FromPath[str]) -> EventStream:
    """Everything that happens in the workspace, from a cursor or from now. Subscribing is attaching.

    `?client_id=` (required), `?deltas=1` for text in pieces, `?after=` or the header `Last-Event-ID` to go on from.
    """
    services: Services = state.services
    workspace = services.registry.get(workspace_id)
    client_id = check_client_id(request.query_params.get("client_id"))
    services.registry.check_client(client_id)
    cursor = parse_cursor(request.headers.get("last-event-id"), request.query_params.get("after"))
    deltas = request.query_params.get("deltas") == "1"
    return EventStream(workspace, client_id, cursor, deltas, services.tokens, identity_of(request))


router = Router(
    path="/v1/workspaces/{workspace_id:str}",
    route_handlers=[events],
    tags=["The event stream"],
)
