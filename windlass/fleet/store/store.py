"""The sessions of agents as files, by project: parents with their children, and indices that always equal them.

A session's file is the truth. `index.json` and each `children.json` are made from these files, so they can always be
made again; `rebuild` does, byte for byte. Opening a project (the first use of it through a Store) does as well, so it
does not matter what happened to the files before. After that, every change is made under the project's lock, and one
that was cut short by a crash leaves its mark there (`shared_state`): whoever takes the lock next, in whatever process,
makes the indices again before it reads or writes anything. So no reader ever sees an index that differs from its
rebuild (I24).

Files are replaced whole: temporary file in the same directory, sync, rename, sync of the directory. All of this blocks:
an event loop calls it in a thread.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from windlass import limits
from windlass.errors import Conflict, Invalid, NotFound, TooLarge, TooMany
from windlass.fleet.mailbox.mailbox import Mailbox
from windlass.fleet.mailbox.mailbox_shapes import MailboxBounds
from windlass.fleet.store.durable_files import Unreadable, make_directories, write_whole
from windlass.fleet.store.project_key import checked_id, project_key
from windlass.fleet.store.shared_state import Held, SharedState
from windlass.fleet.store.store_files import Children, Found, ProjectFiles, encoded, entry_of, read_session, scan
from windlass.ids import is_run_id
from windlass.wire.agents import AgentEntry, AgentIndex, AgentSession


class Changes(msgspec.Struct, frozen=True):
    """What is shared between the writers of a project: how many changes were finished."""

    count: int = 0


class Rebuilt(msgspec.Struct, frozen=True):
    """`mended` are the indices that did not say what the files say; `problems` the files that no index can name.

    `was_good` is whether the next read would have believed the indices as they were.
    """

    sessions: int
    mended: list[str]
    problems: list[str]
    was_good: bool


class Store:
    """Everything below one root directory. Any number of these, in any number of processes, may share it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._opened: set[str] = set()

    def save(self, project: Path, session_id: str, session: AgentSession, parent: str = "") -> None:
        """Write a session, durably, and its line in the indices. `parent` is needed once, when a child is new."""
        content = _session_content(session)
        files = self._files(project)
        checked_id(session_id)
        if parent:
            checked_id(parent)
        make_directories(files.sessions)
        with self._locked(files) as held:
            index = _read_index(files)
            parent = _place(index, session_id, parent)
            held.begin()
            file = files.session(session_id, parent)
            make_directories(file.parent)
            write_whole(file, content)
            if parent:
                children = {**_read_children(files, parent), session_id: entry_of(session)}
                write_whole(files.children_index(parent), encoded(children))
            if session_id not in index.parents and session_id not in index.roots:
                write_whole(files.index, encoded(_with_session(index, session_id, parent)))
            _finish(held)

    def load(self, project: Path, session_id: str) -> AgentSession:
        """Raises NotFound, or Conflict if the file is damaged."""
        files = self._files(project)
        parent = self.index(project).parents.get(checked_id(session_id), "")
        file = files.session(session_id, parent)
        try:
            return read_session(file)
        except FileNotFoundError:
            raise NotFound(f"There is no agent {session_id!r} in this project. `windlass agents` lists them.") from None
        except Unreadable as problem:
            raise Conflict(f"{file} cannot be read: {problem}. Mend or remove it.") from None

    def index(self, project: Path) -> AgentIndex:
        """Which sessions there are, and whose children."""
        files = self._files(project)
        if not files.sessions.is_dir():
            return AgentIndex()
        with self._locked(files):
            return _read_index(files)

    def children(self, project: Path, parent: str) -> dict[str, AgentEntry]:
        """The children of a session by id, without their payloads."""
        files = self._files(project)
        checked_id(parent)
        if not files.sessions.is_dir():
            return {}
        with self._locked(files):
            return _read_children(files, parent)

    def rebuild(self, project: Path) -> Rebuilt:
        """Make every index of the project again from its session files."""
        files = self._files(project)
        if not files.sessions.is_dir():
            return Rebuilt(0, [], [], True)
        with SharedState(files.state, Changes).locked() as held:
            return self._mend(files, held)

    def forget_mailbox(self, project: Path, session_id: str) -> None:
        """Delete a mailbox with all that is in it."""
        shutil.rmtree(self._files(project).mailboxes / checked_id(session_id), ignore_errors=True)

    def mailbox(self, project: Path, session_id: str, bounds: MailboxBounds | None = None) -> Mailbox:
        """The mailbox of any session id, also of one that has no file here: a server's, for example."""
        return Mailbox(self._files(project).mailboxes / checked_id(session_id), bounds)

    def mailboxes(self, project: Path) -> list[str]:
        """The sessions that have a mailbox."""
        place = self._files(project).mailboxes
        return sorted(name for name in os.listdir(place) if is_run_id(name)) if place.is_dir() else []

    def project_directory(self, project: Path) -> Path:
        return self._root / "projects" / project_key(project)

    # -- private ------------------------------------------------------------------------------------------------------

    def _files(self, project: Path) -> ProjectFiles:
        return ProjectFiles(self.project_directory(project))

    @contextmanager
    def _locked(self, files: ProjectFiles) -> Iterator[Held[Changes]]:
        """The project's lock, with indices that equal their rebuild."""
        with SharedState(files.state, Changes).locked() as held:
            if not self._is_good(files, held):
                self._mend(files, held)
            yield held

    def _is_good(self, files: ProjectFiles, held: Held[Changes]) -> bool:
        """Whether the indices can be believed: we made them or saw them made, and nobody died over them since."""
        return held.content is not None and files.directory.name in self._opened and files.index.is_file()

    def _mend(self, files: ProjectFiles, held: Held[Changes]) -> Rebuilt:
        """Write the indices that differ from what the files say, and remove what a crash left."""
        was_good = self._is_good(files, held)
        found = scan(files)
        held.begin()
        for leftover in found.leftovers:
            leftover.unlink(missing_ok=True)
        mended = [str(path.relative_to(files.directory)) for path in _write_indices(files, found)]
        _finish(held)
        self._opened.add(files.directory.name)
        return Rebuilt(len(found.index.roots) + len(found.index.parents), mended, found.problems, was_good)


