"""What people are asked: pending, then resolved once, withdrawn or expired.

The first answer wins and is told so; everyone later is told that it was not them, which is not an error (I9). A session
grant is keyed by what the server asked (tool, action, exact resource), never by the client's copy of it (R44); or it is
a pattern that a person typed, for the same tool and action. Nothing here ever turns silence into an allow (I10).
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from windlass import limits
from windlass.core.policy import COMMANDS, Policy, fits
from windlass.errors import Invalid
from windlass.wire.events import Fact
from windlass.wire.execution import Verdict
from windlass.wire.permissions import (
    Action,
    By,
    PermissionNotification,
    PermissionOutcome,
    PermissionPrivate,
    PermissionRequest,
)

GrantKey = tuple[str, str, str, str]  # session, tool, action, exact resource
PatternKey = tuple[str, str, str, str]  # session, tool, action, pattern


class Pending(msgspec.Struct, frozen=True):
    request: PermissionRequest
    resource: str
    run_id: str

    @property
    def key(self) -> GrantKey:
        return grant_key(self.request, self.resource)


class Asked(msgspec.Struct, frozen=True):
    """`verdict` is None when people have to be asked: then the request is pending."""

    verdict: Verdict | None
    facts: list[Fact]


class Settled(msgspec.Struct, frozen=True):
    """The end of one request: `resolved` tells whether this call decided it."""

    resolved: bool
    facts: list[Fact] = []
    run_id: str = ""
    verdict: Verdict = "denied"


def grant_key(request: PermissionRequest, resource: str) -> GrantKey:
    return (request.session_id, request.tool_name, request.action, resource)


class Permissions:
    """The requests of one workspace that are waiting, and what was granted for the rest of a session."""

    def __init__(self, skip: bool = False) -> None:
        self.skip = skip
        self.pending: dict[str, Pending] = {}
        self._grants: dict[GrantKey, None] = {}
        self._patterns: dict[PatternKey, None] = {}

    def add_grant(self, key: GrantKey) -> None:
        _add(self._grants, key, limits.GRANTS)

    def add_pattern(self, key: PatternKey) -> None:
        _add(self._patterns, key, limits.GRANT_PATTERNS)

    def remember(self, session: str, tool: str, action: str, resource: str, pattern: str) -> None:
        """What a restart finds in the tables: an answer for the session, exact or a pattern."""
        if pattern:
            self.add_pattern((session, tool, action, pattern))
        else:
            self.add_grant((session, tool, action, resource))

    def forget_session(self, session_id: str) -> None:
        for remembered in (self._grants, self._patterns):
            for key in [key for key in remembered if key[0] == session_id]:
                del remembered[key]

    def waiting(self, run_id: str) -> bool:
        return any(p.run_id == run_id for p in self.pending.values())

    def ask(
        self, request: PermissionRequest, resource: str, policy: Policy, by: By, above: Sequence[str] = ()
    ) -> Asked:
        """Decide by rule, grant or skip, in that order; else the people are asked. A deny rule beats everything.

        Whatever decides, and what it says, is a fact. A sub-agent's session may do what the sessions `above` it were
        granted, exactly that and nothing more.
        """
        ruling = policy.ruling(request.tool_name, resource)
        if ruling.rule == "deny":
            return Asked("denied", [self._notify(request, "denied", By("policy"), pattern=ruling.pattern)])
        if ruling.rule == "allow":
            decided = By("run rule" if ruling.for_run else "policy")
            return Asked("granted", [self._notify(request, "granted", decided, pattern=ruling.pattern)])
        grant = self._grant_for(request, resource, (request.session_id, *above))
        if grant is not None:
            return Asked("granted", [self._notify(request, "granted", By("grant"), pattern=grant)])
        if self.skip:
            return Asked("granted", [self._notify(request, "granted", By("skip"))])
        if len(self.pending) >= limits.PENDING_PERMISSIONS:
            return Asked("denied", [self._notify(request, "denied", By("limit"))])
        self.pending[request.id] = Pending(request, resource, request.run_id)
        asked = self._notify(request, "asked", by)
        private = PermissionPrivate(request.id, request.tool_name, request.action, resource)
        question = Fact(
            "permission_request",
            "created",
            request,
            by,
            request.session_id,
            request.run_id,
            key=request.id,
            private=private,
        )
        return Asked(None, [asked, question])

    def _grant_for(self, request: PermissionRequest, resource: str, sessions: Sequence[str]) -> str | None:
        """The pattern that an earlier answer covers this with, "" for one to exactly this; None when there is none."""
        _, tool, action, exact = grant_key(request, resource)
        if any((session, tool, action, exact) in self._grants for session in sessions):
            return ""
        for session, its_tool, its_action, pattern in self._patterns:
            if session in sessions and (its_tool, its_action) == (tool, action) and fits(pattern, tool, resource):
                return pattern
        return None

    def refuse(self, request: PermissionRequest, by: By) -> Asked:
        """Nobody is asked: what keeps it from being done is stronger than any answer (plan mode)."""
        return Asked("denied", [self._notify(request, "denied", by)])

    def resolve(self, request_id: str, action: Action, by: By, pattern: str = "") -> Settled:
        """Answer a request. Only the first answer of one that is still pending counts.

        Raises Invalid for a pattern that does not cover the request itself: then it goes on waiting.
        """
        pending = self.pending.get(request_id)
        if pending is None:
            return Settled(False)
        if pattern:
            check_pattern(pending, action, pattern)
        del self.pending[request_id]
        granted = action != "deny"
        remember = action == "allow_session"
        if remember:
            session, tool, its_action, resource = pending.key
            self.remember(session, tool, its_action, resource, pattern)
        outcome: Literal["granted", "denied"] = "granted" if granted else "denied"
        return Settled(True, [self._settle(pending, outcome, by, remember, pattern)], pending.run_id, outcome)

    def withdraw(self, run_id: str, by: By) -> list[Settled]:
        """The run is over or is being stopped: its questions go, everywhere (B25, I11)."""
        ids = [id for id, pending in self.pending.items() if pending.run_id == run_id]
        return [self._end(id, "withdrawn", by) for id in ids]

    def withdraw_one(self, request_id: str, by: By) -> Settled:
        """Whoever asked does not wait any more: nobody would act on an answer."""
        if request_id not in self.pending:
            return Settled(False)
        return self._end(request_id, "withdrawn", by)

    def expire(self, request_id: str) -> Settled:
        """Nobody was there to answer in time."""
        if request_id not in self.pending:
            return Settled(False)
        return self._end(request_id, "expired", By("server"))

    def _end(self, request_id: str, verdict: Literal["withdrawn", "expired"], by: By) -> Settled:
        pending = self.pending.pop(request_id)
        return Settled(True, [self._settle(pending, verdict, by)], pending.run_id, verdict)

    def _settle(
        self, pending: Pending, outcome: PermissionOutcome, by: By, remember: bool = False, pattern: str = ""
    ) -> Fact:
        request = pending.request
        private = PermissionPrivate(
            request.id, request.tool_name, request.action, pending.resource, granted=remember, pattern=pattern
        )
        return self._notify(request, outcome, by, private, pattern)

    def _notify(
        self,
        request: PermissionRequest,
        outcome: PermissionOutcome,
        by: By,
        private: PermissionPrivate | None = None,
        pattern: str = "",
    ) -> Fact:
        body = PermissionNotification(
            tool_call_id=request.tool_call_id,
            id=request.id,
            outcome=outcome,
            granted=outcome == "granted",
            denied=outcome == "denied",
            session_id=request.session_id,
            by=by,
            pattern=pattern,
        )
        # A grant is lasting state, so its fact has a key and stays in the snapshot when the log is trimmed.
        key = request.id if private is not None and private.granted else ""
        return Fact(
            "permission_notification",
            "created",
            body,
            by,
            request.session_id,
            request.run_id,
            key=key,
            private=private,
        )


def check_pattern(pending: Pending, action: Action, pattern: str) -> None:
    """Raise Invalid for a pattern that is too long, does not go with the answer, or is about something else."""
    if action != "allow_session":
        raise Invalid('pattern: a pattern goes with "allow_session" only. Leave it away to answer for this once.')
    if len(pattern) > limits.PATTERN_CHARACTERS or not pattern.isprintable():
        raise Invalid(f"pattern: at most {limits.PATTERN_CHARACTERS} characters that can be seen.")
    if fits(pattern, pending.request.tool_name, pending.resource):
        return
    if pending.request.tool_name == COMMANDS:
        raise Invalid(
            "pattern: it does not cover the command that is asked for. A pattern begins with the program's name, goes "
            "word by word, and covers one simple command: no operators, substitutions, redirections or unquoted "
            "wildcards, and no program that runs others (env, sudo, sh). Leave it away to allow exactly this command."
        )
    raise Invalid("pattern: it does not match what is asked for. Leave it away to allow exactly that.")


def _add(remembered: dict[tuple[str, str, str, str], None], key: tuple[str, str, str, str], limit: int) -> None:
    if len(remembered) >= limit:
        # The oldest goes: its question is asked again, which is safe; refusing the new one would surprise.
        del remembered[next(iter(remembered))]
    remembered[key] = None
