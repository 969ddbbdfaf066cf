"""`windlass agents`: the sessions of agents that are kept as files, parents with their children."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from windlass import limits
from windlass.cli.agent_store import agent_store
from windlass.cli.options import ListingGroup, data_dir_option, directory_option, json_option
from windlass.cli.safe_text import exact, prose, shortened
from windlass.cli.terminal import Terminal
from windlass.client import NotFound

if TYPE_CHECKING:
    from windlass.fleet.store.store import Store
    from windlass.wire.agents import AgentStatus

_FIELDS = ("type", "status", "title", "responsibility", "updated_at")
STATUSES = ("pending", "running", "idle", "completed", "error", "cancelled")


@click.group(cls=ListingGroup)
def agents() -> None:
    """List, show and write the sessions of agents that are kept as files.

    \b
    Examples:
      windlass agents
      windlass agents save reviewer --type agent --status idle --title "Reads what others wrote"
      windlass agents show reviewer
    """


@agents.command("list")
@directory_option
@data_dir_option
@json_option
def list_agents(directory: Path, data_dir: Path | None, as_json: bool) -> None:
    """List the agents of a project, children below their parents.

    \b
    Example:
      windlass agents list -C ~/project --json
    """
    with agent_store(data_dir) as store:
        found = _families(store, directory)
    terminal = Terminal()
    if as_json:
        terminal.json([{name: value for name, value in agent.items() if name != "depth"} for agent in found])
    elif not found:
        terminal.status("No agents are kept here yet. `windlass agents save` writes one.")
    else:
        terminal.table(["ID", "STATUS", "TYPE", "TITLE"], [_row(agent) for agent in found])


def _families(store: "Store", directory: Path) -> list[dict[str, Any]]:
    """Everyone, children right below their parents."""
    index = store.index(directory)
    # A parent may have no file of its own: a server's session, for example.
    tops = sorted({*index.roots, *index.parents.values()} - index.parents.keys(), reverse=True)
    found = []
    to_do: list[tuple[str, str, int, Any]] = [(top, "", 0, _top(store, directory, top)) for top in tops]
    seen = set()
    while to_do:
        session_id, parent, depth, entry = to_do.pop()
        if session_id in seen:
            continue  # somebody copied files by hand; in a circle this would never end
        seen.add(session_id)
        said = {name: getattr(entry, name, "") for name in _FIELDS}
        found.append({"id": session_id, "parent": parent, **said, "depth": depth})
        children = store.children(directory, session_id)
        to_do += [(child, session_id, depth + 1, children[child]) for child in sorted(children, reverse=True)]
    return found


def _top(store: "Store", directory: Path, session_id: str) -> Any:
    try:
        return store.load(directory, session_id)
    except NotFound:
        return None


def _row(agent: dict[str, Any]) -> list[str]:
    name = "  " * agent["depth"] + exact(agent["id"])
    return [name, exact(agent["status"]), exact(agent["type"]), shortened(exact(agent["title"]), 60)]


@agents.command("show")
@click.argument("session_id", metavar="ID")
@directory_option
@data_dir_option
@json_option
def show_agent(session_id: str, directory: Path, data_dir: Path | None, as_json: bool) -> None:
    """Print all that is kept of one agent.

    \b
    Example:
      windlass agents show reviewer
    """
    with agent_store(data_dir) as store:
        session = store.load(directory, session_id)
        said = {name: getattr(session, name) for name in session.__struct_fields__}
        said["payload"] = msgspec.json.decode(session.payload)
    terminal = Terminal()
    if as_json:
        terminal.json({"id": session_id, **said})
        return
    for name, value in said.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        terminal.line(f"{name}: {prose(text)}")


@agents.command("save")
@click.argument("session_id", metavar="ID")
@click.option("--type", "kind", required=True, help="What it is, in the words of whoever runs it.")
@click.option("--status", type=click.Choice(STATUSES), required=True, help="How it is doing.")
@click.option("--title", default="", help="For people.")
@click.option("--responsibility", default="", help="What it is there for.")
@click.option("--parent", default="", metavar="ID", help="Whose child it is; needed when it is new.")
@click.option("--payload", type=click.File("rb"), help="A file with JSON to keep with it; - for standard input.")
@directory_option
@data_dir_option
def save_agent(
    session_id: str,
    kind: str,
    status: "AgentStatus",
    title: str,
    responsibility: str,
    parent: str,
    payload: Any,
    directory: Path,
    data_dir: Path | None,
) -> None:
    """Write one agent's session, whole.

    \b
    Example:
      windlass agents save tester --parent reviewer --type agent --status running
    """
    from windlass.wire.agents import AgentSession

    content = payload.read(limits.AGENT_SESSION_BYTES + 1) if payload is not None else b"null"
    with agent_store(data_dir) as store:
        session = AgentSession(kind, status, title, responsibility, int(time.time()), msgspec.Raw(content))
        store.save(directory, session_id, session, parent)
    Terminal().status(f"Saved {exact(session_id)}.")


@agents.command("rebuild")
@directory_option
@data_dir_option
@json_option
def rebuild_agents(directory: Path, data_dir: Path | None, as_json: bool) -> None:
    """Make the indices again from the session files, and say what was wrong. Code 1 if files had to be left out.

    \b
    Example:
      windlass agents rebuild
    """
    with agent_store(data_dir) as store:
        rebuilt = store.rebuild(directory)
    terminal = Terminal()
    if as_json:
        terminal.json(rebuilt)
    else:
        for name in rebuilt.mended:
            terminal.line(f"mended {exact(name)}")
        for problem in rebuilt.problems:
            terminal.line(exact(problem))
        terminal.line(f"The indices say what {rebuilt.sessions} session files say.")
    if rebuilt.problems:
        raise SystemExit(1)
