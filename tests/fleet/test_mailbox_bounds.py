"""The mailbox of one session: what is set aside, its bounds, who only looks, and what a crash left."""

import os
import threading
import time
from pathlib import Path

import pytest

from tests.fleet.mailbox_kit import Clock, a_mail, files
from windlass import limits
from windlass.errors import Invalid, NotFound, TooLarge, TooMany, Unavailable
from windlass.fleet.mailbox.mailbox import Mailbox
from windlass.fleet.mailbox.mailbox_shapes import MailboxBounds
from windlass.wire.agents import Mail


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def box(tmp_path: Path, clock: Clock) -> Mailbox:
    return Mailbox(tmp_path / "box", clock=clock)


def bounded(tmp_path: Path, **bounds: int) -> Mailbox:
    return Mailbox(tmp_path / "box", MailboxBounds(**bounds))


# -- set aside --


def test_a_message_claimed_too_often_is_set_aside_with_the_reason(tmp_path: Path, clock: Clock) -> None:
    """B71: a message that kills its reader would kill it for ever, and hold up all behind it."""
    box = Mailbox(tmp_path / "box", MailboxBounds(attempts=3), clock)
    box.deliver(a_mail("bad"))
    box.deliver(a_mail("good"))
    for _ in range(3):
        assert box.claim(lease_seconds=1)[0].mail.id == "bad"
        clock.seconds += 1
    assert [claim.mail.id for claim in box.claim(5)] == ["good"]
    (aside,) = box.corrupt()
    assert (aside.sequence, aside.attempts) == (1, 3) and "claimed 3 times" in aside.reason


def test_attempts_are_counted_across_releases_and_processes(tmp_path: Path) -> None:
    """A reader that gives back and is started again would never come to the bound."""
    for _ in range(2):
        box = bounded(tmp_path, attempts=2)
        box.deliver(a_mail("bad"))
        box.release(*box.claim(), reason="its file is missing")
    (aside,) = box.corrupt()
    assert "its file is missing" in aside.reason


