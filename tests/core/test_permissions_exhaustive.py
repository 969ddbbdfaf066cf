"""Every interleaving of asks, answers of three people, withdrawals, expiries and a crash, over the real `Permissions`.

What is checked is written in `permission_world.py`: I9, I10, I11, B23-B27, R43, R44. The last test takes out one
safeguard at a time and expects the search to find what that breaks.
"""

from collections.abc import Callable, Sequence

import msgspec
import pytest

from tests.core.permission_world import PermissionWorld
from tests.core.search import Violation, explore
from windlass.core.permissions import Permissions, Settled, grant_key
from windlass.wire.permissions import Action, By, PermissionRequest


def test_no_interleaving_of_answers_withdrawals_and_crashes_breaks_an_invariant() -> None:
    """Else a tool could run on a lost, late or foreign answer, or a question could wait for a run that is over."""
    report = explore(PermissionWorld(asks=3, crashes=1))
    print(report)
    assert report.states > 5_000


def a_second_answer_wins_too(patch: pytest.MonkeyPatch) -> None:
    original = Permissions.resolve

    def resolve(permissions: Permissions, request_id: str, action: Action, by: By, pattern: str) -> Settled:
        return msgspec.structs.replace(original(permissions, request_id, action, by, pattern), resolved=True)

    patch.setattr(Permissions, "resolve", resolve)


def any_answer_is_remembered(patch: pytest.MonkeyPatch) -> None:
    original = Permissions.resolve

    def resolve(permissions: Permissions, request_id: str, action: Action, by: By, pattern: str) -> Settled:
        pending = permissions.pending.get(request_id)
        if pending is not None:
            permissions.add_grant(pending.key)
        return original(permissions, request_id, action, by, pattern)

    patch.setattr(Permissions, "resolve", resolve)


def a_grant_ignores_the_resource(patch: pytest.MonkeyPatch) -> None:
    def wide_key(request: PermissionRequest, resource: str) -> tuple[str, str, str, str]:
        return grant_key(request, "")

    patch.setattr("windlass.core.permissions.grant_key", wide_key)


def a_grant_ignores_the_session(patch: pytest.MonkeyPatch) -> None:
    def wide_key(request: PermissionRequest, resource: str) -> tuple[str, str, str, str]:
        return ("", *grant_key(request, resource)[1:])

    patch.setattr("windlass.core.permissions.grant_key", wide_key)


def a_pattern_holds_in_every_session(patch: pytest.MonkeyPatch) -> None:
    original = Permissions._grant_for

    def grant_for(
        permissions: Permissions, request: PermissionRequest, resource: str, sessions: Sequence[str]
    ) -> str | None:
        return original(permissions, request, resource, ("s1", "s2"))

    patch.setattr(Permissions, "_grant_for", grant_for)


def a_restart_takes_a_pattern_for_everything(patch: pytest.MonkeyPatch) -> None:
    original = Permissions.remember

    def remember(permissions: Permissions, session: str, tool: str, action: str, resource: str, pattern: str) -> None:
        original(permissions, session, tool, action, resource, pattern and "*")

    patch.setattr(Permissions, "remember", remember)


def a_stopped_run_keeps_its_questions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Permissions, "withdraw", lambda permissions, run_id, by: [])


def a_stopped_run_takes_the_questions_of_others(patch: pytest.MonkeyPatch) -> None:
    def withdraw(permissions: Permissions, run_id: str, by: By) -> list[Settled]:
        return [permissions._end(id, "withdrawn", by) for id in list(permissions.pending)]

    patch.setattr(Permissions, "withdraw", withdraw)


def silence_allows(patch: pytest.MonkeyPatch) -> None:
    def expire(permissions: Permissions, request_id: str) -> Settled:
        return permissions.resolve(request_id, "allow", By("server"))

    patch.setattr(Permissions, "expire", expire)


MUTANTS: dict[Callable[[pytest.MonkeyPatch], None], str] = {
    a_second_answer_wins_too: "I9 R43",
    any_answer_is_remembered: "R44",
    a_grant_ignores_the_resource: "B26",
    a_grant_ignores_the_session: "B26",
    a_pattern_holds_in_every_session: "B26",
    a_restart_takes_a_pattern_for_everything: "B26",
    a_stopped_run_keeps_its_questions: "B25",
    a_stopped_run_takes_the_questions_of_others: "B25",
    silence_allows: "I10",
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_search_finds_what_a_missing_safeguard_breaks(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the search is blind for this rule, and its silence about the real object means nothing."""
    mutant(monkeypatch)
    with pytest.raises(Violation, match=MUTANTS[mutant]) as found:
        explore(PermissionWorld(asks=3, crashes=1))
    print(found.value)
