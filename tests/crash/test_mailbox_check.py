"""The comparison of the mailbox's crash suite can fail: each kind of loss, planted, is found."""

from pathlib import Path
from typing import Any

import pytest

from windlass.fleet.mailbox.mail_names import MailName
from windlass.wire.agents import Mail, MailFrom

from .mailbox_check import Line, violations
from .mailbox_workers import Plan

_BOOT = "b" * 32


def token(sequence: int, attempt: int, claimed_ms: int) -> str:
    return str(MailName(sequence, attempt, 10, "d" * 32, _BOOT, claimed_ms + 2000))


def a_line(what: str, at: float = 0.0, **details: Any) -> Line:
    return {"who": "writer-0", "what": what, "at": at, **details}


def got(mail_id: str, sequence: int, attempt: int, claimed_ms: int, right: bool = True) -> Line:
    return a_line(
        "got", claimed_ms / 1000, id=mail_id, sequence=sequence, token=token(sequence, attempt, claimed_ms), right=right
    )


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """A mailbox through which one message went."""
    made = Plan(tmp_path, messages=2)
    box = made.mailbox()
    box.deliver(Mail(id="x", sender=MailFrom("a"), kind="task", body=1, created_at=1))
    box.ack(*box.claim())
    return made


def fine() -> list[Line]:
    return [
        a_line("told", id="a", sequence=1),
        a_line("told", id="b", sequence=2),
        got("a", 1, 1, 100_000),
        a_line("acked", 100.5, sequence=1, token=token(1, 1, 100_000)),
        got("b", 2, 1, 100_600),
        got("b", 2, 2, 103_000),
        a_line("acked", 103.5, sequence=2, token=token(2, 2, 103_000)),
    ]


def test_a_history_without_fault_is_passed(plan: Plan) -> None:
    """Else the suite would cry wolf."""
    assert violations(plan, fine()) == []


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        ([a_line("told", id="c", sequence=3)], "c was delivered and never read"),
        ([got("a", 1, 1, 100_000, right=False)], "not what was written"),
        ([got("c", 2, 3, 110_000)], "number 2 was given to"),
        ([a_line("told", 1.0, id="a", sequence=1)], "not in the order"),
        ([got("b", 2, 3, 104_000)], "claimed by two at the same time"),
        ([got("a", 1, 2, 103_000)], "claimed again after its ack"),
        ([got("c", 3, 1, 50_000)], "not made in the order of the numbers"),
        ([a_line("failed", error="boom")], "boom"),
    ],
)
def test_what_is_planted_is_found(plan: Plan, planted: list[Line], words: str) -> None:
    """I23 B71: a suite that finds nothing because it looks at nothing would please everyone."""
    assert any(words in problem for problem in violations(plan, fine() + planted))


@pytest.mark.parametrize("place", ["new", "cur", "corrupt", "ids"])
def test_what_is_left_in_the_mailbox_is_found(plan: Plan, place: str) -> None:
    """I23: a message that nobody will ever read is as good as lost."""
    (directory,) = plan.root.glob("agents/projects/*/mailboxes/*")
    (directory / place / "left").write_text("x")
    assert violations(plan, fine())
