"""The mailbox of one session: delivering, the same message again, claims and their leases."""

import json
from pathlib import Path

import pytest

from tests.fleet.mailbox_kit import Clock, a_mail, files
from windlass import limits
from windlass.errors import BadRequest, Conflict
from windlass.fleet.mailbox.mailbox import Mailbox
from windlass.fleet.mailbox.mailbox_errors import ClaimLost
from windlass.wire.agents import MailFrom


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def box(tmp_path: Path, clock: Clock) -> Mailbox:
    return Mailbox(tmp_path / "box", clock=clock)


# -- delivering --


def test_a_message_comes_out_as_it_went_in(box: Mailbox) -> None:
    """B71: else agents would read what nobody wrote."""
    body = {"deep": [1, 2.5, None, "ü\u2028"], "big": 2**80}
    mail = a_mail(body=body, sender=MailFrom("ses_a", "parent"), correlation_id="mail-0", kind="ask")
    box.deliver(mail)
    assert [claim.mail for claim in box.claim()] == [mail]


def test_the_file_is_what_other_programs_expect(box: Mailbox, tmp_path: Path) -> None:
    """Existing peers read and write this shape: a renamed field would cut them off."""
    box.deliver(a_mail(body="hello"))
    (name,) = files(tmp_path / "box")["new"]
    content = json.loads((tmp_path / "box" / "new" / name).read_text())
    assert content == {
        "id": "mail-1",
        "from": {"session_id": "ses_a"},
        "kind": "task",
        "body": "hello",
        "created_at": 1,
    }


def test_messages_are_handed_out_in_the_order_of_delivery_whatever_the_senders_clocks_say(box: Mailbox) -> None:
    """B71: an order by the senders' clocks would put an answer before its question."""
    numbers = [box.deliver(a_mail(f"m{number}", created_at=1000 - number)) for number in range(12)]
    assert numbers == sorted(set(numbers))
    assert [claim.mail.id for claim in box.claim(12)] == [f"m{number}" for number in range(12)]


def test_nothing_of_a_delivery_is_left_in_tmp(box: Mailbox, tmp_path: Path) -> None:
    """Else every message would take its place twice, for ever."""
    box.deliver(a_mail())
    with pytest.raises(Conflict):
        box.deliver(a_mail(body="other"))
    assert files(tmp_path / "box")["tmp"] == []


def test_looking_makes_no_mailbox(box: Mailbox, tmp_path: Path) -> None:
    """Else a mistyped id would make a mailbox that nobody reads."""
    assert (box.claim(), box.list(), box.corrupt(), box.recover()) == ([], [], [], 0)
    assert box.statistics().waiting == 0
    assert not (tmp_path / "box").exists()


# -- the same message again --


def test_the_same_message_again_changes_nothing(box: Mailbox) -> None:
    """B71: a sender that was killed before it heard that its message is safe sends it again."""
    first = box.deliver(a_mail("a"))
    box.deliver(a_mail("b"))
    assert box.deliver(a_mail("a", created_at=2)) == first
    assert box.statistics().waiting == 2


def test_the_same_message_again_while_it_is_claimed_changes_nothing(box: Mailbox) -> None:
    """Else the reader would get it a second time although it holds it."""
    first = box.deliver(a_mail("a"))
    box.claim()
    assert box.deliver(a_mail("a")) == first
    assert box.claim() == []


def test_another_message_under_an_id_that_is_there_is_refused(box: Mailbox) -> None:
    """Else its sender would believe it is delivered, and it is nowhere."""
    box.deliver(a_mail("a", body="one"))
    with pytest.raises(Conflict, match="Give this one an id of its own"):
        box.deliver(a_mail("a", body="two"))


def test_an_id_is_free_again_once_its_message_was_acknowledged(box: Mailbox) -> None:
    """Ids are remembered while the message is there, and no longer: a mailbox must not grow with its past."""
    first = box.deliver(a_mail("a"))
    box.ack(*box.claim())
    assert box.deliver(a_mail("a")) > first


def test_a_message_that_somebody_removed_by_hand_can_be_delivered_again(box: Mailbox, tmp_path: Path) -> None:
    """Else its id would be taken for ever, by nothing."""
    box.deliver(a_mail("a"))
    (name,) = files(tmp_path / "box")["new"]
    (tmp_path / "box" / "new" / name).unlink()
    box.deliver(a_mail("a"))
    assert [claim.mail.id for claim in box.claim(5)] == ["a"]


# -- claims --


def test_a_claimed_message_is_nobody_elses(box: Mailbox, tmp_path: Path, clock: Clock) -> None:
    """I23: two readers would act on one message."""
    for number in range(4):
        box.deliver(a_mail(f"m{number}"))
    other = Mailbox(tmp_path / "box", clock=clock)
    ids = [claim.mail.id for claim in [*box.claim(2), *other.claim(1), *box.claim(5), *other.claim(5)]]
    assert ids == ["m0", "m1", "m2", "m3"]


