"""Idle workers on their shelf: who is taken, and who must make room."""

from windlass.fleet.pool.shelf import Shelf


def test_only_one_of_the_same_kind_is_taken() -> None:
    """B60: a run would get a worker with another credential, or another directory."""
    shelf: Shelf[str] = Shelf(2, 10)
    shelf.put("key", "worker")
    assert (shelf.take("other"), shelf.take("key"), shelf.take("key")) == (None, "worker", None)


def test_the_newest_is_taken_first() -> None:
    """The one that was just used is in the caches; the others may grow old and go."""
    shelf: Shelf[str] = Shelf(3, 10)
    for worker in ("a", "b", "c"):
        shelf.put("key", worker)
    assert [shelf.take("key") for _ in range(3)] == ["c", "b", "a"]


def test_the_oldest_of_a_kind_makes_room() -> None:
    """Workers of one kind would fill the machine."""
    shelf: Shelf[str] = Shelf(2, 10)
    shelf.put("other", "x")
    assert [shelf.put("key", worker) for worker in ("a", "b", "c")] == [[], [], ["a"]]
    assert (len(shelf), shelf.count("key")) == (3, 2)


def test_the_oldest_of_all_makes_room() -> None:
    """Workers of many kinds would fill it just as well."""
    shelf: Shelf[str] = Shelf(2, 2)
    assert [shelf.put(f"key {worker}", worker) for worker in ("a", "b", "c")] == [[], [], ["a"]]


def test_a_shelf_without_room_gives_back_what_it_is_given() -> None:
    """A pool that is to keep nothing would keep one, or end a worker that it never had."""
    for shelf in (Shelf[str](0, 10), Shelf[str](10, 0)):
        assert (shelf.put("key", "a"), len(shelf)) == (["a"], 0)


def test_one_that_was_taken_is_not_here_any_more() -> None:
    """A clock that runs out late would end a worker in the middle of a run."""
    shelf: Shelf[str] = Shelf(2, 2)
    shelf.put("key", "a")
    shelf.take("key")
    assert not shelf.remove("a")
