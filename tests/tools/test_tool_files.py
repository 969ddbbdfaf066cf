"""WorkspaceRoot: no path leaves the workspace, and a file is written whole or not at all (A20-A23)."""

import fcntl
import os
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from windlass import limits
from windlass.tools import beneath, files
from windlass.tools.files import WorkspaceRoot
from windlass.wire.tools import FileRoot, ToolError

LIMIT = limits.FILE_READ_BYTES


@pytest.fixture(params=["openat2", "walk"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of opening, the kernel's and ours for kernels that have none."""
    if request.param == "walk":
        monkeypatch.setattr(beneath, "openat2_works", lambda: False)
    elif not beneath.openat2_works():
        pytest.skip("this kernel has no openat2")
    return str(request.param)


@contextmanager
def refused(match: str | None = None) -> Iterator[None]:
    with pytest.raises(ToolError, match=match):
        yield


# -- paths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "meant"),
    [("a", "a"), ("./a//b/", "a/b"), ("a/../b", "b"), (".", ""), ("a/..", ""), ("...", "..."), ("..a", "..a")],
)
def test_a_relative_path_is_made_plain(root: WorkspaceRoot, path: str, meant: str) -> None:
    """A grant is keyed by the path: two spellings of one file would be asked for twice, or one grant cover two."""
    assert root.relative(path) == meant


def test_an_absolute_path_below_the_root_is_taken(root: WorkspaceRoot, workspace: Path) -> None:
    """Models often use absolute paths; they would be told that a file of the workspace is outside it."""
    assert root.relative(f"{workspace}/a/b") == "a/b"


def test_a_root_opened_through_a_symlink_takes_both_names(workspace: Path, tmp_path: Path) -> None:
    """A person who works in a symlinked directory would have every absolute path refused."""
    (tmp_path / "alias").symlink_to(workspace)
    root = WorkspaceRoot(str(tmp_path / "alias"))
    assert [root.relative(f"{tmp_path}/alias/a"), root.relative(f"{workspace}/a")] == ["a", "a"]
    root.close()


@pytest.mark.parametrize(
    "path",
    ["..", "../secret", "a/../../secret", "/etc/passwd", "//etc/passwd", "/", "a\0b", "a" * 5000, "\ud800"],
)
def test_a_path_that_is_outside_or_malformed_is_refused(root: WorkspaceRoot, path: str) -> None:
    """A20: a model that was talked into it would read the user's keys."""
    with refused():
        root.relative(path)


def test_a_sibling_with_the_same_beginning_is_outside(root: WorkspaceRoot, workspace: Path) -> None:
    """`/home/me/project-secret` begins with `/home/me/project`; comparing text alone would let it in."""
    with refused("outside the workspace"):
        root.relative(f"{workspace}-secret/key")


def test_it_is_a_file_root(root: WorkspaceRoot) -> None:
    """Tools are given the port; a root that does not fit it could not be handed to them."""
    port: FileRoot = root
    assert port.list_directory("") == []


# -- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("way")
def test_a_file_is_read(root: WorkspaceRoot, workspace: Path) -> None:
    """The agent could not see the code it works on."""
    (workspace / "a").mkdir()
    (workspace / "a" / "b").write_bytes(b"\x00content")
    assert root.read_bytes("a/b", LIMIT) == b"\x00content"


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "target", ["../secret", "{outside}/secret", "/proc/self/environ", "/proc/self/root/etc/passwd"]
)
def test_a_symlink_out_of_the_workspace_is_not_followed(
    root: WorkspaceRoot, workspace: Path, tmp_path: Path, target: str
) -> None:
    """A21: a repository can ship a symlink to anything."""
    (workspace / "link").symlink_to(target.format(outside=tmp_path))
    with refused("cannot be used"):
        root.read_bytes("link", LIMIT)


