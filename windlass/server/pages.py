"""What a browser is shown: the page, and the API's documentation. Nothing is loaded from anywhere else."""

import asyncio
import html
from typing import Any

from litestar import Response, get
from litestar.datastructures import State
from litestar.params import FromPath

from windlass import limits
from windlass.errors import NotFound, Unauthorized
from windlass.server import openapi
from windlass.server.page_files import PageFile
from windlass.server.plain_pages import POLICY, plain_page, refusal_page
from windlass.server.refusals import is_person
from windlass.server.services import Connection, Services, services_of
from windlass.server.tickets import COOKIE

# No inline script or style, no eval, no frame, nothing from elsewhere; markup only through the page's one policy (A41).
PAGE_POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types windlass"
)
_ASK_AGAIN = "no-cache"  # kept, but asked about each time: an upgrade is seen at once
_FOR_GOOD = "private, max-age=31536000, immutable"
# The page must not be held by a window of another site, nor its files be read into one.
_ISOLATED = {"cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin"}


@get("/", include_in_schema=False)
async def front_page(state: State, request: Connection) -> Response[Any]:
    """A browser with a ticket gets its cookie; one that has it gets the page."""
    services: Services = state.services
    ticket = request.scope.get("windlass.ticket")
    if ticket is None:
        edition = await asyncio.to_thread(services.page.current)
        return _file(edition.front, request)
    cookie = await services.tickets.redeem(str(ticket))
    if cookie is None:
        return _used_up(request)
    value = f"{COOKIE}={cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000"
    if request.url.scheme == "https":
        value += "; Secure"
    return Response(None, status_code=303, headers={"location": "/", "set-cookie": value})


def _used_up(request: Connection) -> Response[Any]:
    message = "This ticket was used already or is too old. Ask for a new one: windlass pair."
    if not is_person("GET", "/", request.headers.get("accept", "").encode("latin-1")):
        raise Unauthorized(message)
    headers = {"content-security-policy": POLICY, "www-authenticate": "Bearer"}
    return Response(refusal_page(401, message), status_code=401, media_type="text/html", headers=headers)


@get("/page/{page_file:str}", include_in_schema=False)
async def page_file(state: State, request: Connection, page_file: FromPath[str]) -> Response[Any]:
    """A script, style or picture of the page as it is now."""
    edition = await asyncio.to_thread(services_of(state).page.current)
    return _file(edition.find(page_file), request)


@get("/page/{edition:str}/{page_file:str}", include_in_schema=False)
async def kept_page_file(
    state: State, request: Connection, edition: FromPath[str], page_file: FromPath[str]
) -> Response[Any]:
    """The same, of an edition that the front page named: a browser asks for it once."""
    page = services_of(state).page
    if kept := page.kept(edition):
        return _file(kept.find(page_file), request, _FOR_GOOD)
    # A tab of before an upgrade still names the edition of then, and so does the first request after a restart.
    current = await asyncio.to_thread(page.current)
    return _file(current.find(page_file), request, _FOR_GOOD if current.name == edition else _ASK_AGAIN)


def _file(found: PageFile | None, request: Connection, keeping: str = _ASK_AGAIN) -> Response[Any]:
    if found is None:
        raise NotFound("The page has no such file.")
    headers = {
        "content-security-policy": PAGE_POLICY,
        "cache-control": keeping,
        "etag": found.etag,
        "vary": "accept-encoding",
        **_ISOLATED,
    }
    if found.etag in request.headers.get("if-none-match", ""):
        return Response(None, status_code=304, headers=headers)
    return _whole(found, request, headers)


def _whole(found: PageFile, request: Connection, headers: dict[str, str]) -> Response[Any]:
    content = found.content
    if found.packed and "gzip" in request.headers.get("accept-encoding", ""):
        content = found.packed
        headers["content-encoding"] = "gzip"
    return Response(content, media_type=found.kind, headers=headers)


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
    text = plain_page("Windlass API", f"<h1>Windlass API</h1><p>{limit} <a href=/openapi.json>OpenAPI</a></p>{table}")
    return Response(text, media_type="text/html", headers={"content-security-policy": POLICY})


@get("/openapi.json", include_in_schema=False)
async def openapi_document() -> dict[str, Any]:
    return await _document()


async def _document() -> dict[str, Any]:
    # In a thread: the first to ask waits some tenths of a second until it is made, and nobody else should.
    return await asyncio.to_thread(openapi.document)
