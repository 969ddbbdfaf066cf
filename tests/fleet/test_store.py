"""The sessions of agents by project: whole files, indices that equal them, and keys that are nobody else's."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass import limits
from windlass.errors import Conflict, Invalid, NotFound, TooLarge, TooMany
from windlass.fleet.store.project_key import project_key
from windlass.fleet.store.store import Store
from windlass.wire.agents import AgentEntry, AgentSession

PROJECT = Path("/a/b")


def a_session(payload: bytes = b"null", **fields: object) -> AgentSession:
    return AgentSession(**{"type": "agent", "status": "idle", "payload": msgspec.Raw(payload), **fields})  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def indices(store: Store, project: Path = PROJECT) -> dict[str, bytes]:
    """Every index on disk, byte for byte."""
    directory = store.project_directory(project)
    found = [directory / "index.json", *directory.glob("sessions/*/children.json")]
    return {str(path.relative_to(directory)): path.read_bytes() for path in found if path.exists()}


# -- the key --


def test_a_key_is_readable_and_no_other_projects() -> None:
    """B70: with `/` turned into `-` two projects would share their agents."""
    assert project_key(Path("/a/b")).startswith("a-b-")
    assert project_key(Path("/a/b")) != project_key(Path("/a-b"))


@given(st.lists(st.text("ab-./ \\é\n", min_size=1, max_size=40), min_size=2, max_size=2, unique=True))
def test_two_paths_never_share_a_key(paths: list[str]) -> None:
    """B70: else one project's agents would read the other's mail."""
    first, second = (Path("/x") / path.lstrip("/") for path in paths)
    same = os.path.realpath(first) == os.path.realpath(second)
    assert (project_key(first) == project_key(second)) == same


@pytest.mark.parametrize("path", ["/", "/" + "x" * 250 + "/" + "y" * 250, "/ü/\udc80/..hidden", "/a\nb"])
def test_a_key_is_a_plain_name_of_bounded_length(path: str) -> None:
    """It becomes the name of a directory: too long, and nothing could be stored for that project."""
    key = project_key(Path(path))
    assert len(key) <= limits.PROJECT_KEY_CHARACTERS + 33
    assert key.isascii() and not key.startswith(".") and "/" not in key and "\n" not in key


def test_a_link_to_a_project_is_the_same_project(tmp_path: Path) -> None:
    """People reach a directory by several names; their agents are the same."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert project_key(tmp_path / "link") == project_key(tmp_path / "real")


# -- saving and loading --


def test_a_session_comes_back_as_it_was_saved_its_payload_byte_for_byte(store: Store) -> None:
    """B70: the payload is its owner's: a number written otherwise may be another one to them."""
    payload = '{ "n": 1.10, "big": 123456789012345678901234567890, "é": [] }'.encode()
    session = a_session(payload, status="running", title="t", responsibility="r", updated_at=7)
    store.save(PROJECT, "top", session)
    loaded = store.load(PROJECT, "top")
    assert bytes(loaded.payload) == payload
    assert (loaded.status, loaded.title, loaded.responsibility, loaded.updated_at) == ("running", "t", "r", 7)


def test_sessions_lie_where_the_layout_says(store: Store) -> None:
    """Other programs look for them there."""
    store.save(PROJECT, "top", a_session())
    store.save(PROJECT, "kid", a_session(title="a child"), parent="top")
    sessions = store.project_directory(PROJECT) / "sessions"
    assert json.loads((sessions / "top" / "session.json").read_text())["type"] == "agent"
    assert json.loads((sessions / "top" / "children" / "kid" / "session.json").read_text())["title"] == "a child"


def test_the_indices_name_parents_and_children_without_their_payloads(store: Store) -> None:
    """A list of a hundred agents must not read a hundred transcripts."""
    store.save(PROJECT, "top", a_session())
    store.save(PROJECT, "kid", a_session(b'"long"', status="error", title="T", responsibility="R", updated_at=9), "top")
    index = store.index(PROJECT)
    assert (index.roots, index.parents) == (["top"], {"kid": "top"})
    assert store.children(PROJECT, "top") == {"kid": AgentEntry("agent", "error", "T", "R", 9)}
    assert b"long" not in b"".join(indices(store).values())


def test_a_child_needs_its_parent_only_once(store: Store) -> None:
    """Whoever changes its status later need not know whose child it is."""
    store.save(PROJECT, "kid", a_session(), parent="top")
    store.save(PROJECT, "kid", a_session(status="completed"))
    assert store.children(PROJECT, "top")["kid"].status == "completed"
    assert store.index(PROJECT).roots == []


