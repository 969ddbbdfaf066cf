"""What people are asked: pending, then resolved once, withdrawn or expired.

The first answer wins and is told so; everyone later is told that it was not them, which is not an error (I9). A session
grant is keyed by what the server asked (tool, action, exact resource), never by the client's copy of it (R44).
Nothing here ever turns silence into an allow (I10).
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from windlass import limits
from windlass.core.policy import Policy
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

    def add_grant(self, key: GrantKey) -> None:
        if len(self._grants) >= limits.GRANTS:
            # The oldest goes: its question is asked again, which is safe; refusing the new one would surprise.
            del self._grants[next(iter(self._grants))]
        self._grants[key] = None

    def forget_session(self, session_id: str) -> None:
        for key in [key for key in self._grants if key[0] == session_id]:
            del self._grants[key]

    def waiting(self, run_id: str) -> bool:
        return any(p.run_id == run_id for p in self.pending.values())

    def ask(
        self, request: PermissionRequest, resource: str, policy: Policy, by: By, above: Sequence[str] = ()
    ) -> Asked:
        """Decide by rule, grant or skip, in that order; else the people are asked. A deny rule beats everything.

        A sub-agent's session may do what the sessions `above` it were granted, exactly that and nothing more.
        """
        rule = policy.decide(request.tool_name, resource)
        if rule == "deny":
            return Asked("denied", [self._notify(request, "denied", By("policy"))])
        if rule == "allow":
            return Asked("granted", [])
        _, *what = grant_key(request, resource)
        if any((session, *what) in self._grants for session in (request.session_id, *above)):
            return Asked("granted", [self._notify(request, "granted", By("grant"))])
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

    def resolve(self, request_id: str, action: Action, by: By) -> Settled:
        """Answer a request. Only the first answer of one that is still pending counts."""
        pending = self.pending.pop(request_id, None)
        if pending is None:
            return Settled(False)
        granted = action != "deny"
        remember = action == "allow_session"
        if remember:
            self.add_grant(pending.key)
        outcome: Literal["granted", "denied"] = "granted" if granted else "denied"
        return Settled(True, [self._settle(pending, outcome, by, remember)], pending.run_id, outcome)

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

    def _settle(self, pending: Pending, outcome: PermissionOutcome, by: By, remember: bool = False) -> Fact:
        request = pending.request
        private = PermissionPrivate(request.id, request.tool_name, request.action, pending.resource, granted=remember)
        return self._notify(request, outcome, by, private)

    def _notify(
        self,
        request: PermissionRequest,
        outcome: PermissionOutcome,
        by: By,
        private: PermissionPrivate | None = None,
    ) -> Fact:
        body = PermissionNotification(
            tool_call_id=request.tool_call_id,
            id=request.id,
            outcome=outcome,
            granted=outcome == "granted",
            denied=outcome == "denied",
            session_id=request.session_id,
            by=by,
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
