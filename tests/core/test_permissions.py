"""Permissions: what is decided without asking people. Their answers are in `test_permissions_exhaustive.py`."""

from tests.core.permission_world import request
from windlass import limits
from windlass.core.permissions import Permissions
from windlass.core.policy import Policy
from windlass.wire.permissions import By

RUN = By("run")
ASK = Policy()
DENY = Policy(deny=("edit",))


def test_a_deny_rule_beats_skip_and_grants() -> None:
    """Else what the user forbade in the config happens because somebody clicked once (I10)."""
    permissions = Permissions(skip=True)
    permissions.add_grant(("s1", "edit", "write", "a.txt"))
    assert permissions.ask(request("q1", "r1", "s1"), "a.txt", DENY, RUN).verdict == "denied"


def test_an_allow_rule_asks_nobody_and_writes_nothing() -> None:
    """Else every file that is read makes a fact, and the log drowns in them."""
    asked = Permissions().ask(request("q1", "r1", "s1"), "a.txt", Policy(allow=("edit",)), RUN)
    assert (asked.verdict, asked.facts) == ("granted", [])


def test_skip_grants_and_says_so() -> None:
    """Else nobody could see afterwards that a tool ran because asking was switched off (B46)."""
    asked = Permissions(skip=True).ask(request("q1", "r1", "s1"), "a.txt", ASK, RUN)
    assert (asked.verdict, asked.facts[0].by) == ("granted", By("skip"))


def test_more_requests_than_people_can_answer_are_denied() -> None:
    """Else a tool in a loop takes all memory; and what nobody can answer must not become a yes (I10)."""
    permissions = Permissions()
    for number in range(limits.PENDING_PERMISSIONS):
        permissions.ask(request(f"q{number}", "r1", "s1"), "a.txt", ASK, RUN)
    assert permissions.ask(request("one more", "r1", "s1"), "a.txt", ASK, RUN).verdict == "denied"


def test_when_too_much_is_granted_the_oldest_grant_is_asked_again() -> None:
    """Else grants take all memory, or the newest answer is not remembered although the person was told so."""
    permissions = Permissions()
    for number in range(limits.GRANTS + 1):
        permissions.add_grant(("s1", "edit", "write", f"{number}.txt"))
    verdicts = [
        permissions.ask(request(f"q{number}", "r1", "s1"), f"{number}.txt", ASK, RUN).verdict
        for number in (0, limits.GRANTS)
    ]
    assert verdicts == [None, "granted"]


def test_a_deleted_session_takes_its_grants_along_and_no_others() -> None:
    """Else a grant outlives the conversation it was given in, or another conversation loses its own (B26)."""
    permissions = Permissions()
    for session in ("s1", "s2"):
        permissions.add_grant((session, "edit", "write", "a.txt"))
    permissions.forget_session("s1")
    verdicts = [permissions.ask(request(s, "r1", s), "a.txt", ASK, RUN).verdict for s in ("s1", "s2")]
    assert verdicts == [None, "granted"]
