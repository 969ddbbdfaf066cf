"""The files of one project in the store, read from disk: what its indices must say."""

import os
from pathlib import Path

import msgspec

from windlass import limits
from windlass.fleet.store.durable_files import Unreadable, is_unfinished, read_whole
from windlass.ids import is_run_id
from windlass.wire.agents import AgentEntry, AgentIndex, AgentSession

Children = dict[str, AgentEntry]


class ProjectFiles:
    """Where everything of a project is."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.sessions = directory / "sessions"
        self.index = directory / "index.json"
        self.state = directory / "state"
        self.mailboxes = directory / "mailboxes"

    def session(self, session_id: str, parent: str) -> Path:
        home = self.children_of(parent) / session_id if parent else self.sessions / session_id
        return home / "session.json"

    def children_of(self, parent: str) -> Path:
        return self.sessions / parent / "children"

    def children_index(self, parent: str) -> Path:
        return self.sessions / parent / "children.json"


class Found(msgspec.Struct):
    """What the session files say. `problems` are files that were left out, and why; `leftovers` a crash left."""

    index: AgentIndex = msgspec.field(default_factory=AgentIndex)
    children: dict[str, Children] = {}
    problems: list[str] = []
    leftovers: list[Path] = []


def scan(files: ProjectFiles) -> Found:
    """Read every session file. The order of the result does not depend on the order of the directory."""
    found = Found()
    _look_for_leftovers(found, files.directory)
    for parent in _directories(found, files.sessions):
        _look_for_leftovers(found, files.sessions / parent)
        if _entry(found, files.session(parent, "")) is not None:
            found.index.roots.append(parent)
        children: Children = {}
        for child in _directories(found, files.children_of(parent)):
            entry = _entry(found, files.session(child, parent))
            if entry is not None:
                children[child] = entry
        if children:
            found.children[parent] = children
    _name_parents(found)
    return found


def _name_parents(found: Found) -> None:
    for parent, children in found.children.items():
        for child in children:
            elsewhere = found.index.parents.setdefault(child, parent)
            if elsewhere != parent or child in found.index.roots:
                # Never made by `save`; the index can name one place only.
                found.problems.append(f"{child} is in several places; the index names the first. Remove the others.")


def _directories(found: Found, place: Path) -> list[str]:
    """The directories of sessions in a place, in order."""
    if not place.is_dir():
        return []
    names = []
    for name in sorted(os.listdir(place)):
        if not is_run_id(name):
            found.problems.append(f"{place / name!s} is left out: its name is no session id.")
        elif (place / name).is_dir():
            names.append(name)
    return names


def _look_for_leftovers(found: Found, place: Path) -> None:
    if place.is_dir():
        found.leftovers += [place / name for name in os.listdir(place) if is_unfinished(name)]


def _entry(found: Found, file: Path) -> AgentEntry | None:
    _look_for_leftovers(found, file.parent)
    try:
        return entry_of(read_session(file))
    except FileNotFoundError:
        return None  # a directory without its file: a writer was killed before there was a session
    except Unreadable as problem:
        found.problems.append(f"{file} is left out: {problem}. Mend or remove it.")
        return None


def read_session(file: Path) -> AgentSession:
    """Raises FileNotFoundError or Unreadable."""
    try:
        return msgspec.json.decode(read_whole(file, limits.AGENT_SESSION_BYTES), type=AgentSession)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is no session: {error}") from error


def entry_of(session: AgentSession) -> AgentEntry:
    return AgentEntry(session.type, session.status, session.title, session.responsibility, session.updated_at)


def encoded(value: AgentIndex | Children) -> bytes:
    """An index as it stands on disk: the same content is the same bytes."""
    return msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=1) + b"\n"
