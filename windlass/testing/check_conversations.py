"""Conversations, checked: whatever happened to its runs, what is on disk can be sent to any model (I7, B19)."""

from typing import Any

from windlass.testing.history import History
from windlass.testing.ledger import Ledger
from windlass.testing.run_record import MessageRecord, Records, RunRecord, conversation
from windlass.wire.messages import ToolResult

_REASONS = {
    "completed": ("end_turn", "max_tokens"),
    "canceled": ("canceled",),
    "failed": ("error",),
    "interrupted": ("error",),
}


def check_conversations(history: History, records: Records) -> None:
    for ledger in history.ledgers.values():
        newest = {stored.row.session: stored for stored in ledger.facts if stored.row.kind == "session"}
        for session, stored in newest.items():
            if session in ledger.deleted:
                continue
            messages = conversation(ledger, session)
            _check_calls(history, session, messages)
            if stored.body["message_count"] != len(messages):
                history.violate("B19", f"{session} says {stored.body['message_count']} messages, has {len(messages)}")
            _check_summary(history, stored.body, messages)
            if stored.body["is_busy"]:
                history.violate("B29", f"{session} is called busy, and nothing runs")
            for record in records.of_session(ledger.id, session):
                _check_run(history, ledger, record, records, messages)


def _check_calls(history: History, session: str, messages: list[MessageRecord]) -> None:
    """Every call has one result, before anyone else speaks."""
    waiting: set[str] = set()
    for record in messages:
        message = record.message
        if message.is_open:
            history.violate("I7", f"{session}: {message.id} was never finished")
        if message.role == "tool":
            for part in message.parts:
                if isinstance(part, ToolResult):
                    if part.data.tool_call_id not in waiting:
                        history.violate("I7", f"{session}: a result of {part.data.tool_call_id} that nobody waits for")
                    waiting.discard(part.data.tool_call_id)
            continue
        if waiting:
            history.violate("I7", f"{session}: {message.role} {message.id} speaks while {waiting} have no result")
        waiting = {call.id for call in message.tool_calls}
    if waiting:
        history.violate("I7", f"{session}: {waiting} never got a result")


def _check_summary(history: History, session: dict[str, Any], messages: list[MessageRecord]) -> None:
    """The session names the newest summary that ended well, and no other message (B16)."""
    whole = [
        record.message.id
        for record in messages
        if record.message.is_summary_message and (finish := record.message.finish) and finish.reason == "end_turn"
    ]
    if session["summary_message_id"] != (whole[-1] if whole else ""):
        history.violate("B16", f"{session['id']} names {session['summary_message_id']!r} as its summary, has {whole}")


def _check_run(
    history: History, ledger: Ledger, record: RunRecord, records: Records, messages: list[MessageRecord]
) -> None:
    own = [message for message in messages if message.run == record.id]
    if not own or own[0].message.role != "user" or own[0].message.text != record.prompt:
        history.violate("I7", f"{record} has no user message, or not as its first")
        return
    if list(record.run.message_ids) != [message.message.id for message in own]:
        told = ", ".join(record.run.message_ids)
        history.violate("B19", f"{record} names {told}, has {', '.join(m.message.id for m in own)}")
    if record.taken_by:
        return  # it shares the answer of the run that took it
    answers = [message.message for message in own if message.message.role == "assistant"]
    finish = answers[-1].finish if answers else None
    if finish is None or finish.reason not in _REASONS[record.run.state]:
        history.violate("I7", f"{record} ends with {finish}")
    if record.run.state == "canceled" and record.started is None and len(own) != 2:
        history.violate("I7", f"{record} never started and has {len(own)} messages")