def test_a_session_cannot_be_in_two_places(store: Store) -> None:
    """B70: which of the two files would be the truth?"""
    store.save(PROJECT, "top", a_session())
    store.save(PROJECT, "kid", a_session(), parent="top")
    with pytest.raises(Conflict, match="a child of top"):
        store.save(PROJECT, "kid", a_session(), parent="other")
    with pytest.raises(Conflict, match="no child"):
        store.save(PROJECT, "top", a_session(), parent="other")


def test_nobody_is_above_itself(store: Store) -> None:
    """Whoever walks up from a child to its root would walk for ever."""
    store.save(PROJECT, "b", a_session(), parent="a")
    store.save(PROJECT, "c", a_session(), parent="b")
    with pytest.raises(Conflict, match="above"):
        store.save(PROJECT, "a", a_session(), parent="c")
    with pytest.raises(Conflict, match="above"):
        store.save(PROJECT, "x", a_session(), parent="x")


def test_projects_do_not_see_each_other(store: Store) -> None:
    """B70: two checkouts with agents of the same name."""
    store.save(Path("/a/b"), "top", a_session(title="one"))
    store.save(Path("/a-b"), "top", a_session(title="two"))
    assert store.load(Path("/a/b"), "top").title == "one"


@pytest.mark.parametrize("name", ["", "..", "a/b", "../../x", "a.b", "x" * 65, "a\0b", "é", "a\n"])
@pytest.mark.parametrize("use", ["save", "parent", "load", "children", "mailbox"])
def test_an_id_that_is_none_never_becomes_a_path(store: Store, tmp_path: Path, name: str, use: str) -> None:
    """A19: `../../x` would write wherever its sender likes."""
    if use == "parent" and not name:
        return  # no parent
    uses: dict[str, Callable[[], object]] = {
        "save": lambda: store.save(PROJECT, name, a_session()),
        "parent": lambda: store.save(PROJECT, "kid", a_session(), parent=name),
        "load": lambda: store.load(PROJECT, name),
        "children": lambda: store.children(PROJECT, name),
        "mailbox": lambda: store.mailbox(PROJECT, name),
    }
    with pytest.raises(Invalid, match="no session id"):
        uses[use]()
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_is_told(store: Store) -> None:
    """And looking for it makes no directories."""
    with pytest.raises(NotFound):
        store.load(PROJECT, "top")
    assert (store.index(PROJECT).roots, store.children(PROJECT, "top"), store.mailboxes(PROJECT)) == ([], {}, [])
    assert store.rebuild(PROJECT).sessions == 0
    assert not store.project_directory(PROJECT).exists()


@pytest.mark.parametrize("payload", [b"", b"{", b'1, "status": "error"', b"[" * 10_000, b"nonsense"])
def test_a_payload_that_is_no_json_is_refused(store: Store, payload: bytes) -> None:
    """It stands in the middle of the file: a stray bracket would make the whole of it unreadable."""
    with pytest.raises(Invalid):
        store.save(PROJECT, "top", a_session(payload))


def test_a_session_over_its_bound_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every reader takes the whole of it into memory."""
    monkeypatch.setattr(limits, "AGENT_SESSION_BYTES", 1000)
    with pytest.raises(TooLarge):
        store.save(PROJECT, "top", a_session(b'"' + b"x" * 1000 + b'"'))


def test_the_number_of_sessions_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is read whole."""
    monkeypatch.setattr(limits, "AGENT_SESSIONS", 2)
    store.save(PROJECT, "a", a_session())
    store.save(PROJECT, "b", a_session(), parent="a")
    with pytest.raises(TooMany):
        store.save(PROJECT, "c", a_session())
    store.save(PROJECT, "b", a_session(status="completed"))


def test_a_session_without_a_file_has_a_mailbox(store: Store) -> None:
    """The sessions of a server live in its journal, and get mail all the same."""
    from tests.fleet.mailbox_kit import a_mail

    store.mailbox(PROJECT, "ses_1").deliver(a_mail())
    assert store.mailboxes(PROJECT) == ["ses_1"]
    assert store.mailbox(PROJECT, "ses_1").statistics().waiting == 1


# -- the indices --


