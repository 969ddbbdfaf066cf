"""Families, checked: nothing that a run started goes on without it, and every level ends before the one above it."""

from windlass.testing.history import History
from windlass.testing.run_record import Records, RunRecord


def check_families(history: History, records: Records) -> None:
    for record in records:
        parent = _parent(record, records)
        if record.parent_run and parent is None:
            history.violate("family", f"{record} is an agent's run of {record.parent_run}, which is not on disk")
        if parent is not None:
            _check_order(history, record, parent)
            _check_covered(history, record, parent)
            _check_silent(history, record, parent)


def ended_with_parent(record: RunRecord, records: Records) -> bool:
    """Whether a cancel that no client asked for comes from the run above: it ended, or cancelled its agent."""
    parent = _parent(record, records)
    if parent is None or record.flagged is None:
        return False
    steps = [step for step in records.history.steps if step.belongs_to(parent.session, parent.id)]
    cancelled = any(step.kind == "agent" and step.detail == f"cancel {record.session}" for step in steps)
    flagged = parent.flagged is not None and record.flagged.at <= parent.flagged.at
    ended = any(step.kind == "end" for step in steps)
    stopped = any(parent.created.at < stop for stop in records.history.stops)
    above = ended_with_parent(parent, records)
    return cancelled or flagged or ended or stopped or above


def _parent(record: RunRecord, records: Records) -> RunRecord | None:
    if not record.parent_run:
        return None
    return records.find(record.ledger.id, record.parent_run, record.created.at)


def _check_order(history: History, record: RunRecord, parent: RunRecord) -> None:
    """What was going on ends before its parent does, and what waited then never starts."""
    if record.terminal is None or parent.terminal is None or record.started is None:
        return
    if record.terminal.at > parent.terminal.at:
        history.violate("family", f"{record} ended after {parent}, which had started it")


def _check_covered(history: History, record: RunRecord, parent: RunRecord) -> None:
    """A cancel of the parent covers it in the same commit."""
    if parent.flagged is None or record.terminal is None or record.created.at > parent.flagged.at:
        return
    over = record.terminal.at < parent.flagged.at
    flagged = record.flagged is not None and record.flagged.at <= parent.flagged.at
    if not over and not flagged:
        history.violate("family", f"{parent} was cancelled, and {record} below it was not")


def _check_silent(history: History, record: RunRecord, parent: RunRecord) -> None:
    """Nothing is started for a run that was cancelled."""
    if parent.flagged is not None and record.created.at > parent.flagged.at:
        history.violate("family", f"{record} was started by {parent} after its cancel")
