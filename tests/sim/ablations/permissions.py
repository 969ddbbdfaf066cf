"""Questions and answers: what the desk and the permissions promise, taken out."""

from typing import Any

import pytest

from tests.sim.ablations.ablation import Ablation
from windlass.core import permissions as permissions_module
from windlass.core.permissions import Pending, Permissions, Settled
from windlass.core.policy import Policy
from windlass.engine.desk import Desk
from windlass.wire.events import Fact
from windlass.wire.permissions import Action, By, PermissionRequest


def answer_twice(patch: pytest.MonkeyPatch) -> None:
    """An answer does not take the request away: a second one wins too (R43)."""
    resolve = Permissions.resolve

    def again(permissions: Permissions, request_id: str, action: Any, by: Any, pattern: str) -> Any:
        pending = permissions.pending.get(request_id)
        settled = resolve(permissions, request_id, action, by, pattern)
        if pending is not None:
            permissions.pending[request_id] = pending
        return settled

    patch.setattr(Permissions, "resolve", again)


def keep_questions_of_ended_runs(patch: pytest.MonkeyPatch) -> None:
    """A cancelled run's question is not withdrawn."""
    patch.setattr(Desk, "withdraw", lambda desk, run_ids, by: [])


def leave_askers_waiting(patch: pytest.MonkeyPatch) -> None:
    """Whoever asked for a run that was cancelled is not told, and waits for ever."""

    def withdraw(desk: Desk, run_ids: list[str], by: By) -> list[Fact]:
        settled = [settled for run_id in run_ids for settled in desk.permissions.withdraw(run_id, by)]
        return [fact for one in settled for fact in one.facts]

    patch.setattr(Desk, "withdraw", withdraw)


def remember_the_losers_grant(patch: pytest.MonkeyPatch) -> None:
    """An "allow for this session" that came too late leaves a grant behind, also after a deny (R44)."""
    ask, resolve = Permissions.ask, Permissions.resolve

    def asked(
        permissions: Permissions, request: PermissionRequest, resource: str, policy: Policy, by: By, above: Any
    ) -> Any:
        known = permissions.__dict__.setdefault("known", {})
        known[request.id] = Pending(request, resource, request.run_id)
        return ask(permissions, request, resource, policy, by, above)

    def resolved(permissions: Permissions, request_id: str, action: Action, by: By, pattern: str) -> Settled:
        pending = permissions.__dict__.get("known", {}).get(request_id)
        if pending is not None and action == "allow_session":
            permissions.add_grant(pending.key)
        return resolve(permissions, request_id, action, by, pattern)

    patch.setattr(Permissions, "ask", asked)
    patch.setattr(Permissions, "resolve", resolved)


def grant_more_than_was_asked(patch: pytest.MonkeyPatch) -> None:
    """A grant for one command is taken for every command of that tool (I10)."""

    def whole_tool(request: PermissionRequest, resource: str) -> tuple[str, str, str, str]:
        return request.session_id, request.tool_name, request.action, ""

    patch.setattr(permissions_module, "grant_key", whole_tool)


def take_a_pattern_for_everything(patch: pytest.MonkeyPatch) -> None:
    """A pattern that somebody typed covers every call of that tool, whatever it says (I10)."""
    patch.setattr(permissions_module, "fits", lambda pattern, tool, resource: True)


def let_people_overrule_a_deny(patch: pytest.MonkeyPatch) -> None:
    """A grant or a skip opens what a rule forbids."""
    ask = Permissions.ask

    def lenient(permissions: Permissions, request: Any, resource: str, policy: Policy, by: By, above: Any) -> Any:
        return ask(permissions, request, resource, Policy(policy.allow, policy.ask, ()), by, above)

    patch.setattr(Permissions, "ask", lenient)


def run_a_tool_before_its_allow_is_on_disk(patch: pytest.MonkeyPatch) -> None:
    """A tool runs by an allow that a crash may take away (I10)."""

    def tell(desk: Desk, permission_id: str, settled: Settled) -> None:
        answer = desk._asking.get(permission_id)
        if answer is not None and not answer.done():
            answer.set_result((settled.verdict, 0))

    patch.setattr(Desk, "_tell", tell)


ABLATIONS = [
    Ablation(answer_twice, ("I9",), last_found=1),
    Ablation(keep_questions_of_ended_runs, ("I9", "I11"), last_found=31),
    Ablation(leave_askers_waiting, ("I19",), last_found=19),
    Ablation(remember_the_losers_grant, ("I10",), last_found=22),
    Ablation(grant_more_than_was_asked, ("I10",), last_found=7),
    Ablation(take_a_pattern_for_everything, ("I10",), last_found=23),
    Ablation(let_people_overrule_a_deny, ("I10",), last_found=2),
    Ablation(run_a_tool_before_its_allow_is_on_disk, ("I10",), last_found=1),
]
