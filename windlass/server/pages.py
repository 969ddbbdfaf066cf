"""What a browser is shown: the front page, and the API's documentation. Nothing is loaded from anywhere else."""

import asyncio
import html
from typing import Any

from litestar import Response, get
from litestar.datastructures import State

from windlass import __version__, limits
from windlass.errors import Unauthorized
from windlass.server import openapi
from windlass.server.services import Connection, Services
from windlass.server.tickets import COOKIE

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}"
    "code,pre{font:14px/1.4 ui-monospace,monospace}td{padding:.2rem .8rem .2rem 0;vertical-align:top}"
)


def _page(title: str, body: str) -> Response[str]:
    text = f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>{body}"
    return Response(text, media_type="text/html", headers={"content-security-policy": _POLICY})


@get("/", media_type="text/html", include_in_schema=False)
async def front_page(state: State, request: Connection) -> Response[Any]:
    """A browser with a ticket gets its cookie; one that has it is told what is here."""
    services: Services = state.services
    ticket = request.scope.get("windlass.ticket")
    if ticket is None:
        return _page("Windlass", _FRONT)
    cookie = await services.tickets.redeem(str(ticket))
    if cookie is None:
        raise Unauthorized("This ticket was used already or is too old. Ask for a new one.")
    value = f"{COOKIE}={cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000"
    if request.url.scheme == "https":
        value += "; Secure"
    return Response(None, status_code=303, headers={"location": "/", "set-cookie": value})


_FRONT = (
    f"<h1>Windlass {__version__}</h1><p>This is an agent server that many clients share.</p>"
    "<p>Attach from a terminal with <code>windlass attach</code>, or read <a href=/docs>what the API offers</a>.</p>"
)


@get("/docs", media_type="text/html", include_in_schema=False)
async def docs_page() -> Response[str]:
    """Every route with its purpose, from the same document as /openapi.json."""
    rows = []
    document = await _document()
    for path, methods in sorted(document["paths"].items()):
        for method, operation in methods.items():
            about = html.escape(operation.get("description") or operation.get("summary") or "")
            rows.append(f"<tr><td><code>{method.upper()}</code><td><code>{html.escape(path)}</code><td>{about}")
    table = f"<table>{''.join(rows)}</table>"
    limit = f"Bodies are JSON of at most {limits.REQUEST_BODY_BYTES // limits.MIB} MiB."
    return _page("Windlass API", f"<h1>Windlass API</h1><p>{limit} <a href=/openapi.json>OpenAPI</a></p>{table}")


@get("/openapi.json", include_in_schema=False)
async def openapi_document() -> dict[str, Any]:
    return await _document()


async def _document() -> dict[str, Any]:
    # In a thread: the first to ask waits some tenths of a second until it is made, and nobody else should.
    return await asyncio.to_thread(openapi.document)