DAMAGE = {
    "nothing": b"",
    "half a message": b'{"id": "mail-1", "from": {"sess',
    "no JSON": b"\x00\xff\xfe",
    "another shape": b'{"id": "mail-1"}',
    "another kind": b'{"id":"mail-1","from":{"session_id":"a"},"kind":"order","body":1,"created_at":1}',
    "another's id": b'{"id":"mail-2","from":{"session_id":"a"},"kind":"task","body":1,"created_at":1}',
    "endless depth": b"[" * 50_000,
    "too much": b" " * (limits.MAIL_BYTES + 1),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_message_is_set_aside_and_holds_up_nobody(box: Mailbox, tmp_path: Path, damage: str) -> None:
    """B71: one bad sector would stop an agent's mail for ever, or hand it half a sentence."""
    box.deliver(a_mail("mail-1"))
    box.deliver(a_mail("mail-3"))
    first = files(tmp_path / "box")["new"][0]
    path = tmp_path / "box" / "new" / first
    parts = first.split("-")
    path.write_bytes(DAMAGE[damage])
    path.rename(path.with_name("-".join([parts[0], parts[1], str(len(DAMAGE[damage])), parts[3]])))
    assert [claim.mail.id for claim in box.claim()] == ["mail-3"]
    (aside,) = box.corrupt()
    assert aside.sequence == 1 and len(aside.reason) > 10
    assert (tmp_path / "box" / "corrupt" / aside.name).read_bytes() == DAMAGE[damage]


def test_a_message_cut_short_on_disk_is_noticed_by_its_size(box: Mailbox, tmp_path: Path) -> None:
    """A file that lost its end may still be JSON: `12` is, and so is `1`."""
    box.deliver(a_mail())
    path = tmp_path / "box" / "new" / files(tmp_path / "box")["new"][0]
    path.write_bytes(path.read_bytes() + b" ")
    assert box.claim() == []
    assert "its name says" in box.corrupt()[0].reason


def test_what_nobody_delivered_is_set_aside(box: Mailbox, tmp_path: Path) -> None:
    """A file, a link or a pipe somebody laid there must not be read, waited for, or trip every reader."""
    box.deliver(a_mail())
    new = tmp_path / "box" / "new"
    (new / "README").write_text("hello")
    (new / "link").symlink_to("/etc/passwd")
    (new / "directory").mkdir()
    os.mkfifo(new / ("0" * 15 + "9-0-5-" + "a" * 32))
    assert [claim.mail.id for claim in box.claim(9)] == ["mail-1"]
    assert len(box.corrupt()) == 4
    assert files(tmp_path / "box")["new"] == []


def test_what_was_set_aside_can_be_discarded(box: Mailbox, tmp_path: Path) -> None:
    """It counts against the bounds, so there must be a way to make room."""
    box.deliver(a_mail())
    (claim,) = box.claim()
    box.set_aside(claim, "no such agent")
    (aside,) = box.corrupt()
    assert aside.reason == "no such agent"
    box.discard(aside.name)
    assert (box.corrupt(), files(tmp_path / "box")["corrupt"], box.statistics().bytes) == ([], [], 0)
    with pytest.raises(NotFound):
        box.discard("../state")


# -- bounds --


def test_a_full_mailbox_refuses_loudly_and_takes_again_when_there_is_room(tmp_path: Path) -> None:
    """A44: a mailbox that nobody reads would fill the disk, or lose what it has no room for."""
    box = bounded(tmp_path, messages=2)
    box.deliver(a_mail("a"))
    box.deliver(a_mail("b"))
    with pytest.raises(TooMany, match="is full: 2 messages wait"):
        box.deliver(a_mail("c"))
    assert box.deliver(a_mail("a")) == 1  # what is there already needs no room
    box.ack(*box.claim())
    box.deliver(a_mail("c"))
    assert [item.mail.id for item in box.list() if item.mail] == ["b", "c"]


def test_bytes_are_bounded_too_with_those_set_aside(tmp_path: Path) -> None:
    """A few large messages fill a disk as well as many small ones, and so do those nobody can read."""
    box = bounded(tmp_path, total_bytes=1000)
    box.deliver(a_mail("a", body="x" * 400))
    box.set_aside(box.claim()[0], "too long")
    with pytest.raises(TooMany, match="1 are set aside"):
        box.deliver(a_mail("b", body="x" * 500))


def test_a_message_over_its_bound_is_refused(tmp_path: Path) -> None:
    """One message must not take the memory of every reader."""
    with pytest.raises(TooLarge, match="send its path"):
        bounded(tmp_path, mail_bytes=200).deliver(a_mail(body="x" * 200))


@pytest.mark.parametrize(
    "mail",
    [
        a_mail(""),
        a_mail("x" * (limits.MAIL_ID_CHARACTERS + 1)),
        a_mail("half a surrogate \ud800"),
        a_mail(body=object()),
        a_mail(kind="order"),
        a_mail(sender=None),
    ],
)
def test_what_is_no_message_is_refused_at_the_door(box: Mailbox, mail: Mail) -> None:
    """It would only be found when somebody reads it, and its sender would be gone by then."""
    with pytest.raises(Invalid):
        box.deliver(mail)


def test_statistics_tell_what_is_there(box: Mailbox) -> None:
    """People look at them to see whether an agent keeps up."""
    for number in range(4):
        box.deliver(a_mail(f"m{number}"))
    claims = box.claim(2)
    box.set_aside(claims[0], "bad")
    there = box.statistics()
    assert (there.waiting, there.claimed, there.set_aside, there.next_sequence) == (2, 1, 1, 5)


def test_a_listing_shows_messages_without_claiming_them(box: Mailbox, clock: Clock) -> None:
    """Who only looks must not take anything away from the reader."""
    box.deliver(a_mail("a"))
    box.deliver(a_mail("b"))
    box.claim(lease_seconds=30)
    clock.seconds += 10
    seen = [(item.mail.id, item.state, item.attempts, item.lease_seconds) for item in box.list() if item.mail]
    assert seen == [("a", "claimed", 1, 20.0), ("b", "waiting", 0, 0.0)]


# -- after a crash --


def test_what_killed_writers_left_is_removed_by_age(box: Mailbox, tmp_path: Path) -> None:
    """tmp/ would grow for ever; but a young file there may be one that is being written."""
    box.deliver(a_mail())
    old, young = tmp_path / "box" / "tmp" / "old", tmp_path / "box" / "tmp" / "young"
    old.write_text("half")
    young.write_text("half")
    long_ago = time.time() - limits.MAILBOX_TEMPORARY_SECONDS - 1
    os.utime(old, (long_ago, long_ago))
    box.recover()
    assert files(tmp_path / "box")["tmp"] == ["young"]


def test_numbers_go_on_after_a_power_cut_that_lost_the_state(box: Mailbox, tmp_path: Path) -> None:
    """B71: a number given twice would put a new message before old ones. The state on disk may be an old one."""
    state = tmp_path / "box" / "state"
    box.deliver(a_mail("a"))
    synced = state.read_bytes().replace(b'"boot":"', b'"boot":"another')  # as it was synced, in a boot before this one
    for number in range(9):
        box.deliver(a_mail(f"m{number}"))
    box.ack(*box.claim(10))
    state.write_bytes(synced)
    assert box.deliver(a_mail("b")) > 10


@pytest.mark.parametrize("content", [b"", b"{}", b"~" + b"x" * 511, b" " * 512])
def test_a_state_that_says_nothing_is_made_again_from_the_files(box: Mailbox, tmp_path: Path, content: bytes) -> None:
    """B71: a cache that is damaged must cost nothing but the time to make it again."""
    box.deliver(a_mail("a"))
    box.deliver(a_mail("b"))
    box.claim()
    before = box.statistics()
    (tmp_path / "box" / "state").write_bytes(content)
    assert box.statistics() == before
    assert box.deliver(a_mail("a")) == 1
    assert box.deliver(a_mail("c")) == 3


def test_a_lock_that_is_never_given_up_is_told(box: Mailbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped process that holds it would stop all others, and nobody would know why."""
    box.deliver(a_mail())
    monkeypatch.setattr(limits, "SHARED_LOCK_SECONDS", 0.05)
    with box._state.locked(), pytest.raises(Unavailable, match="fuser"):
        box.statistics()


def test_threads_exclude_each_other_like_processes(tmp_path: Path) -> None:
    """The engine calls a mailbox from several threads."""
    box = Mailbox(tmp_path / "box")
    threads = [
        threading.Thread(target=lambda name=name: [box.deliver(a_mail(f"{name}-{k}")) for k in range(10)])
        for name in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [item.sequence for item in box.list()] == list(range(1, 41))
