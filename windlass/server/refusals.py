"""How a request that is not let in is answered: JSON for programs, a small page for a person's browser."""

from typing import Any

import msgspec

from windlass.errors import TooMany, Unauthorized, WindlassError
from windlass.server.plain_pages import POLICY, refusal_page
from windlass.wire.http import ErrorBody

NO_CREDENTIAL = "A valid token is needed: send it as 'Authorization: Bearer <token>'."
_FOR_PEOPLE = {NO_CREDENTIAL: "This browser has no key to this server, or its key was revoked."}


async def refuse(error: WindlassError, request_id: str, send: Any, *, to_person: bool = False) -> None:
    """Answer with an error; the connection is closed, so that nothing more of a refused body is read."""
    if to_person:
        body = refusal_page(error.status, _FOR_PEOPLE.get(error.message, error.message)).encode()
        headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-security-policy", POLICY.encode())]
    else:
        body = msgspec.json.encode(ErrorBody(error.message, request_id if error.status >= 500 else ""))
        headers = [(b"content-type", b"application/json")]
    headers += [(b"content-length", str(len(body)).encode()), (b"connection", b"close")]
    if isinstance(error, Unauthorized):
        headers.append((b"www-authenticate", b"Bearer"))
    if isinstance(error, TooMany):
        headers.append((b"retry-after", str(error.retry_after).encode()))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def is_person(method: str, path: str, accept: bytes) -> bool:
    """Whether a browser asks for the page itself: a person would be shown JSON otherwise."""
    return method == "GET" and path == "/" and b"text/html" in accept
