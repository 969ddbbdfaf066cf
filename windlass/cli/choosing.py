"""Ids are long: the beginning of one is enough, as long as it means one thing."""

from collections.abc import Sequence
from contextlib import suppress

from windlass.client import NotFound, WorkspaceHandle


def choose(text: str, candidates: Sequence[str], what: str) -> str:
    """The candidate that is `text` or the only one that begins with it. Raises NotFound, saying why, otherwise."""
    if text in candidates:
        return text
    if not text:
        raise NotFound(f"Say which {what}: an id, or its beginning.")
    matching = [candidate for candidate in candidates if candidate.startswith(text)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise NotFound(f"{len(matching)} {what}s begin with {text!r}. Give more of the id.")
    raise NotFound(f"There is no {what} {text!r} here.")


async def whole_id(workspace: WorkspaceHandle, session_id: str) -> str:
    """The session's whole id. That of a sub-agent's session has to be given whole: those are not in the list."""
    try:
        return choose(session_id, [session.id for session in await workspace.sessions()], "session")
    except NotFound:
        if session_id:
            with suppress(NotFound):
                return (await workspace.session(session_id)).id
        raise
