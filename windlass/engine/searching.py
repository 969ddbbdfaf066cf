"""Looking for words in the conversations of a workspace, for as long as a person would wait."""

from windlass import limits
from windlass.engine.workspace import Workspace
from windlass.journal import search as journal_search
from windlass.wire.http import SearchHit


async def search(workspace: Workspace, text: str, limit: int) -> list[SearchHit]:
    """Sessions with the text in their title, then messages that contain it, each the newest first.

    Looks at a bounded number of messages and of bytes, for a bounded time; what is older than that is not found. A
    message that is being written is found once it is whole.
    """
    wanted = journal_search.words(text)
    hits = await workspace.read(journal_search.titles, workspace.id, wanted, max(1, limit // 2))
    deadline = workspace.context.clock.monotonic() + limits.CONVERSATION_SEARCH_SECONDS
    rows = size = 0
    arguments: tuple[int, ...] = ()
    while len(hits) < limit:
        # A slice at a time: whoever else wants to read has a turn in between.
        found = await workspace.read(journal_search.messages, workspace.id, wanted, limit - len(hits), *arguments)
        hits += found.hits
        rows, size = rows + found.rows, size + found.size
        spent = rows >= limits.CONVERSATION_SEARCH_ROWS or size >= limits.CONVERSATION_SEARCH_BYTES
        if not found.before or spent or workspace.context.clock.monotonic() >= deadline:
            break
        arguments = (found.before,)
    return [SearchHit(hit.session, hit.title, hit.message, hit.role, hit.excerpt, hit.at) for hit in hits[:limit]]