@pytest.mark.usefixtures("way")
def test_a_directory_that_is_a_symlink_out_of_the_workspace_is_not_followed(
    root: WorkspaceRoot, workspace: Path
) -> None:
    """A21: the same, one level up."""
    (workspace / "link").symlink_to("..")
    with refused("cannot be used"):
        root.read_bytes("link/secret", LIMIT)


def test_a_symlink_inside_the_workspace_is_followed_for_reading(root: WorkspaceRoot, workspace: Path) -> None:
    """`CLAUDE.md -> AGENTS.md` is common, and harmless."""
    if not beneath.openat2_works():
        pytest.skip("this kernel has no openat2")
    (workspace / "file").write_text("text")
    (workspace / "link").symlink_to("file")
    assert root.read_bytes("link", LIMIT) == b"text"


@pytest.mark.usefixtures("way")
def test_a_symlink_that_is_swapped_all_the_time_never_leaks(
    root: WorkspaceRoot, workspace: Path, tmp_path: Path
) -> None:
    """A21: a command running beside us can swap a directory between our check and our open."""
    (workspace / "real").mkdir()
    (workspace / "real" / "secret").write_text("harmless")
    stop = threading.Event()

    def flip() -> None:
        while not stop.is_set():
            for target in ("real", str(tmp_path)):
                os.symlink(target, workspace / "new")
                os.rename(workspace / "new", workspace / "link")

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        for _ in range(2000):
            try:
                assert root.read_bytes("link/secret", LIMIT) == b"harmless"
            except ToolError:
                pass
    finally:
        stop.set()
        thread.join()


@pytest.mark.usefixtures("way")
def test_a_pipe_is_refused_and_does_not_hang(root: WorkspaceRoot, workspace: Path) -> None:
    """A22: reading a FIFO without a writer would hold a thread for ever."""
    os.mkfifo(workspace / "pipe")
    with refused("not a regular file"):
        root.read_bytes("pipe", LIMIT)


