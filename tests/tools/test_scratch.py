"""The directory for what commands leave for a moment."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from windlass.tools.scratch import Scratch


def test_what_a_killed_process_left_is_removed_by_the_next_and_nothing_else(tmp_path: Path) -> None:
    """Every crash would leave a directory for ever; or the files of a server that lives would go."""
    living = Scratch(str(tmp_path))
    living.make()
    (tmp_path / "windlass-0123456789abcdef").mkdir()
    (tmp_path / "windlass-notes").mkdir()
    (tmp_path / "precious").mkdir()
    (tmp_path / "windlass-fedcba9876543210").symlink_to("precious")
    newer = Scratch(str(tmp_path))
    newer.make()
    left = {path.name for path in tmp_path.iterdir()} - {Path(living.path).name, Path(newer.path).name}
    assert left == {"windlass-notes", "precious", "windlass-fedcba9876543210"}
    assert os.path.isdir(living.path) and os.path.isdir(newer.path)
    for scratch in (living, newer):
        scratch.remove()
        scratch.remove()
    assert not os.path.exists(living.path)


def test_one_that_was_cleaned_away_is_made_again(tmp_path: Path) -> None:
    """Systems remove old temporary files by night, and in the morning no command would start."""
    scratch = Scratch(str(tmp_path))
    scratch.make()
    os.rmdir(f"{scratch.path}/tmp")
    scratch.make()
    os.rmdir(f"{scratch.path}/tmp")
    os.rmdir(scratch.path)
    scratch.make()
    assert os.path.isdir(f"{scratch.path}/tmp")
    scratch.remove()


def test_two_that_need_it_at_the_same_time_both_get_it(tmp_path: Path) -> None:
    """The first commands of two sessions would race, and one of them not be started."""
    for _ in range(20):
        scratch = Scratch(str(tmp_path))
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda _, scratch=scratch: scratch.make(), range(4))) == [None] * 4
        scratch.remove()


def test_one_that_was_never_made_leaves_nothing(tmp_path: Path) -> None:
    """Most servers of a test, and workers that run no command, would leave a directory each."""
    Scratch(str(tmp_path)).remove()
    assert list(tmp_path.iterdir()) == []