def _session_content(session: AgentSession) -> bytes:
    """The file's content. Raises Invalid or TooLarge."""
    try:
        content = msgspec.json.encode(session)
        msgspec.json.decode(content, type=AgentSession)
        msgspec.json.decode(session.payload)  # the rest of the file must not depend on a stranger's brackets
    except (ValueError, TypeError, RecursionError) as error:
        raise Invalid(f"This is no session of an agent: {error}.") from error
    if len(content) > limits.AGENT_SESSION_BYTES:
        raise TooLarge(f"The session has {len(content)} bytes; {limits.AGENT_SESSION_BYTES} are allowed. Shorten it.")
    return content


def _place(index: AgentIndex, session_id: str, parent: str) -> str:
    """Whose child this session is, "" for none. Raises Conflict if it would be in two places, or above itself."""
    known = index.parents.get(session_id, "")
    if known or session_id in index.roots:
        if parent and parent != known:
            raise Conflict(f"{session_id} is {f'a child of {known}' if known else 'no child'}, and stays so.")
        return known
    if len(index.roots) + len(index.parents) >= limits.AGENT_SESSIONS:
        raise TooMany(f"The project has {limits.AGENT_SESSIONS} agents. Remove directories of old ones, then rebuild.")
    above, seen = parent, {session_id}
    while above:
        if above in seen:  # also where somebody copied files into a circle by hand
            raise Conflict(f"{session_id} cannot be a child of {parent}: it is above it.")
        seen.add(above)
        above = index.parents.get(above, "")
    return parent


def _with_session(index: AgentIndex, session_id: str, parent: str) -> AgentIndex:
    if parent:
        return AgentIndex(index.roots, {**index.parents, session_id: parent})
    return AgentIndex(sorted([*index.roots, session_id]), index.parents)


def _read_index(files: ProjectFiles) -> AgentIndex:
    return msgspec.json.decode(files.index.read_bytes(), type=AgentIndex)


def _read_children(files: ProjectFiles, parent: str) -> Children:
    try:
        return msgspec.json.decode(files.children_index(parent).read_bytes(), type=Children)
    except FileNotFoundError:
        return {}


def _write_indices(files: ProjectFiles, found: Found) -> Iterator[Path]:
    """Those that are right are not touched; the others are told."""
    expected = {files.children_index(parent): encoded(children) for parent, children in found.children.items()}
    expected[files.index] = encoded(found.index)
    for path, content in expected.items():
        with suppress(FileNotFoundError):
            if path.read_bytes() == content:
                continue
        write_whole(path, content)
        yield path
    for parent in os.listdir(files.sessions):
        stale = files.children_index(parent)
        if stale not in expected and stale.is_file():
            stale.unlink()
            yield stale


def _finish(held: Held[Changes]) -> None:
    held.finish(Changes(held.last.count + 1 if held.last is not None else 1))