@pytest.mark.usefixtures("way")
def test_a_socket_is_refused(root: WorkspaceRoot, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A22."""
    monkeypatch.chdir(workspace)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
        with refused("not a regular file"):
            root.read_bytes("sock", LIMIT)


@pytest.mark.usefixtures("way")
def test_a_directory_is_not_a_file(root: WorkspaceRoot, workspace: Path) -> None:
    """A22."""
    (workspace / "a").mkdir()
    with refused("is a directory"):
        root.read_bytes("a", LIMIT)


@pytest.mark.usefixtures("way")
def test_a_missing_file_is_said_to_be_missing(root: WorkspaceRoot) -> None:
    """The model would not know that it has to look elsewhere."""
    with refused("There is no file a/b"):
        root.read_bytes("a/b", LIMIT)


def test_a_file_over_the_limit_is_refused_without_reading_it_all(root: WorkspaceRoot, workspace: Path) -> None:
    """A22: a sparse file of 10 GB costs nothing to make and everything to read."""
    with (workspace / "huge").open("wb") as file:
        file.truncate(10 * 1024**3)
    with refused("larger than"):
        root.read_bytes("huge", LIMIT)


def test_a_file_of_exactly_the_limit_is_read(root: WorkspaceRoot, workspace: Path) -> None:
    """The bound would be one byte off."""
    (workspace / "file").write_bytes(b"12345")
    assert root.read_bytes("file", 5) == b"12345"


@pytest.mark.usefixtures("way")
def test_a_directory_is_listed_sorted_with_kinds(root: WorkspaceRoot, workspace: Path) -> None:
    """An agent could not tell what it may open, and the order would change from call to call."""
    (workspace / "b").mkdir()
    (workspace / "a").write_text("")
    (workspace / "c").symlink_to("/etc")
    os.mkfifo(workspace / "d")
    assert root.list_directory(".") == [("a", "file"), ("b", "dir"), ("c", "link"), ("d", "other")]


@pytest.mark.usefixtures("way")
def test_a_directory_outside_is_not_listed(root: WorkspaceRoot, workspace: Path) -> None:
    """A21."""
    (workspace / "link").symlink_to("..")
    with refused("cannot be used"):
        root.list_directory("link")


# -- writing ----------------------------------------------------------------------------------------------------------


def test_a_file_is_created_with_its_directories(root: WorkspaceRoot, workspace: Path) -> None:
    """An agent could not add a module in a new package."""
    root.write_bytes("a/b/c.txt", b"text")
    assert (workspace / "a/b/c.txt").read_bytes() == b"text"


def test_an_existing_file_keeps_its_mode(root: WorkspaceRoot, workspace: Path) -> None:
    """A script would lose its x bit, a private file become readable by all."""
    script = workspace / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    root.write_bytes("run.sh", b"new")
    assert (stat.S_IMODE(script.stat().st_mode), script.read_text()) == (0o750, "new")


def test_nothing_but_the_file_is_left_in_the_directory(root: WorkspaceRoot, workspace: Path) -> None:
    """Temporary files would turn up in the user's commits."""
    root.write_bytes("a", b"1")
    root.write_bytes("a", b"2")
    assert os.listdir(workspace) == ["a"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    root: WorkspaceRoot, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk would leave half a file where a whole one was."""
    (workspace / "a").write_text("old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with refused("No space left"):
        root.write_bytes("a", b"new")
    assert (os.listdir(workspace), (workspace / "a").read_text()) == (["a"], "old")


def test_a_symlink_is_not_written_through(root: WorkspaceRoot, workspace: Path, tmp_path: Path) -> None:
    """A21: people approve a path and another file would be overwritten."""
    (workspace / "link").symlink_to("../secret")
    with refused("is a symlink to ../secret"):
        root.write_bytes("link", b"overwritten")
    assert (tmp_path / "secret").read_text() == "SECRET"


def test_a_directory_symlink_is_not_written_through(root: WorkspaceRoot, workspace: Path, tmp_path: Path) -> None:
    """A21: the same, one level up."""
    (workspace / "link").symlink_to("..")
    with refused("a part of it is a file or a symlink"):
        root.write_bytes("link/secret", b"overwritten")
    assert (tmp_path / "secret").read_text() == "SECRET"


def test_a_hard_link_to_a_file_outside_keeps_that_file_as_it_is(
    root: WorkspaceRoot, workspace: Path, tmp_path: Path
) -> None:
    """A21: writing in place would change the file under its other name."""
    os.link(tmp_path / "secret", workspace / "link")
    root.write_bytes("link", b"new")
    assert (tmp_path / "secret").read_text() == "SECRET"


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".git/config", ".GIT/config", "a/.git/hooks/x", ".git"])
def test_git_internals_are_not_written(root: WorkspaceRoot, workspace: Path, path: str) -> None:
    """A23: a hook is code that runs with the user's next commit, whatever was approved."""
    with refused("belongs to git"):
        root.write_bytes(path, b"#!/bin/sh\n")
    assert os.listdir(workspace) == []


def test_git_internals_are_not_written_through_a_symlink(root: WorkspaceRoot, workspace: Path) -> None:
    """A23: a link called `docs` would be a way around the name."""
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / "docs").symlink_to(".git")
    with refused():
        root.write_bytes("docs/hooks/pre-commit", b"#!/bin/sh\n")


def test_files_with_names_like_git_are_written(root: WorkspaceRoot, workspace: Path) -> None:
    """`.gitignore` and `.github/` are ordinary files."""
    root.write_bytes(".gitignore", b"x")
    root.write_bytes(".github/workflows/a.yml", b"x")
    assert sorted(os.listdir(workspace)) == [".github", ".gitignore"]


@pytest.mark.parametrize("kind", ["directory", "pipe"])
def test_what_is_not_a_regular_file_is_not_replaced(root: WorkspaceRoot, workspace: Path, kind: str) -> None:
    """A22: a rename over a FIFO would silently break whoever uses it."""
    if kind == "pipe":
        os.mkfifo(workspace / "a")
    else:
        (workspace / "a").mkdir()
    with refused():
        root.write_bytes("a", b"x")


def test_a_read_only_file_is_not_replaced(root: WorkspaceRoot, workspace: Path) -> None:
    """A rename does not ask for the file's own mode; somebody's protection would be ignored."""
    (workspace / "a").write_text("old")
    (workspace / "a").chmod(0o444)
    with refused("read-only"):
        root.write_bytes("a", b"new")


def test_too_much_content_is_refused(root: WorkspaceRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model in a loop could fill the disk with one call."""
    monkeypatch.setattr(limits, "FILE_WRITE_BYTES", 3)
    with refused("too many"):
        root.write_bytes("a", b"1234")


def test_a_name_that_is_too_long_is_refused(root: WorkspaceRoot) -> None:
    """The bare error of the system would not tell the model what to do."""
    with refused("too long"):
        root.write_bytes("a" * 300, b"x")


def test_a_file_that_has_changed_is_not_replaced(root: WorkspaceRoot, workspace: Path) -> None:
    """A27: what a person wrote between the asking and the doing would be lost."""
    (workspace / "a").write_text("theirs")
    with refused("changed since"):
        root.replace_bytes("a", b"old", b"new")
    assert (workspace / "a").read_text() == "theirs"


def test_a_file_that_has_appeared_is_not_replaced(root: WorkspaceRoot, workspace: Path) -> None:
    """A27: the same for a file that was to be created."""
    (workspace / "a").write_text("theirs")
    with refused("changed since"):
        root.replace_bytes("a", None, b"new")


def test_of_many_replacements_of_one_content_one_wins(root: WorkspaceRoot, workspace: Path) -> None:
    """Two agents that edit one file at the same moment: one edit would vanish without a word."""
    (workspace / "a").write_text("old")
    done: list[bytes] = []

    def attempt(content: bytes) -> None:
        try:
            root.replace_bytes("a", b"old", content)
            done.append(content)
        except ToolError:
            pass

    threads = [threading.Thread(target=attempt, args=(str(number).encode(),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [(workspace / "a").read_bytes()]


def test_a_lock_that_somebody_keeps_does_not_hold_up_edits(
    root: WorkspaceRoot, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A34: one `flock . sleep infinity` would hang a thread of the server with every edit, until it has none left."""
    monkeypatch.setattr(files.limits, "EDIT_TURN_SECONDS", 0.05)
    (workspace / "a").write_text("old")
    keeper = os.open(workspace, os.O_RDONLY)
    try:
        fcntl.flock(keeper, fcntl.LOCK_EX)
        replacing = threading.Thread(target=root.replace_bytes, args=("a", b"old", b"new"), daemon=True)
        replacing.start()
        replacing.join(5.0)
        assert (workspace / "a").read_text() == "new"
    finally:
        os.close(keeper)
        replacing.join()


def test_a_closed_root_opens_nothing(workspace: Path) -> None:
    """A closed descriptor's number may be another directory's by then: a tool would act in the wrong place."""
    root = files.WorkspaceRoot(str(workspace))
    root.close()
    root.close()
    with refused("closed"):
        root.list_directory("")


def test_no_descriptor_is_left(root: WorkspaceRoot, workspace: Path) -> None:
    """I19: a server that runs for weeks would run out of descriptors."""
    (workspace / "link").symlink_to("..")
    before = len(os.listdir("/proc/self/fd"))
    root.write_bytes("a/b", b"x")
    root.read_bytes("a/b", LIMIT)
    root.list_directory("a")
    for path in ("link/x", "missing", "a"):
        with refused():
            root.read_bytes(path, LIMIT)
        if path != "missing":
            with refused():
                root.write_bytes(path, b"x")
    assert len(os.listdir("/proc/self/fd")) == before
