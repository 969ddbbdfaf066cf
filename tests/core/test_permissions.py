"""Permissions: what is decided without asking people. Their answers are in `test_permissions_exhaustive.py`."""

import msgspec
import pytest

from tests.core.permission_world import request
from windlass import limits
from windlass.core.permissions import Permissions, Settled
from windlass.core.policy import Policy
from windlass.errors import Invalid
from windlass.wire.permissions import Action, By, PermissionPrivate, PermissionRequest

RUN = By("run")
ASK = Policy()
DENY = Policy(deny=("edit",))


def test_a_deny_rule_beats_skip_and_grants() -> None:
    """Else what the user forbade in the config happens because somebody clicked once (I10)."""
    permissions = Permissions(skip=True)
    permissions.add_grant(("s1", "edit", "write", "a.txt"))
    assert permissions.ask(request("q1", "r1", "s1"), "a.txt", DENY, RUN).verdict == "denied"


def test_an_allow_rule_asks_nobody_and_says_so() -> None:
    """Else nobody could see afterwards why a tool ran that they were never asked about (I10 B46)."""
    asked = Permissions().ask(request("q1", "r1", "s1"), "a.txt", Policy(allow=("edit", "e*")), RUN)
    (fact,) = asked.facts
    assert (asked.verdict, fact.kind, fact.body.outcome) == ("granted", "permission_notification", "granted")
    assert (fact.by, fact.body.by, fact.body.pattern) == (By("policy"), By("policy"), "edit")


@pytest.mark.parametrize(
    ("policy", "by", "pattern"),
    [
        (Policy(allow_for_run=("edit",)), "run rule", "edit"),
        (Policy(allow=("e*",), allow_for_run=("edit",)), "run rule", "edit"),
        (Policy(allow=("edit",), allow_for_run=("e*",)), "policy", "edit"),
        (Policy(allow=("edit",), allow_for_run=("edit",)), "policy", "edit"),
    ],
)
def test_a_rule_that_came_with_a_prompt_is_told_from_the_users_own(policy: Policy, by: str, pattern: str) -> None:
    """Else whoever looks for the rule that let a tool act would look for it in the config, in vain (B46)."""
    asked = Permissions().ask(request("q1", "r1", "s1"), "a.txt", policy, RUN)
    (fact,) = asked.facts
    assert (asked.verdict, fact.body.by, fact.body.pattern) == ("granted", By(by), pattern)


def test_skip_grants_and_says_so() -> None:
    """Else nobody could see afterwards that a tool ran because asking was switched off (B46)."""
    asked = Permissions(skip=True).ask(request("q1", "r1", "s1"), "a.txt", ASK, RUN)
    assert (asked.verdict, asked.facts[0].by) == ("granted", By("skip"))


def test_more_requests_than_people_can_answer_are_denied() -> None:
    """Else a tool in a loop takes all memory; and what nobody can answer must not become a yes (I10)."""
    permissions = Permissions()
    for number in range(limits.PENDING_PERMISSIONS):
        permissions.ask(request(f"q{number}", "r1", "s1"), "a.txt", ASK, RUN)
    one_more = permissions.ask(request("one more", "r1", "s1"), "a.txt", ASK, RUN)
    assert (one_more.verdict, one_more.facts[0].by) == ("denied", By("limit"))


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


def test_a_run_waits_while_one_of_its_questions_does() -> None:
    """Else nobody sees that a run has stopped because of them (B15)."""
    permissions = Permissions()
    for question, run in (("q1", "r1"), ("q2", "r1"), ("q3", "r2")):
        permissions.ask(request(question, run, "s1"), question, ASK, RUN)
    permissions.resolve("q1", "allow", By("ann"))
    permissions.resolve("q3", "allow", By("ann"))
    assert [permissions.waiting("r1"), permissions.waiting("r2")] == [True, False]


def test_an_answer_that_comes_too_late_says_nothing_and_allows_nothing() -> None:
    """Else a second click is written down as if it had decided something (I9 I10)."""
    late = Permissions().resolve("q1", "allow", By("ann"))
    assert late == Permissions().expire("q1") == Settled(False, [], "", "denied")


