"""Every route of the server in one table: what a valid request for it looks like, and who may send it.

The security and bad-input tests walk this table, and `test_route_table` compares it with the real router: a route that
is added without its row here fails the suite.
"""

import json
from typing import Any, Literal, NamedTuple

W = "/v1/workspaces/{workspace_id}"
S = f"{W}/sessions/{{session_id}}"
A = f"{W}/agent/sessions/{{session_id}}"
R = f"{W}/runs/{{run_id}}"
OWN = "client_id={client_id}"


class Route(NamedTuple):
    """A row. Ids in braces are filled in from a `World`; `status` is what the valid sample is answered.

    `scope`: the least a token needs (`open`: none at all). `body` has every field the route knows; those in `required`
    may not be left out. `idle`: it waits for its session, so that the sample is for one on which nothing runs.
    `only_reads`: it changes nothing although it is no GET.
    """

    method: str
    path: str
    scope: Literal["open", "read", "operate"]
    status: int = 200
    body: dict[str, Any] | None = None
    required: tuple[str, ...] = ()
    query: str = ""
    in_document: bool = True
    idle: bool = False
    only_reads: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def changes(self) -> bool:
        return self.method != "GET" and not self.only_reads

    def filled(self, ids: dict[str, str]) -> tuple[str, bytes | None]:
        """The target (path and query) and the encoded body of a request with these ids."""
        if self.idle:
            ids = {**ids, "session_id": ids["idle_session_id"]}
        query = f"?{_fill(self.query, ids)}" if self.query else ""
        body = None if self.body is None else json.dumps(_fill(self.body, ids)).encode()
        return _fill(self.path, ids) + query, body


def _fill(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, str):
        return value.format_map(ids)
    if isinstance(value, dict):
        return {name: _fill(part, ids) for name, part in value.items()}
    if isinstance(value, list):
        return [_fill(part, ids) for part in value]
    return value


_CREATE = {"path": "{directory}", "client_id": "{client_id}", "data_dir": "x", "yolo": False, "debug": False, "env": []}
_ATTACHMENT = {"file_path": "a.txt", "file_name": "a.txt", "mime_type": "text/plain", "content": "aGVsbG8="}
_PROMPT = {
    "session_id": "{session_id}",
    "prompt": "Say hello.",
    "run_id": "{new_run_id}",
    "attachments": [_ATTACHMENT],
    "on_busy": "enqueue",
    "reasoning_effort": "low",
}
_ANSWER = {"batch_request_id": "{batch_id}", "responses": [{"request_id": "q1", "yes": True}]}
_GRANT = {"permission": {"id": "{permission_id}"}, "action": "deny", "pattern": ""}

ROUTES = [
    Route("GET", "/", "read", in_document=False),
    Route("GET", "/page/{page_file}", "read", in_document=False),
    Route("GET", "/page/{edition}/{page_file}", "read", in_document=False),
    Route("GET", "/docs", "read", in_document=False),
    Route("GET", "/openapi.json", "read", in_document=False),
    Route("GET", "/v1/health", "open"),
    Route("GET", "/v1/version", "read"),
    # A resident server stays whoever asks.
    Route("POST", "/v1/control", "operate", 409, {"command": "shutdown"}, ("command",)),
    Route("POST", "/v1/tickets", "operate"),
    Route("POST", "/v1/markdown", "read", 200, {"texts": ["*Hello*"]}, ("texts",), only_reads=True),
    Route("DELETE", "/v1/clients/{client_id}", "operate"),
    Route("GET", "/v1/workspaces", "read"),
    Route("POST", "/v1/workspaces", "operate", 200, _CREATE, ("path", "client_id")),
    Route("GET", W, "read"),
    Route("DELETE", W, "operate", query=OWN),
    Route("POST", f"{W}/current-session", "operate", 200, {"session_id": "{session_id}"}, ("session_id",), OWN),
    Route("GET", f"{W}/events", "read", query=OWN),
    Route("GET", f"{W}/search", "read", query="q=hello&limit=5"),
    Route("GET", f"{W}/sessions", "read"),
    Route("POST", f"{W}/sessions", "operate", 200, {"title": "A title"}),
    Route("GET", S, "read"),
    Route("PUT", S, "operate", 200, {"title": "Another title"}, ("title",)),
    Route("DELETE", S, "operate"),
    Route("GET", f"{S}/history", "read"),
    Route("GET", f"{S}/filetracker/files", "read"),
    # The run is not over.
    Route("POST", f"{S}/undo", "operate", 422, {"run_id": "{run_id}"}, ("run_id",)),
    Route("POST", f"{S}/plan", "operate", 200, {"plan": True}, ("plan",)),
    # There is nothing to sum up yet.
    Route("POST", f"{A}/summarize", "operate", 409, idle=True),
    Route("POST", f"{A}/shell", "operate", 200, {"command": "true", "term_width": 80}, ("command",), idle=True),
    Route("GET", f"{S}/messages", "read"),
    Route("GET", f"{S}/messages/user", "read"),
    Route("GET", f"{W}/messages/user", "read"),
    Route("GET", f"{W}/agent", "read"),
    Route("POST", f"{W}/agent", "operate", 202, _PROMPT, ("session_id", "prompt")),
    Route("POST", f"{W}/agent/init", "operate", 200, {"interactive": True}),
    Route("POST", f"{W}/agent/update", "operate"),
    Route("GET", A, "read"),
    Route("POST", f"{A}/cancel", "operate"),
    Route("GET", f"{A}/prompts/queued", "read"),
    Route("GET", f"{A}/prompts/list", "read"),
    Route("POST", f"{A}/prompts/clear", "operate"),
    Route("GET", f"{W}/runs", "read"),
    Route("GET", R, "read"),
    Route("GET", f"{R}/timeline", "read"),
    Route("POST", f"{R}/cancel", "operate", 202),
    Route("DELETE", R, "operate"),
    Route("GET", f"{W}/mcp/states", "read"),
    Route("GET", f"{W}/permissions", "read"),
    Route("POST", f"{W}/permissions/grant", "operate", 200, _GRANT, ("permission", "action")),
    Route("GET", f"{W}/permissions/skip", "read"),
    Route("POST", f"{W}/permissions/skip", "operate", 200, {"skip": False}, ("skip",)),
    Route("GET", f"{W}/questions", "read"),
    Route("POST", f"{W}/questions/answer", "operate", 200, _ANSWER, ("batch_request_id", "responses")),
    Route("POST", f"{W}/questions/cancel", "operate", 200, {"batch_request_id": "{batch_id}"}),
]
CLOSED = [route for route in ROUTES if route.scope != "open"]
CHANGING = [route for route in ROUTES if route.changes]
WITH_BODY = [route for route in ROUTES if route.body is not None]
IN_WORKSPACE = [route for route in ROUTES if route.path.startswith(W)]
