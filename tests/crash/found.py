"""What is there in the end: the log, runs and conversations as a new client gets them, the file, the processes."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windlass.journal.rebuild import compare
from windlass.testing.processes import marked
from windlass.testing.server_process import Api, Event, until


@dataclass
class Found:
    """One workspace."""

    directory: Path
    facts: list[Event]
    runs: list[dict[str, Any]]
    messages: dict[str, list[dict[str, Any]]]  # by session


async def find(api: Api) -> Found:
    facts = await _log(api)
    runs: list[dict[str, Any]] = []
    while page := await api.ok("GET", f"W/runs?limit=500&after={runs[-1]['id'] if runs else ''}"):
        runs += page
    sessions = [session["id"] for session in await api.ok("GET", "W/sessions")]
    messages = {session: await api.messages(session) for session in sessions}
    workspace = await api.ok("GET", f"/v1/workspaces/{api.workspace_id}")
    return Found(Path(workspace["path"]), facts, runs, messages)


async def _log(api: Api) -> list[Event]:
    reader = Api(api.server)
    reader.workspace_id = api.workspace_id
    async with reader, reader.stream(after="0") as tap:
        head = tap.events[0].body["head"]
        await until(lambda: bool(tap.facts) and tap.facts[-1].seq >= head, "the whole log")
        return tap.facts


def damage(file: Path) -> list[str]:
    """What is wrong with the file itself, and where its tables are not what the facts say (I15)."""
    database = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        problems = [f"the file is damaged: {text}" for (text,) in database.execute("PRAGMA integrity_check")]
        problems = [problem for problem in problems if not problem.endswith(": ok")]
        (left,) = database.execute("SELECT count(*) FROM checkpoints").fetchone()
        if left:
            problems.append(f"{left} texts of messages that are over are still kept")
        return problems + [f"I15: {difference}" for difference in compare(database)]
    finally:
        database.close()


def processes(marker: str) -> list[str]:
    """Command lines of living processes that hold the marker."""
    return [f"{pid} {line}" for pid, line in marked(marker).items()]