def test_a_question_and_its_end_say_whose_they_are() -> None:
    """Else clients cannot show them beside the call they are about, or who decided (B23 B46)."""
    permissions = Permissions()
    asked = permissions.ask(request("q1", "r1", "s1"), "a.txt", ASK, RUN).facts
    ended = permissions.resolve("q1", "allow_session", By("ann", "c1")).facts
    assert [(fact.kind, fact.change, fact.by.name, fact.session, fact.run) for fact in [*asked, *ended]] == [
        ("permission_notification", "created", "run", "s1", "r1"),
        ("permission_request", "created", "run", "s1", "r1"),
        ("permission_notification", "created", "ann", "s1", "r1"),
    ]
    assert asked[1].private == PermissionPrivate("q1", "edit", "write", "a.txt")  # what a restart asks again with
    body = ended[0].body
    assert (body.tool_call_id, body.session_id, body.by) == ("call-q1", "s1", By("ann", "c1"))
    assert (body.granted, body.denied, asked[0].body.granted, asked[0].body.denied) == (True, False, False, False)


def test_only_what_must_last_is_kept_when_the_log_is_trimmed() -> None:
    """Else every question ever asked stays in the log, or a grant is lost with it (B26 B45)."""
    permissions = Permissions()
    keys = []
    for question, answer in (("q1", "allow"), ("q2", "deny"), ("q3", "allow_session")):
        asked = permissions.ask(request(question, "r1", "s1"), question, ASK, RUN).facts
        keys.append([fact.key for fact in [*asked, *permissions.resolve(question, answer, By("ann")).facts]])
    assert keys == [["", "q1", ""], ["", "q2", ""], ["", "q3", "q3"]]


def test_what_is_decided_without_people_names_what_decided() -> None:
    """Else nobody can find out why a tool ran or did not (B46)."""
    permissions = Permissions()
    permissions.add_grant(("s1", "edit", "write", "a.txt"))
    denied = permissions.ask(request("q1", "r1", "s1"), "a.txt", DENY, RUN).facts[0]
    granted = permissions.ask(request("q2", "r1", "s1"), "a.txt", ASK, RUN).facts[0]
    assert [(fact.body.outcome, fact.body.by) for fact in (denied, granted)] == [
        ("denied", By("policy")),
        ("granted", By("grant")),
    ]


def test_a_withdrawn_question_names_who_withdrew_it_and_an_expired_one_the_server() -> None:
    """Else a cancel by one person looks like nobody's (B25 B46)."""
    permissions = Permissions()
    for question, run in (("q1", "r1"), ("q2", "r2")):
        permissions.ask(request(question, run, "s1"), question, ASK, RUN)
    (withdrawn,) = permissions.withdraw("r1", By("ann"))
    expired = permissions.expire("q2")
    assert [settled.facts[0].by for settled in (withdrawn, expired)] == [By("ann"), By("server")]


# -- patterns that people type ----------------------------------------------------------------------------------------

ANN = By("ann", "c1")


def test_a_pattern_allows_what_fits_it_for_the_session_and_says_so() -> None:
    """B26: else it is asked again and again, or nobody sees what was allowed by whom."""
    permissions = Permissions()
    permissions.ask(request("q1", "r1", "s1"), "src/a.py", ASK, RUN)
    (told,) = permissions.resolve("q1", "allow_session", ANN, "src/*").facts
    assert (told.body.by, told.body.pattern, told.key) == (ANN, "src/*", "q1")
    assert told.private == PermissionPrivate("q1", "edit", "write", "src/a.py", granted=True, pattern="src/*")
    covered = permissions.ask(request("q2", "r1", "s1"), "src/b.py", ASK, RUN)
    assert (covered.verdict, covered.facts[0].by, covered.facts[0].body.pattern) == ("granted", By("grant"), "src/*")
    others = [("s1", "README.md"), ("s2", "src/b.py")]
    assert [permissions.ask(request(f"q-{s}", "r1", s), r, ASK, RUN).verdict for s, r in others] == [None, None]