def test_an_ack_removes_exactly_its_message(box: Mailbox) -> None:
    """I23: else a message would be lost, or come for ever."""
    for number in range(3):
        box.deliver(a_mail(f"m{number}"))
    first, second, third = box.claim(3)
    box.ack(second)
    box.release(first, third)
    assert [claim.mail.id for claim in box.claim(3)] == ["m0", "m2"]


def test_a_message_whose_lease_is_over_comes_again_in_its_place_and_counted(box: Mailbox, clock: Clock) -> None:
    """B71: a reader that died would take its messages along, or they would come after later ones."""
    for number in range(3):
        box.deliver(a_mail(f"m{number}"))
    box.claim(2, lease_seconds=10)
    clock.seconds += 10
    again = box.claim(3)
    assert [(claim.mail.id, claim.attempt) for claim in again] == [("m0", 2), ("m1", 2), ("m2", 1)]


def test_a_lease_that_is_not_over_holds(box: Mailbox, clock: Clock) -> None:
    """Else a slow reader would lose what it is working on."""
    box.deliver(a_mail())
    box.claim(lease_seconds=10)
    clock.seconds += 9.9
    assert box.claim() == []


def test_an_old_claim_cannot_acknowledge_for_a_later_one(box: Mailbox, clock: Clock) -> None:
    """I23: the message would be removed under the hands of whoever has it now, and be lost if they fail."""
    box.deliver(a_mail())
    (old,) = box.claim(lease_seconds=10)
    clock.seconds += 10
    (new,) = box.claim()
    for settle in (box.ack, box.release):
        with pytest.raises(ClaimLost, match="Claim again"):
            settle(old)
    assert box.statistics().claimed == 1
    box.ack(new)


def test_a_late_ack_counts_as_long_as_nobody_else_has_the_message(box: Mailbox, clock: Clock) -> None:
    """The work was done; to have it done again would help nobody."""
    box.deliver(a_mail())
    (late,) = box.claim(lease_seconds=10)
    clock.seconds += 60
    box.ack(late)
    assert box.claim() == []


def test_a_second_ack_is_told_that_the_claim_is_gone(box: Mailbox) -> None:
    """A reader that acknowledges twice has lost count of what it did."""
    box.deliver(a_mail())
    (claim,) = box.claim()
    box.ack(claim)
    with pytest.raises(ClaimLost):
        box.ack(claim)


def test_of_several_acks_those_that_hold_are_done(box: Mailbox) -> None:
    """Else one lost claim would bring back the whole batch."""
    box.deliver(a_mail("a"))
    box.deliver(a_mail("b"))
    first, second = box.claim(2)
    box.ack(first)
    with pytest.raises(ClaimLost):
        box.ack(first, second)
    assert box.statistics().claimed == 0


@pytest.mark.parametrize("token", ["", "../../state", "0000000000000001-0-1-" + "0" * 32, "x" * 5000, "new/../../x"])
def test_a_token_that_no_claim_gave_is_refused(box: Mailbox, token: str) -> None:
    """A token comes from the command line: it must not reach a file that is no claimed message (A19)."""
    box.deliver(a_mail())
    with pytest.raises(ClaimLost):
        box.ack(token)
    assert box.statistics().waiting == 1


def test_a_released_message_comes_before_later_ones_to_a_reader_that_had_listed_them(
    box: Mailbox, tmp_path: Path, clock: Clock
) -> None:
    """A reader remembers what waits; what is given back meanwhile is older than all of that."""
    for number in range(4):
        box.deliver(a_mail(f"m{number}"))
    other = Mailbox(tmp_path / "box", clock=clock)
    (first,) = other.claim()
    box.claim()  # lists m1 to m3, takes m1
    other.release(first)
    assert [claim.mail.id for claim in box.claim(2)] == ["m0", "m2"]


def test_leases_of_an_earlier_boot_are_over(box: Mailbox, tmp_path: Path) -> None:
    """Nobody who claimed before the machine went down is still there; waiting for the lease would be for nothing."""
    box.deliver(a_mail())
    (claim,) = box.claim(lease_seconds=3600)
    cur = tmp_path / "box" / "cur"
    sequence, attempt, size, mark, _boot, lease = claim.token.split("-")
    (cur / claim.token).rename(cur / "-".join([sequence, attempt, size, mark, "0" * 32, lease]))
    assert [again.attempt for again in box.claim()] == [2]


def test_everything_can_be_given_back_at_once(box: Mailbox) -> None:
    """The only reader, started again after a crash, need not wait for its own old leases."""
    box.deliver(a_mail())
    box.claim(lease_seconds=3600)
    assert box.recover() == 0
    assert box.recover(everything=True) == 1
    assert [claim.attempt for claim in box.claim()] == [2]


@pytest.mark.parametrize(
    ("limit", "lease"), [(0, 1), (limits.MAILBOX_CLAIMS + 1, 1), (1, 0), (1, 1e9), (1, float("nan"))]
)
def test_a_claim_without_bounds_is_refused(box: Mailbox, limit: int, lease: float) -> None:
    """A lease of years would hide a message from everyone."""
    with pytest.raises(BadRequest):
        box.claim(limit, lease)
