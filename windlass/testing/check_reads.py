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
            case "undo":
                _check_undo(history, ask)
            case "summarize":
                _check_summary(history, ask)
            case "history":
                _check_history(history, ask)


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


def _check_undo(history: History, ask: Ask) -> None:
    """Each file that was put back is told so on disk, by whoever did it, and by no run that is over (B46, I3)."""
    told = [
        stored.body["path"]
        for stored in history.ledgers[ask.arguments["workspace"]].facts
        if stored.row.kind == "file" and stored.body.get("origin") == "undo" and stored.at < ask.answered
        if stored.body["run_id"] == ask.arguments["run_id"] and stored.row.run == ""
    ]
    missing = [path for path in ask.answer.restored if path not in told]
    if missing:
        history.violate("I12", f"{ask} restored {missing}, and no fact on disk says so")


def _check_summary(history: History, ask: Ask) -> None:
    """Once it is answered, the session says on disk which message stands for all before it (B16)."""
    told = [
        stored.body["summary_message_id"]
        for stored in history.ledgers[ask.arguments["workspace"]].facts
        if stored.row.kind == "session" and stored.row.key == ask.arguments["session"] and stored.at < ask.answered
        if "summary_message_id" in stored.body
    ]
    if ask.answer.message_id not in told:
        history.violate("I12", f"{ask} was answered {ask.answer.message_id}, which no session names")


def _check_history(history: History, ask: Ask) -> None:
    """Versions as they are on disk, in their order; of one file they are numbered without a gap."""
    facts = [
        stored.body
        for stored in history.ledgers[ask.arguments["workspace"]].facts
        if stored.row.kind == "file" and stored.row.session == ask.arguments["session"] and stored.at < ask.answered
    ]
    versions = [_decode(body) for body in ask.answer]
    if versions != facts[: len(versions)]:
        history.violate("I12", f"{ask} was given versions that are not those on disk: {versions}")
    for path in {version["path"] for version in versions}:
        numbers = [version["version"] for version in versions if version["path"] == path]
        if numbers != list(range(1, len(numbers) + 1)):
            history.violate("I12", f"{ask} was given versions {numbers} of {path}")


def _is_finished(message: _Message) -> bool:
    if message["role"] == "tool":
        return bool(message["parts"]) and not any(part["data"].get("unfinished") for part in message["parts"])
    return message["role"] != "assistant" or any(part["type"] == "finish" for part in message["parts"])