@pytest.mark.parametrize(
    ("action", "pattern", "problem"),
    [
        ("allow_session", "docs/*", "does not match"),
        ("allow", "src/*", "goes with"),
        ("deny", "src/*", "goes with"),
        ("allow_session", "s" * (limits.PATTERN_CHARACTERS + 1), "at most"),
        ("allow_session", "src/*\n", "at most"),
        ("allow_session", "src/\u202e*", "at most"),
    ],
)
def test_a_pattern_that_does_not_cover_what_is_asked_decides_nothing(
    action: Action, pattern: str, problem: str
) -> None:
    """I10: else a slip of the keyboard allows something that nobody was shown."""
    permissions = Permissions()
    permissions.ask(request("q1", "r1", "s1"), "src/a.py", ASK, RUN)
    with pytest.raises(Invalid, match=problem):
        permissions.resolve("q1", action, ANN, pattern)
    assert list(permissions.pending) == ["q1"]
    assert permissions.ask(request("q2", "r1", "s1"), "src/a.py", ASK, RUN).verdict is None


def test_a_pattern_that_comes_too_late_is_not_even_looked_at() -> None:
    """I9: whoever is late is told that they were, whatever they typed."""
    assert Permissions().resolve("q1", "deny", ANN, "nonsense") == Settled(False)


@pytest.mark.parametrize(
    "line", ["npm test && rm x", "npm --prefix /tmp test", "npm test --script-shell=x", "npm install"]
)
def test_a_pattern_for_commands_is_not_widened_by_the_shell(line: str) -> None:
    """A28: who allowed the tests for the session would find that something else was run."""
    permissions = Permissions()
    permissions.ask(command("q1"), "npm test", ASK, RUN)
    permissions.resolve("q1", "allow_session", ANN, "npm test*")
    assert permissions.ask(command("q2"), "npm test -- -u", ASK, RUN).verdict == "granted"
    assert permissions.ask(command("q3"), line, ASK, RUN).verdict is None


def test_a_pattern_holds_in_the_directory_it_was_typed_for() -> None:
    """A27 A28: the tests of one project would be those of another."""
    permissions = Permissions()
    permissions.ask(command("q1"), "npm test", ASK, RUN)
    permissions.resolve("q1", "allow_session", ANN, "npm test*")
    assert permissions.ask(command("q2", "execute in /tmp/other"), "npm test", ASK, RUN).verdict is None


def test_a_deny_rule_beats_a_pattern_that_a_person_typed() -> None:
    """I10: else what the user forbade in the config happens because somebody was asked something else."""
    permissions = Permissions()
    permissions.ask(request("q1", "r1", "s1"), "src/a.py", ASK, RUN)
    permissions.resolve("q1", "allow_session", ANN, "*")
    denied = permissions.ask(request("q2", "r1", "s1"), "src/secret", Policy(deny=("edit:*secret*",)), RUN)
    assert (denied.verdict, denied.facts[0].body.pattern) == ("denied", "edit:*secret*")


def test_a_sub_agent_may_do_what_fits_a_pattern_of_its_parent() -> None:
    """B26: else its parent's answer would be asked for again by each of its agents."""
    permissions = Permissions()
    permissions.ask(request("q1", "r1", "s1"), "src/a.py", ASK, RUN)
    permissions.resolve("q1", "allow_session", ANN, "src/*")
    assert permissions.ask(request("q2", "r2", "s2"), "src/b.py", ASK, RUN, ("s1",)).verdict == "granted"
    assert permissions.ask(request("q3", "r2", "s2"), "src/b.py", ASK, RUN).verdict is None


def test_a_deleted_session_takes_its_patterns_along() -> None:
    """B26: else a pattern outlives the conversation it was typed in."""
    permissions = Permissions()
    for session in ("s1", "s2"):
        permissions.remember(session, "edit", "write", "", "src/*")
    permissions.forget_session("s1")
    verdicts = [permissions.ask(request(s, "r1", s), "src/a", ASK, RUN).verdict for s in ("s1", "s2")]
    assert verdicts == [None, "granted"]


def test_when_too_many_patterns_were_typed_the_oldest_is_asked_again() -> None:
    """Else every call is compared with thousands of patterns, or the newest is not remembered."""
    permissions = Permissions()
    for number in range(limits.GRANT_PATTERNS + 1):
        permissions.remember("s1", "edit", "write", "", f"{number}/*")
    asked = [f"{number}/a" for number in (0, limits.GRANT_PATTERNS)]
    assert [permissions.ask(request(r, "r1", "s1"), r, ASK, RUN).verdict for r in asked] == [None, "granted"]


def command(id: str, action: str = "execute") -> PermissionRequest:
    return msgspec.structs.replace(request(id, "r1", "s1"), tool_name="bash", action=action)
