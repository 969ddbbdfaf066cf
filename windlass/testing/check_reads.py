"""What was read, checked: one path is one workspace, and nothing is served that is not on disk (I12, I18, B19).

And a client that said goodbye for good opens nothing any more, also not with a create that was on its way (R33, R34).
"""

from typing import Any

import msgspec

from windlass.testing.history import Ask, History
from windlass.testing.shown_text import grew, texts

_Message = dict[str, Any]
_decode = msgspec.json.Decoder(_Message).decode


def check_reads(history: History) -> None:
    workspaces: dict[str, str] = {}
    for ask in history.asks:
        if ask.status != "answered":
            continue
        match ask.kind:
            case "create":
                if workspaces.setdefault(ask.arguments["path"], ask.answer) != ask.answer:
                    history.violate("I18", f"{ask} was answered {ask.answer}")
                if history.retired.get(ask.client_id, ask.answered) < ask.answered:
                    history.violate("I17", f"{ask} was answered after its client's goodbye (R33)")
            case "late_create":
                history.violate("I17", f"{ask} came after the goodbye and was not refused (R34)")
            case "messages":
                _check_messages(history, ask)


def _check_messages(history: History, ask: Ask) -> None:
    """Each message as some fact on disk has it, or with more text of one that was still being written."""
    facts: dict[str, list[_Message]] = {}
    for stored in history.ledgers[ask.arguments["workspace"]].facts:
        if stored.row.kind == "message" and stored.at < ask.answered:
            facts.setdefault(stored.row.key, []).append(stored.body)
    for body in ask.answer:
        message = _decode(body)
        versions = facts.get(message["id"], [])
        unfinished = [version for version in versions if not _is_finished(version)]
        live = not _is_finished(message) and any(grew(texts(version), texts(message)) for version in unfinished)
        if message not in versions and not live:
            history.violate("I12", f"{ask} was given a message that is not on disk: {message}")


def _is_finished(message: _Message) -> bool:
    return message["role"] != "assistant" or any(part["type"] == "finish" for part in message["parts"])
