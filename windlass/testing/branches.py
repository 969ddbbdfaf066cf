"""How often a simulation reached the rare branches: one that never gets there proves little about them.

Counted from the history, so that the product knows nothing of it.
"""

from collections import Counter
from typing import Any

from windlass.testing.history import Ask, Connection, History
from windlass.testing.ledger import Stored
from windlass.testing.run_record import Records, RunRecord

# Where systems of this kind have lost something. A change that makes one of these unreachable blinds the simulation.
IMPORTANT = (
    "a cancel after the start and before it was on disk",
    "a cancel before the start",
    "a cancel of a run that was not accepted yet",
    "a cancel between the executor's end and the run's",
    "a client retired during its create",
    "a cursor at the floor",
    "a cursor of another log",
    "a hold expired at the instant of an attach",
    "a permission expired unattended",
    "a permission granted by an earlier answer",
    "a permission withdrawn",
    "a question answered",
    "a question canceled",
    "a question expired",
    "a question withdrawn",
    "a queue was full",
    "a reader fell behind the tail",
    "a repeated run_id while the first was in flight",
    "a repeated run_id with another body",
    "a reset was sent",
    "a run of an earlier process ended canceled",
    "a run of an earlier process ended completed",
    "a run of an earlier process ended interrupted",
    "a session was deleted while it was busy",
    "a steer became an ordinary run",
    "a steer was taken",
    "an agent of an agent was started",
    "an agent was cancelled at work",
    "an answer came after the withdrawal",
    "an answer lost to another",
    "an answer to a question came too late",
    "an answer to a question did not fit",
    "an executor was abandoned",
    "the log was trimmed",
    "the server was drained under a run",
    "the server ends: dies after commit",
    "the server ends: dies before commit",
    "the server ends: killed",
    "the server ends: left, its disk refused",
    "a create was refused by a server that leaves",
)


def branches(history: History, records: Records) -> Counter[str]:
    counted: Counter[str] = Counter(history.counted)
    for record in records:
        _count_run(counted, history, record)
    for ask in history.asks:
        _count_ask(counted, history, ask, records)
    for ledger in history.ledgers.values():
        counted["the log was trimmed"] += len(ledger.floors)
        for stored in ledger.facts:
            if stored.row.kind == "permission_notification":
                counted[_permission(stored.body)] += 1
            elif stored.row.kind == "question_batch_notification":
                counted[f"a question {stored.body['outcome']}"] += 1
    for connection in history.connections:
        carried = [connection.greeting, *(chunk.data for chunk in connection.chunks)]
        counted["a reset was sent"] += sum(data.count(b'{"type":"reset"') for data in carried)
        _count_cursor(counted, history, connection)
    for _, _, _, what in history.lines:
        if isinstance(what, str) and what.startswith("server   ends: "):
            counted[f"the server ends: {what[15:]}"] += 1
    return +counted


def _count_cursor(counted: Counter[str], history: History, connection: Connection) -> None:
    ledger = history.ledgers[connection.workspace_id]
    if connection.epoch not in ("", ledger.epoch):
        counted["a cursor of another log"] += 1
    elif connection.after and connection.after == ledger.floor(connection.opened):
        counted["a cursor at the floor"] += 1


def _permission(body: dict[str, Any]) -> str:
    outcome, by = body["outcome"], body["by"]
    match outcome, by["name"]:
        case "withdrawn", _:
            return "a permission withdrawn"
        case "expired", _:
            return "a permission expired unattended"
        case "granted", "grant":
            return "a permission granted by an earlier answer"
        case _:
            return f"a permission {outcome} by {'a client' if by.get('client_id') else by['name']}"


def _count_run(counted: Counter[str], history: History, record: RunRecord) -> None:
    state, started, flagged, terminal = record.run.state, record.started, record.flagged, record.terminal
    counted[f"a run ended {state}"] += 1
    if record.states[0].run.into:
        counted["a steer was taken" if record.taken_by else "a steer became an ordinary run"] += 1
    if flagged is not None and started is None:
        counted["a cancel before the start"] += 1
    if flagged is not None and started is not None and flagged.stored.row.time < started.stored.time:
        counted["a cancel after the start and before it was on disk"] += 1
    ends = [step for step in history.steps if step.kind == "end" and step.belongs_to(record.session, record.id)]
    if state == "canceled" and any(end.detail == "completed" and not end.told for end in ends):
        counted["a cancel between the executor's end and the run's"] += 1
    if record.parent_run:
        _count_agent(counted, history, record)
    if terminal is None:
        return
    if any(end.at > terminal.at for end in ends):
        counted["an executor was abandoned"] += 1
    if terminal.stored.life > record.created.life:
        counted[f"a run of an earlier process ended {state}"] += 1
    elif state == "interrupted":
        counted["the server was drained under a run"] += 1


def _count_agent(counted: Counter[str], history: History, record: RunRecord) -> None:
    counted["an agent was started"] += 1
    parents = {
        fact.row.session: fact.body.get("parent_session_id", "") for fact in record.ledger.facts if _is_new(fact)
    }
    if parents.get(parents.get(record.session, ""), ""):
        counted["an agent of an agent was started"] += 1
    if record.flagged is not None and record.started is not None:
        counted["an agent was cancelled at work"] += 1
    if record.flagged is not None and record.flagged.stored.life > record.created.life:
        counted["an agent's queued run was found by a restart"] += 1


def _is_new(stored: Stored) -> bool:
    return stored.row.kind == "session" and stored.row.change == "created"


def _count_ask(counted: Counter[str], history: History, ask: Ask, records: Records) -> None:
    counted[f"{ask.kind} {ask.status}"] += 1
    for text, branch in _REFUSALS.items():
        if ask.refusal.startswith(text):
            counted[branch] += 1
    match ask.kind:
        case "prompt" if ask.arguments["run_id"]:
            _count_repetition(counted, history, ask)
        case "answer" if ask.answer is False:
            _count_loser(counted, history, ask)
        case "answer_questions" if ask.answer is False:
            counted["an answer to a question came too late"] += 1
        case "cancel_run" if ask.status == "answered":
            record = records.find(ask.arguments["workspace"], ask.arguments["run_id"], ask.answered)
            if record is not None and record.created.at > ask.asked:
                counted["a cancel of a run that was not accepted yet"] += 1
        case "delete" if ask.status == "answered":
            runs = records.of_session(ask.arguments["workspace"], ask.arguments["session"])
            if any(run.terminal is not None and run.terminal.at > ask.asked for run in runs):
                counted["a session was deleted while it was busy"] += 1


_REFUSALS = {
    "Conflict: This run_id was used": "a repeated run_id with another body",
    "TooMany: This session already has": "a queue was full",
    "Unavailable: This server is leaving": "a create was refused by a server that leaves",
    "Invalid: responses": "an answer to a question did not fit",
}


def _count_repetition(counted: Counter[str], history: History, ask: Ask) -> None:
    for other in history.asks[: ask.number - 1]:
        same = other.kind == "prompt" and other.arguments["run_id"] == ask.arguments["run_id"]
        if same and other.answered > ask.asked:
            counted["a repeated run_id while the first was in flight"] += 1


def _count_loser(counted: Counter[str], history: History, ask: Ask) -> None:
    for stored in history.ledgers[ask.arguments["workspace"]].facts:
        if stored.row.kind == "permission_notification" and stored.body["id"] == ask.arguments["permission"]:
            if stored.body["outcome"] in ("granted", "denied"):
                counted["an answer lost to another"] += 1
            elif stored.body["outcome"] in ("withdrawn", "expired"):
                counted["an answer came after the withdrawal"] += 1
