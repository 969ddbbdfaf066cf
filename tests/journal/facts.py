"""Facts for tests, and readers of the bytes they become."""

import json
from typing import Any

from windlass.journal.reader import Reader
from windlass.wire.events import ConfigChanged, Fact
from windlass.wire.messages import Finish, FinishData, Message, MessagePrivate, Text, TextData
from windlass.wire.permissions import By, PermissionNotification, PermissionPrivate, PermissionRequest
from windlass.wire.questions import Question, QuestionBatch, QuestionNotification, QuestionResponse
from windlass.wire.runs import Run, RunPrivate, Usage
from windlass.wire.sessions import FileVersion, Session

BY = By("tester", "client")


def session_fact(id: str = "s1", title: str = "", change: Any = "updated", *, parent: str = "", at: int = 0) -> Fact:
    return Fact("session", change, Session(id=id, parent_session_id=parent, title=title, updated_at=at), BY, id, key=id)


def message_fact(
    id: str = "m1",
    text: str = "",
    *,
    done: bool = False,
    session: str = "s1",
    role: Any = "assistant",
    number: int = 1,
    index: int = 0,
    at: int = 1,
) -> Fact:
    parts: list[Any] = [Text(TextData(text))] if text else []
    if done:
        parts.append(Finish(FinishData("end_turn", 1)))
    message = Message(id, role, session, parts, "", "", at, at)
    return Fact("message", "updated", message, BY, session, "r1", key=id, private=MessagePrivate(number, index))


async def read(reader: Reader, count: int) -> list[dict[str, Any]]:
    """The next `count` events, decoded, each with its `seq` (0 when it has no id)."""
    events: list[dict[str, Any]] = []
    while len(events) < count:
        events += decode(await reader.next(5.0))
    return events


def decode(data: bytes) -> list[dict[str, Any]]:
    events = []
    for block in data.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        if "data" in fields:
            event = json.loads(fields["data"])
            events.append({"seq": int(fields.get("id", ".0").partition(".")[2]), **event})
    return events


def body(event: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = event["payload"]["payload"]
    return body


def run_fact(id: str = "r1", state: Any = "running", *, session: str = "s1", number: int = 1, order: int = 1) -> Fact:
    run = Run(
        id=id,
        session_id=session,
        state=state,
        cancel_requested=False,
        prompt="do it",
        disposition="started",
        message_ids=(),
        usage=Usage(),
        cost=0.0,
        created_at="2026-01-01T00:00:00Z",
    )
    return Fact("run", "updated", run, BY, session, id, key=id, private=RunPrivate(number, order, BY))


def question_fact(id: str = "q1", *, session: str = "s1", run: str = "r1", resource: str = "a.txt") -> Fact:
    request = PermissionRequest(id, session, f"call-{id}", "edit", "", "write", {}, "", session, run_id=run)
    private = PermissionPrivate(id, "edit", "write", resource)
    return Fact("permission_request", "created", request, BY, session, run, key=id, private=private)


def answer_fact(
    id: str = "q1",
    *,
    session: str = "s1",
    run: str = "r1",
    resource: str = "a.txt",
    remember: bool = False,
    pattern: str = "",
) -> Fact:
    told = PermissionNotification(f"call-{id}", id, "granted", True, False, session, BY, pattern)
    private = PermissionPrivate(id, "edit", "write", resource, granted=remember, pattern=pattern)
    key = id if remember else ""
    return Fact("permission_notification", "created", told, BY, session, run, key=key, private=private)


def batch_fact(id: str = "b1", *, session: str = "s1", run: str = "r1", question: str = "Go on?") -> Fact:
    batch = QuestionBatch(id, session, f"call-{id}", (Question("q1", "yes_no", question),), session, run)
    return Fact("question_batch_request", "created", batch, BY, session, run, key=id)


def batch_end_fact(id: str = "b1", *, session: str = "s1", run: str = "r1") -> Fact:
    told = QuestionNotification(id, "answered", session, BY, (QuestionResponse("q1", yes=True),))
    return Fact("question_batch_notification", "created", told, BY, session, run)


def file_fact(id: str = "f1", path: str = "a.txt", version: int = 1, *, session: str = "s1") -> Fact:
    return Fact("file", "created", FileVersion(id, session, path, "words", version, 1, 1), BY, session, "r1", key=id)


def skip_fact(workspace: str, skip: bool) -> Fact:
    return Fact("config_changed", "updated", ConfigChanged(workspace), BY, key="skip", private={"skip": skip})
