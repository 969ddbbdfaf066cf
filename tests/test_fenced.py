"""Which directories lead to what is protected: the arithmetic of paths under the fence."""

import os
from pathlib import Path

import pytest

from windlass.guardian.fenced import Mount, fenced, other_places


def below(tmp_path: Path, found: dict[str, set[str]]) -> dict[str, set[str]]:
    """Only what is in the test's own directory."""
    return {os.path.relpath(way, tmp_path): names for way, names in found.items() if Path(way).is_relative_to(tmp_path)}


def test_every_directory_on_the_way_keeps_back_the_next_name(tmp_path: Path) -> None:
    """One that is forgotten would open all that is below it."""
    (tmp_path / "a/b").mkdir(parents=True)
    found = fenced([str(tmp_path / "a/b/c")])
    assert below(tmp_path, found) == {".": {"a"}, "a": {"b"}, "a/b": {"c"}}
    assert tmp_path.parts[1] in found["/"]


def test_a_path_that_is_not_there_closes_the_first_directory_that_is(tmp_path: Path) -> None:
    """A23: a config directory could be made, with a config in it."""
    assert below(tmp_path, fenced([str(tmp_path / "no/such/path")])) == {".": {"no"}}


def test_links_on_the_way_are_kept_back_with_what_they_lead_to(tmp_path: Path) -> None:
    """A link could be pointed elsewhere, or be gone round."""
    (tmp_path / "real/inner").mkdir(parents=True)
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to(tmp_path / "real")
    (tmp_path / "dots").symlink_to("real/../real/inner")
    found = below(tmp_path, fenced([str(tmp_path / "one/inner"), str(tmp_path / "dots")]))
    assert found == {".": {"one", "two", "real", "dots"}, "real": {"inner"}}


def test_links_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    """A command could hang every later one with two links."""
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    assert below(tmp_path, fenced([str(tmp_path / "one/x")])) == {".": {"one", "two"}}


def test_one_that_lies_inside_another_opens_nothing(tmp_path: Path) -> None:
    """The socket is in the data directory: all that lies beside it there would be granted."""
    (tmp_path / "data/run").mkdir(parents=True)
    found = fenced([str(tmp_path / "data/run/socket"), str(tmp_path / "data")])
    assert below(tmp_path, found) == {".": {"data"}}


DISK = Mount("8:1", "/", "/")


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        ([DISK], []),
        ([DISK, Mount("8:1", "/home", "/mnt/home")], ["/mnt/home/me/data"]),
        ([DISK, Mount("8:1", "/home/me/data", "/srv")], ["/srv"]),
        ([DISK, Mount("8:1", "/home/me/data/inner", "/srv")], ["/srv"]),
        ([DISK, Mount("8:1", "/home/me/data2", "/srv"), Mount("8:2", "/home", "/other")], []),
        ([DISK, Mount("8:2", "/", "/home"), Mount("8:2", "/me", "/me")], ["/me/data"]),
        ([DISK, Mount("8:2", "/", "/home"), Mount("8:3", "/", "/home"), Mount("8:3", "/me", "/me")], ["/me/data"]),
        ([], []),
    ],
)
def test_other_places_of_the_same_directory_are_found(mounts: list[Mount], expected: list[str]) -> None:
    """What is mounted twice would be protected once."""
    assert list(other_places("/home/me/data", mounts)) == expected
