"""Cancels and answers, checked: a run is cancelled if and only if someone asked for it, and nobody is told too early.

An answer holds when what it says was on disk by then (I12) and comes true (I1, I5, I6).
"""

from windlass import limits
from windlass.testing.check_families import ended_with_parent
from windlass.testing.history import Ask, History
from windlass.testing.run_record import Records, RunRecord

_SESSION_CANCELS = ("cancel", "clear", "delete")
_RUN_CANCELS = ("cancel_run", "remove")


def check_cancels(history: History, records: Records) -> None:
    for record in records:
        if record.run.state == "canceled":
            _check_cause(history, record, records)
            _check_stopped(history, record)
    for ask in history.asks:
        _check_answer(history, ask, records)
    _check_steps(history, records)


def _check_cause(history: History, record: RunRecord, records: Records) -> None:
    """Somebody must have asked for it, and not before the run was even sent (I5, I6)."""
    causes = [ask for ask in history.asks if _may_cancel(ask, record)]
    taker = records.find(record.ledger.id, record.taken_by, record.created.at) if record.taken_by else None
    if causes or ended_with_parent(record, records):
        return
    if taker is None or taker.run.state != "canceled":
        history.violate("I5", f"{record} was cancelled, and nobody asked for that after it was sent")


def _check_stopped(history: History, record: RunRecord) -> None:
    """What was going on is stopped: it ends when it obeys, or when it is given up, and not when it likes (I5)."""
    started, flagged, terminal = record.started, record.flagged, record.terminal
    if started is None or flagged is None or terminal is None or record.taken_by or started.at > flagged.at:
        return
    seconds = terminal.stored.row.time - flagged.stored.row.time
    if terminal.stored.life == flagged.stored.life and seconds > _stop_seconds():
        history.violate("I5", f"{record} went on for {seconds:.2f} s after its cancel")


def _stop_seconds() -> float:
    return limits.STOP_ASK_SECONDS + limits.STOP_ABORT_SECONDS + 0.05


def _may_cancel(ask: Ask, record: RunRecord) -> bool:
    terminal = record.terminal
    if ask.arguments.get("workspace") != record.ledger.id or terminal is None or ask.asked > terminal.at:
        return False
    if ask.status == "answered" and ask.answered < record.asked:
        return False
    if ask.status == "refused" and not ask.refusal.startswith("JournalPoisoned"):
        return False
    if ask.kind in _RUN_CANCELS:
        return bool(ask.arguments["run_id"] == record.id)
    interrupts = ask.kind == "prompt" and ask.arguments["on_busy"] == "interrupt" and ask not in record.asks
    return (ask.kind in _SESSION_CANCELS or interrupts) and bool(ask.arguments["session"] == record.session)


def _check_answer(history: History, ask: Ask, records: Records) -> None:
    """What a caller was told is on disk by then, and comes true."""
    if ask.status == "refused" and ask.refusal.startswith("Conflict: This session is busy"):
        _check_refusal(history, ask, records)
    if ask.status == "refused" and ask.refusal.startswith("Conflict: This run is already running"):
        record = records.find(ask.arguments["workspace"], ask.arguments["run_id"], ask.answered)
        if record is None or record.started is None or record.started.at > ask.answered:
            history.violate("I12", f"{ask} was told that it runs, before that was on disk")
    if ask.status != "answered":
        return
    match ask.kind:
        case "prompt":
            _check_told_state(history, ask, ask.answer.run_id, ask.answer.state, records)
        case "cancel" | "clear":
            _check_covered(history, ask, records)
        case "cancel_run" | "remove" | "run":
            state = ask.answer.state if ask.kind == "run" else ask.answer
            record = _check_told_state(history, ask, ask.arguments["run_id"], state, records)
            ended = state in ("completed", "failed", "interrupted")
            if record is not None and ask.kind != "run" and not ended and record.run.state != "canceled":
                history.violate("I5", f"{ask} was answered {state}, but {record} went on")


def _check_refusal(history: History, ask: Ask, records: Records) -> None:
    """A refusal rests on something too: here on a run that is there."""
    busy = any(
        record.created.at < ask.answered and (record.terminal is None or record.terminal.at > ask.asked)
        for record in records.of_session(ask.arguments["workspace"], ask.arguments["session"])
    )
    if not busy:
        history.violate("I12", f"{ask} was refused as busy, but no run on disk was open then")


def _check_told_state(history: History, ask: Ask, run_id: str, state: str, records: Records) -> RunRecord | None:
    record = records.find(ask.arguments["workspace"], run_id, ask.answered)
    if record is None:
        history.violate("I1", f"{ask} was answered with {run_id}, which is not on disk")
        return None
    known = [fact for fact in record.states if fact.at < ask.answered]
    window = [fact.run.state for fact in known if fact.at > ask.asked] + [
        fact.run.state for fact in known if fact.at <= ask.asked
    ][-1:]
    if state not in window:
        history.violate("I12", f"{ask} was told {state}, but on disk {record} was {window}")
    return record


def _check_covered(history: History, ask: Ask, records: Records) -> None:
    workspace_id, session = ask.arguments["workspace"], ask.arguments["session"]
    for run_id in ask.answer:
        record = records.find(workspace_id, run_id, ask.answered)
        if record is None or record.session != session:
            history.violate("I12", f"{ask} covers {run_id}, which is not on disk")
        elif record.run.state != "canceled":
            history.violate("I5", f"{ask} covers {record}, which went on")
        elif record.flagged is None or record.flagged.at > ask.answered:
            history.violate("I12", f"{ask} covers {record}, which is not on disk")
    for record in records.of_session(workspace_id, session) if ask.kind == "cancel" else ():
        accepted = any(prompt.status == "answered" and prompt.answered < ask.asked for prompt in record.asks)
        ended = record.terminal is not None and record.terminal.at < ask.answered
        if accepted and not ended and record.id not in ask.answer:
            history.violate("I5", f"{ask} did not cover {record}, which was accepted before and was not over")


def _check_steps(history: History, records: Records) -> None:
    """A covered run calls no model and no tool after the cancel was answered (I5)."""
    for ask in history.asks:
        if ask.status != "answered" or ask.kind not in ("cancel", "clear", "cancel_run", "remove"):
            continue
        run_ids = ask.answer if ask.kind in ("cancel", "clear") else [ask.arguments["run_id"]]
        found = [records.find(ask.arguments["workspace"], run_id, ask.answered) for run_id in run_ids]
        covered = {(record.session, record.id) for record in found if record is not None}
        for step in history.steps:
            if step.at > ask.answered and (step.session, step.run_id) in covered and step.kind in ("model", "tool"):
                history.violate("I5", f"{ask} was answered, and then {step}")
