"""Questions a tool's permission puts to the person at the terminal.

Everyone attached is asked; the first answer counts. So a question here can be settled by somebody else at any moment,
and an answer typed here can come too late: both are said, neither is an error (B23).
"""

import json

import msgspec

from windlass import limits
from windlass.cli.safe_text import exact, shortened
from windlass.cli.terminal import Terminal
from windlass.client import (
    Action,
    By,
    PermissionNotification,
    PermissionRequest,
    StreamEvent,
    WindlassError,
    WorkspaceHandle,
)

ANSWERS: dict[str, Action] = {
    "y": "allow",
    "yes": "allow",
    "n": "deny",
    "no": "deny",
    "s": "allow_session",
    "session": "allow_session",
    "a": "allow_session",
    "always": "allow_session",
}
HOW_TO_ANSWER = "y = yes, n = no, s = {again} for the session, s PATTERN = what fits it (s npm test*)"


class Questions:
    """What is pending, for one session or (session "") for the whole workspace."""

    def __init__(self, workspace: WorkspaceHandle, terminal: Terminal, hint: str, session_id: str = "") -> None:
        self.pending: dict[str, PermissionRequest] = {}
        self._workspace = workspace
        self._terminal = terminal
        self._hint = hint
        self._session_id = session_id
        self.shown = ""  # the session on the screen: a question of another one says so
        self.asked = 0

    def take(self, event: StreamEvent) -> None:
        """Notice what an event says about permissions."""
        try:
            if event.kind == "hello":
                self._start_over(msgspec.convert(event.payload.get("permissions", []), list[PermissionRequest]))
            elif event.kind == "permission_request":
                self._ask(msgspec.convert(event.payload, PermissionRequest))
            elif event.kind == "permission_notification":
                self._settle(msgspec.convert(event.payload, PermissionNotification))
        except msgspec.ValidationError:
            # The facts of a deleted session come without their bodies.
            return

    async def answer(self, permission_id: str, action: Action, pattern: str = "") -> None:
        """Send an answer and say what became of it."""
        try:
            decided = await self._workspace.grant(permission_id, action, pattern)
        except WindlassError as error:
            self._terminal.status(f"The answer was not taken: {exact(error.message)}", fg="red")
            return
        self.pending.pop(permission_id, None)
        if not decided:
            self._terminal.status("Too late: it was answered or withdrawn before.", fg="yellow")

    def oldest(self) -> PermissionRequest | None:
        return next(iter(self.pending.values()), None)

    def _start_over(self, requests: list[PermissionRequest]) -> None:
        # After a reconnect the server's list is the truth: an answer given meanwhile was not seen here.
        known, self.pending = self.pending, {}
        for request in requests:
            if request.id in known:
                self.pending[request.id] = known[request.id]
            else:
                self._ask(request)

    def _ask(self, request: PermissionRequest) -> None:
        if self._session_id not in ("", request.session_id, request.root_session_id) or request.id in self.pending:
            return
        self.pending[request.id] = request
        self.asked += 1
        if self.shown and request.session_id != self.shown:
            self._terminal.status(f"In another session, {exact(request.session_id)}:", fg="yellow")
        for line in described(request):
            self._terminal.status(line, fg="yellow")
        hint = self._hint.format(id=exact(request.id), again=covered_for_session(request))
        self._terminal.status(f"  {hint}", fg="yellow")

    def _settle(self, notification: PermissionNotification) -> None:
        if notification.outcome == "asked" or self.pending.pop(notification.id, None) is None:
            return
        who = f" by {who_is(notification.by)}" if notification.by is not None else ""
        scope = f", for the session and for what fits {exact(notification.pattern)}" if notification.pattern else ""
        self._terminal.status(f"Permission {notification.outcome}{who}{scope}.")


def typed_pattern(line: str) -> str:
    """The pattern of an answer like `s npm test*`, "" for any other line."""
    word, _, rest = line.partition(" ")
    return rest.strip() if word in ("s", "session") else ""


def covered_for_session(request: PermissionRequest) -> str:
    """What a bare `s` allows, in words: who believes that it is this call only would allow more than they saw."""
    match request.action:
        case "edit" | "write":
            return f"any {exact(request.tool_name)} of this file"
        case _:
            return "exactly this again"


def described(request: PermissionRequest) -> list[str]:
    """What is asked, in lines safe to print. What is cut is said to be cut: nobody approves what they cannot see."""
    bounds = "" if request.confined else " (unconfined)"
    lines = [f"{exact(request.tool_name)} asks to {exact(request.action)}{bounds}: {exact(request.description)}"]
    if request.path:
        lines.append(f"  in {exact(request.path)}")
    for name, value in request.params.items():
        if value in ("", None) or value is False or (request.path and value == request.path):
            continue  # said above, or not so: lines that say nothing hide those that do
        if name == "diff" and isinstance(value, str):
            # Read line by line, each exact and set in: in any other value a line break is shown, or it could pass for
            # a line of ours.
            text = shortened(value, limits.CONSOLE_PERMISSION_CHARACTERS)
            lines += [f"  {exact(name)}:", *(f"    {exact(line)}" for line in text.split("\n"))]
        else:
            if isinstance(value, float) and value.is_integer():
                value = int(value)  # 120 s, not 120.0
            shown = exact(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
            lines.append(f"  {exact(name)}: {shortened(shown, limits.CONSOLE_PERMISSION_CHARACTERS)}")
    return lines


def who_is(by: By | None) -> str:
    """A person or program, as others may recognise it."""
    if by is None:
        return "someone"
    return f"{exact(by.name)} ({exact(by.client_id[:8])})" if by.client_id else exact(by.name)