def fill(store: Store) -> None:
    for top in ("b", "a"):
        store.save(PROJECT, top, a_session())
        for child in ("2", "1"):
            store.save(PROJECT, f"{top}{child}", a_session(title=child), parent=top)
    store.save(PROJECT, "a11", a_session(), parent="a1")
    store.save(PROJECT, "a2", a_session(status="completed", title="é"))


def test_indices_kept_change_by_change_equal_their_rebuild_byte_for_byte(store: Store) -> None:
    """I24: what is read from an index would not be what the files say."""
    fill(store)
    before = indices(store)
    assert store.rebuild(PROJECT).mended == []
    for path in before:
        (store.project_directory(PROJECT) / path).unlink()
    assert len(store.rebuild(PROJECT).mended) == len(before) == 4
    assert indices(store) == before


DAMAGE: dict[str, Callable[[Path], object]] = {
    "no index": lambda project: (project / "index.json").unlink(),
    "half an index": lambda project: (project / "index.json").write_bytes(b'{"roots": ["a"'),
    "an index of before": lambda project: (project / "index.json").write_bytes(b'{"roots":["a"],"parents":{}}'),
    "another status": lambda project: _replace(project / "sessions/a/children.json", b"completed", b"running"),
    "an index of nobody's children": lambda project: (
        (project / "sessions/b2x").mkdir() or _write(project / "sessions/b2x/children.json", b"{}")
    ),
    "a session that was removed": lambda project: (project / "sessions/a/children/a2/session.json").unlink(),
    "a session that came by another way": lambda project: (
        (project / "sessions/new").mkdir()
        or _write(project / "sessions/new/session.json", b'{"type":"x","status":"idle"}')
    ),
    "a file that has no name yet": lambda project: _write(project / "sessions/a/.unfinished-0011", b"{"),
}


def _replace(path: Path, old: bytes, new: bytes) -> None:
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new))


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


@pytest.mark.parametrize("damage", DAMAGE)
def test_after_opening_the_indices_equal_their_rebuild(store: Store, tmp_path: Path, damage: str) -> None:
    """I24: whatever happened to the files, in a crash or by hand."""
    fill(store)
    DAMAGE[damage](store.project_directory(PROJECT))
    reopened = Store(tmp_path)
    reopened.index(PROJECT)
    seen = indices(store)
    assert reopened.rebuild(PROJECT).mended == []
    assert indices(store) == seen
    assert not list(tmp_path.rglob(".unfinished-*"))


def test_a_store_that_is_open_notices_that_another_process_died_in_the_middle(store: Store, tmp_path: Path) -> None:
    """I24: the other one's session would be there, and in no index, until everyone is started again."""
    fill(store)
    project = store.project_directory(PROJECT)
    with (project / "state").open("r+b") as state:
        state.write(b"~")  # what `begin` leaves
    (project / "sessions" / "new").mkdir()
    (project / "sessions" / "new" / "session.json").write_bytes(b'{"type":"x","status":"idle"}')
    assert "new" in store.index(PROJECT).roots


def test_indices_of_an_earlier_boot_are_made_again(store: Store) -> None:
    """I24: after a power cut nothing says how much of an index reached the disk."""
    fill(store)
    project = store.project_directory(PROJECT)
    _replace(project / "state", b'"boot":"', b'"boot":"another')
    (project / "sessions" / "new").mkdir()
    (project / "sessions" / "new" / "session.json").write_bytes(b'{"type":"x","status":"idle"}')
    assert "new" in store.index(PROJECT).roots


def test_a_damaged_session_is_told_and_spoils_nothing_else(store: Store) -> None:
    """One bad file must not hide all agents of a project, nor be taken for none."""
    fill(store)
    file = store.project_directory(PROJECT) / "sessions" / "a" / "session.json"
    file.write_bytes(b'{"type": "agent", "stat')
    rebuilt = store.rebuild(PROJECT)
    assert rebuilt.sessions == 6
    assert len(rebuilt.problems) == 1 and str(file) in rebuilt.problems[0]
    assert store.index(PROJECT).roots == ["b"]
    with pytest.raises(Conflict, match="Mend or remove it"):
        store.load(PROJECT, "a")


def test_two_stores_that_write_keep_each_others_changes(store: Store, tmp_path: Path) -> None:
    """B70: an index written from an old copy of it would drop what another process added."""
    other = Store(tmp_path)
    for number in range(5):
        store.save(PROJECT, f"a{number}", a_session(), parent="top")
        other.save(PROJECT, f"b{number}", a_session(), parent="top")
    assert len(store.children(PROJECT, "top")) == len(other.index(PROJECT).parents) == 10
