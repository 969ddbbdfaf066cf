"""The tail: the newest events in memory, bounded by bytes, each at a position that never changes."""

import pytest

from windlass import limits
from windlass.journal.tail import Tail, TailEntry


def fact(seq: int, size: int = 10) -> TailEntry:
    return TailEntry(seq, "fact", b"x" * size)


def filled(count: int, after: int = 0) -> Tail:
    tail = Tail(after)
    for seq in range(after + 1, after + count + 1):
        tail.append(fact(seq))
    return tail


def seqs(tail: Tail, index: int) -> list[int]:
    return [entry.seq for entry in tail.since(index)]


def test_an_empty_tail_covers_whoever_has_everything() -> None:
    """A reader at the head would be sent to the disk for nothing, or one behind it would miss what is there."""
    tail = Tail(7)
    assert [tail.covers(6), tail.covers(7), tail.covers(8)] == [False, True, True]
    assert (tail.first, tail.end, tail.size) == (0, 0, 0)


def test_a_position_stays_the_same_place_when_the_front_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader would skip events, or get them twice, whenever the tail is full (I13)."""
    monkeypatch.setattr(limits, "TAIL_BYTES", 100)
    tail = filled(10)
    position = tail.index_after(8)
    assert (tail.first, seqs(tail, position)) == (0, [9, 10])
    tail.append(fact(11))  # the first byte too many: down to three quarters
    assert (tail.first, tail.end, tail.size) == (4, 11, 70)
    assert seqs(tail, position) == [9, 10, 11]


def test_a_tail_says_what_it_no_longer_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader would be served from memory although facts it needs are gone from there (I13)."""
    monkeypatch.setattr(limits, "TAIL_BYTES", 100)
    tail = filled(11)
    assert [tail.covers(3), tail.covers(4)] == [False, True]
    assert seqs(tail, tail.index_after(4)) == [5, 6, 7, 8, 9, 10, 11]


def test_one_event_that_is_larger_than_the_tail_goes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound on memory would hold for small events only (I14)."""
    monkeypatch.setattr(limits, "TAIL_BYTES", 100)
    tail = filled(3)
    tail.append(fact(4, size=101))
    assert (tail.size, tail.first, tail.end, tail.covers(3), tail.covers(4)) == (0, 4, 4, False, True)


def test_text_after_a_fact_belongs_behind_it() -> None:
    """A reader that has the fact would be sent it again, or miss the words that followed."""
    tail = Tail(0)
    for entry in (fact(1), TailEntry(1, "delta", b"a"), fact(2), TailEntry(2, "note", b"b")):
        tail.append(entry)
    assert [tail.index_after(seq) for seq in (0, 1, 2)] == [0, 2, 4]


def test_a_cleared_tail_holds_nothing_and_covers_from_there_on() -> None:
    """Words of a deleted session would be read from memory, or a reader would skip what came since (B45)."""
    tail = filled(5)
    tail.clear(5)
    assert (tail.first, tail.end, tail.size, seqs(tail, tail.first)) == (5, 5, 0, [])
    assert [tail.covers(4), tail.covers(5)] == [False, True]
    tail.append(fact(6))
    assert (tail.size, seqs(tail, tail.index_after(5))) == (10, [6])
    tail.clear(6)
    assert (tail.first, tail.end, tail.size) == (6, 6, 0)  # a position stays the same place, also the second time
