"""Route: looking for words in the conversations of a workspace."""

from litestar import Router, get
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery

from windlass import limits
from windlass.engine import searching
from windlass.errors import BadRequest, Invalid
from windlass.server.services import services_of, whole_number, workspace_of
from windlass.wire.http import SearchHit


@get("/search")
async def search(
    state: State, workspace_id: FromPath[str], q: FromQuery[str] = "", limit: FromQuery[str] = ""
) -> list[SearchHit]:
    """Where the text `?q=` occurs, upper and lower case alike: in titles, what was said, and what tools were given and
    gave; the newest first, at most `?limit=`. A hit in a title has no message."""
    workspace = workspace_of(state, workspace_id)
    shortest, longest = limits.SEARCH_TEXT_CHARACTERS_MIN, limits.SEARCH_TEXT_CHARACTERS
    if not q:
        raise BadRequest("q is missing: the text to look for.")
    if not shortest <= len(q) <= longest or not q.strip() or not _is_text(q):
        raise Invalid(f"q must be a text of {shortest} to {longest} characters.")
    count = whole_number(limit, "limit", limits.SEARCH_HITS_DEFAULT, limits.SEARCH_HITS)
    async with services_of(state).searches.turn():
        return await searching.search(workspace, q, count)


def _is_text(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)


router = Router(path="/v1/workspaces/{workspace_id:str}", route_handlers=[search], tags=["Sessions and messages"])
