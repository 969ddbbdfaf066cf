"""Questions, checked: asked once, ended once, by the one who was told so, and told to their asker as they ended."""

from collections import Counter

from windlass.testing.history import Ask, History
from windlass.testing.ledger import Ledger, Stored
from windlass.testing.run_record import Records

_BY_PEOPLE = {"answer_questions": "answered", "cancel_questions": "canceled"}  # what is asked -> how a batch ends by it


def check_questions(history: History, records: Records) -> None:
    for ledger in history.ledgers.values():
        ends = _ends(ledger)
        _check_batches(history, ledger, records, ends)
        _check_people(history, ledger, ends)
        _check_states(history, ledger)
    _check_askers(history)


def _ends(ledger: Ledger) -> dict[str, list[Stored]]:
    """By batch: the notifications that ended it."""
    found: dict[str, list[Stored]] = {}
    for stored in ledger.facts:
        if stored.row.kind == "question_batch_notification":
            found.setdefault(stored.body["batch_id"], []).append(stored)
    return found


def _check_batches(history: History, ledger: Ledger, records: Records, ends: dict[str, list[Stored]]) -> None:
    for stored in ledger.facts:
        if stored.row.kind != "question_batch_request":
            continue
        ended = ends.get(stored.body["id"], [])
        if len(ended) != 1 or ended[0].row.seq < stored.row.seq:
            history.violate("I9", f"the batch {stored.body['id']} ended {len(ended)} times")
            continue
        record = records.find(ledger.id, stored.row.run, stored.at)
        if record is None or record.terminal is None or ended[0].row.seq > record.terminal.stored.row.seq:
            history.violate("I11", f"the batch {stored.body['id']} outlived {record}")


# -- what people were told --------------------------------------------------------------------------------------------


def _check_people(history: History, ledger: Ledger, ends: dict[str, list[Stored]]) -> None:
    winners: Counter[str] = Counter()
    asks = [ask for ask in history.asks if ask.kind in _BY_PEOPLE and ask.arguments["workspace"] == ledger.id]
    for ask in asks:
        if ask.status == "answered":
            winners.update(_check_answer(history, ask, ends))
    for id, count in winners.items():
        if count > 1:
            history.violate("I9", f"{count} callers were told that they ended {id}")
    for id, ended in ends.items():
        by = ended[0].body["by"].get("client_id", "")
        if ended[0].body["outcome"] in _BY_PEOPLE.values() and not any(_may_be(ask, id, by, ended[0]) for ask in asks):
            history.violate("I9", f"{id} was ended by {by}, who was told otherwise")


def _check_answer(history: History, ask: Ask, ends: dict[str, list[Stored]]) -> list[str]:
    """The batches that this caller was told it ended."""
    batch, told = ask.arguments["batch"], ask.answer
    if ask.arguments.get("fits") is False and told:
        history.violate("B28", f"{ask} was told that an answer counts which does not fit")
    mine = [id for id, ended in ends.items() if _is_by(ask, ended[0]) and batch in ("", id)]
    if told and not mine:
        history.violate("I9", f"{ask} was told it decided, but the disk does not say so")
    if told and batch and any(ends[id][0].at > ask.answered for id in mine):
        history.violate("I12", f"{ask} was told it decided, before that was on disk")
    ended = ends.get(batch, [])
    if not told and ended and ended[0].at > ask.answered:
        history.violate("I12", f"{ask} was told it lost, before what it lost to was on disk")
    return [batch] if told and batch else []


def _is_by(ask: Ask, end: Stored) -> bool:
    by = end.body["by"].get("client_id", "")
    return bool(end.body["outcome"] == _BY_PEOPLE[ask.kind] and by == ask.client_id)


def _may_be(ask: Ask, batch: str, client_id: str, end: Stored) -> bool:
    if ask.arguments["batch"] not in ("", batch) or ask.client_id != client_id or not _is_by(ask, end):
        return False
    return ask.answer is True or ask.status in ("lost", "given up") or ask.refusal.startswith("JournalPoisoned")


# -- what runs say of themselves, and what askers were told -----------------------------------------------------------


def _check_states(history: History, ledger: Ledger) -> None:
    """A run that goes on has nothing pending, of either kind (B15)."""
    waiting: dict[str, set[str]] = {}
    for stored in ledger.facts:
        kind, run, body = stored.row.kind, waiting.setdefault(stored.row.run, set()), stored.body
        if kind in ("permission_request", "question_batch_request"):
            run.add(body["id"])
        elif kind == "permission_notification" and body["outcome"] != "asked":
            run.discard(body["id"])
        elif kind == "question_batch_notification":
            run.discard(body["batch_id"])
        elif kind == "run" and body["state"] == "running" and run:
            history.violate("B15", f"{stored} says that it goes on, but {sorted(run)} wait for an answer")


def _check_askers(history: History) -> None:
    """Whoever asked is told how it ended, after that is on disk; and after a stop never of an answer (I5)."""
    batches: dict[str, tuple[Stored, list[Stored]]] = {}
    for ledger in history.ledgers.values():
        ends = _ends(ledger)
        for stored in ledger.facts:
            if stored.row.kind == "question_batch_request":
                batches[stored.body["tool_call_id"]] = stored, ends.get(stored.body["id"], [])
    for step in history.steps:
        if step.kind != "question":
            continue
        call, outcome = step.detail.split()
        asked, ended = batches.get(call, (None, []))
        if step.told and outcome != "withdrawn":
            history.violate("I5", f"an asker that was told to stop was told of an answer: {step}")
        if outcome not in ("withdrawn", "refused") and not (ended and ended[0].at < step.at):
            history.violate("I12", f"{step}, before that was on disk")
        elif outcome not in ("withdrawn", "refused") and ended[0].body["outcome"] != outcome:
            history.violate("I9", f"{step}, but it ended {ended[0].body['outcome']}")
        if outcome == "refused" and asked is not None:
            history.violate("I9", f"{step}, but it was asked: {asked}")
