"""Runs, checked: accepted for good, one at a time, in order, each with exactly one ending (I1-I4, I8)."""

from collections import Counter

from windlass import limits
from windlass.testing.history import History
from windlass.testing.run_record import Records, RunRecord

_FAILED_ENDS = ("failed", "canceled", "RuntimeError", "ExecutorMisbehaved", "CancelledError")


def check_runs(history: History, records: Records) -> None:
    for stored in records.stray:
        history.violate("I3", f"a fact of a run that was never accepted: {stored}")
    for record in records:
        _check_ending(history, record)
        _check_creation(history, record)
        _check_outcome(history, record, records)
        _check_silence(history, record)
    _check_order(history, records)
    _check_bound(history, records)
    _check_calls(history, records)


# -- one run ----------------------------------------------------------------------------------------------------------


def _check_ending(history: History, record: RunRecord) -> None:
    terminals = len(record.terminals)
    completes = [stored for stored in record.facts if stored.row.kind == "run_complete"]
    if terminals == 0:
        history.violate("I1", f"{record} was accepted and never ended")
        return
    if terminals > 1 or len(completes) != 1:
        history.violate("I3", f"{record} ended {terminals} times and was announced {len(completes)} times")
        return
    last = record.facts[-1]
    if last is not completes[0]:
        history.violate("I3", f"{record} was announced, and then came {last}")
    if last.body.get("cancelled", False) != (record.run.state == "canceled"):
        history.violate("I3", f"{record} was announced with {last.body}")
    errors = sum(1 for stored in record.facts if stored.row.kind == "agent_event")
    if errors != (record.run.state == "failed"):
        history.violate("I3", f"{record} has {errors} error events")


def _check_creation(history: History, record: RunRecord) -> None:
    created = sum(1 for stored in record.facts if stored.row.kind == "run" and stored.row.change == "created")
    if created != 1:
        history.violate("I8", f"{record} was created {created} times")
    bodies = {
        (ask.arguments["session"], ask.arguments["prompt"], ask.arguments["on_busy"])
        for ask in record.asks
        if ask.status == "answered"
    }
    if len(bodies) > 1:
        history.violate("I8", f"different prompts were answered with {record}: {bodies}")


def _check_outcome(history: History, record: RunRecord, records: Records) -> None:
    """It ended as its executor did, unless it was cancelled or the server stopped."""
    terminal, started, state = record.terminal, record.started, record.run.state
    if terminal is None or state == "canceled":
        return
    owner = record.taken_by or record.id
    steps = [step for step in history.steps if step.kind == "end" and step.belongs_to(record.session, owner)]
    ends = [step.detail for step in steps]
    if started is None:
        history.violate("I4", f"{record} ended without having started")
    elif state == "interrupted":
        if not any(record.asked <= stop <= terminal.at for stop in history.stops):
            history.violate("I3", f"{record} was interrupted by nothing")
    elif state == "completed" and not any(step.detail == "completed" and not step.told for step in steps):
        # One that was told to stop has not completed, whatever it says: its words were dropped from then on.
        history.violate("I3", f"{record} completed, but its executor ended {ends}")
    elif state == "failed" and not any(end in _FAILED_ENDS for end in ends):
        history.violate("I3", f"{record} failed, but its executor ended {ends}")
    taker = records.find(record.ledger.id, record.taken_by, terminal.at) if record.taken_by else None
    if taker is not None and taker.run.state != state and taker.run.state != "canceled":
        history.violate("I7", f"{record} did not share the end of {taker}, which took it")


def _check_silence(history: History, record: RunRecord) -> None:
    """After a cancel covers it, a run writes nothing but its ending (I5)."""
    flagged, terminal = record.flagged, record.terminal
    if flagged is None or terminal is None:
        return
    for stored in record.facts:
        if stored.row.seq <= flagged.stored.row.seq or stored.row.kind == "run":
            continue
        ends = ("permission_notification", "question_batch_notification")
        outcome = stored.body.get("outcome") if stored.row.kind in ends else ""
        if outcome not in ("", "withdrawn"):
            history.violate("I5", f"{record} was cancelled at #{flagged.stored.row.seq}, and then came {stored}")
        if outcome == "" and stored.row.time != terminal.stored.row.time:
            history.violate("I5", f"{record} was cancelled at #{flagged.stored.row.seq}, and then came {stored}")


# -- many runs --------------------------------------------------------------------------------------------------------


def _check_order(history: History, records: Records) -> None:
    """At most one at a time, in the order they were accepted (I2, I4)."""
    running: dict[tuple[str, str], set[str]] = {}
    newest: Counter[tuple[str, str]] = Counter()
    facts = [(record, fact) for record in records for fact in record.states]
    for record, fact in sorted(facts, key=lambda pair: pair[1].at):
        lane, run = (record.ledger.id, record.session), fact.run
        active = running.setdefault(lane, set())
        if run.is_terminal:
            active.discard(record.id)
        elif run.state in ("running", "waiting") and not run.into and record.id not in active:
            if active:
                history.violate("I2", f"{record} started while {active} was running")
            if record.number < newest[lane]:
                history.violate("I4", f"{record} started after #{newest[lane]}")
            active.add(record.id)
            newest[lane] = record.number


def _check_bound(history: History, records: Records) -> None:
    """No session ever has more runs that are not over than it may."""
    waiting: dict[tuple[str, str], set[str]] = {}
    facts = [(record, fact) for record in records for fact in record.states]
    for record, fact in sorted(facts, key=lambda pair: pair[1].stored.row.seq):
        lane = waiting.setdefault((record.ledger.id, record.session), set())
        if fact.run.is_terminal:
            lane.discard(record.id)
        else:
            lane.add(record.id)
        if len(lane) > limits.QUEUE_PER_SESSION:
            history.violate("bound", f"{record} was accepted into a full queue: {sorted(lane)}")
            return


def _check_calls(history: History, records: Records) -> None:
    """Nothing is done for a run before its start is on disk (B04)."""
    for step in history.steps:
        if step.kind != "model":
            continue
        mine = [record for record in records if step.belongs_to(record.session, record.id)]
        if not any(record.started is not None and record.started.at < step.at for record in mine):
            history.violate("B04", f"{step} before its start was on disk")
