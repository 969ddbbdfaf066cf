"""Facts for tests, and readers of the bytes they become."""

import json
from typing import Any

from windlass.journal.reader import Reader
from windlass.wire.events import Fact
from windlass.wire.messages import Finish, FinishData, Message, MessagePrivate, Text, TextData
from windlass.wire.permissions import By
from windlass.wire.sessions import Session

BY = By("tester", "client")


def session_fact(id: str = "s1", title: str = "", change: Any = "updated") -> Fact:
    return Fact("session", change, Session(id=id, title=title), BY, id, key=id)


def message_fact(
    id: str = "m1", text: str = "", *, done: bool = False, session: str = "s1", role: Any = "assistant", index: int = 0
) -> Fact:
    parts: list[Any] = [Text(TextData(text))] if text else []
    if done:
        parts.append(Finish(FinishData("end_turn", 1)))
    message = Message(id, role, session, parts, "", "", 1, 1)
    return Fact("message", "updated", message, BY, session, "r1", key=id, private=MessagePrivate(1, index))


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
