"""Permissions, checked: asked once, settled once, by the one who was told so; no tool runs without one (I9-I11)."""

from collections import Counter
from fnmatch import fnmatchcase

import msgspec

from windlass.testing.history import Ask, History
from windlass.testing.ledger import Ledger, Stored
from windlass.testing.run_record import Records
from windlass.wire.permissions import PermissionPrivate

_ALLOWED_TOOLS = ("view",)  # by a rule: nobody is asked, but that it was allowed is on disk
_FORBIDDEN_TOOLS = ("forbidden",)  # denied by a rule, whatever else was granted
_decode = msgspec.json.Decoder(PermissionPrivate).decode


def check_permissions(history: History, records: Records) -> None:
    for ledger in history.ledgers.values():
        settled = _settled(ledger)
        _check_requests(history, ledger, records, settled)
        _check_answers(history, ledger, settled)
    _check_tools(history)


def _settled(ledger: Ledger) -> dict[str, list[Stored]]:
    """By request: the notifications that ended it."""
    found: dict[str, list[Stored]] = {}
    for stored in ledger.facts:
        if stored.row.kind == "permission_notification" and stored.body["outcome"] != "asked":
            found.setdefault(stored.body["id"], []).append(stored)
    return found


def _check_requests(history: History, ledger: Ledger, records: Records, settled: dict[str, list[Stored]]) -> None:
    for stored in ledger.facts:
        if stored.row.kind != "permission_request":
            continue
        id = stored.body["id"]
        before = ledger.facts[stored.row.seq - 2]
        if before.row.kind != "permission_notification" or before.body["id"] != id:
            history.violate("I9", f"the request {id} was not announced right before it")
        ends = settled.get(id, [])
        if len(ends) != 1:
            history.violate("I9", f"the request {id} was settled {len(ends)} times")
            continue
        record = records.find(ledger.id, stored.row.run, stored.at)
        if record is None or record.terminal is None or ends[0].row.seq > record.terminal.stored.row.seq:
            history.violate("I11", f"the request {id} outlived {record}")


def _check_answers(history: History, ledger: Ledger, settled: dict[str, list[Stored]]) -> None:
    winners: Counter[str] = Counter()
    asks = [ask for ask in history.asks if ask.kind == "answer" and ask.arguments["workspace"] == ledger.id]
    for ask in asks:
        if ask.status != "answered":
            continue
        ends = settled.get(ask.arguments["permission"], [])
        if ask.answer:
            winners[ask.arguments["permission"]] += 1
            _check_winner(history, ask, ends)
        elif ends and ends[0].at > ask.answered:
            history.violate("I12", f"{ask} was told it lost, before what it lost to was on disk")
    for id, count in winners.items():
        if count > 1:
            history.violate("I9", f"{count} callers were told that they settled {id}")
    for id, ends in settled.items():
        by = ends[0].body["by"].get("client_id", "")
        if by and ends[0].body["outcome"] in ("granted", "denied") and not any(_may_be(ask, id, by) for ask in asks):
            history.violate("I9", f"{id} was settled by {by}, who was told otherwise")


def _check_winner(history: History, ask: Ask, ends: list[Stored]) -> None:
    wanted = "denied" if ask.arguments["action"] == "deny" else "granted"
    if not ends or ends[0].at > ask.answered:
        history.violate("I12", f"{ask} was told it won, before that was on disk")
    elif ends[0].body["outcome"] != wanted or ends[0].body["by"].get("client_id") != ask.client_id:
        history.violate("I9", f"{ask} was told it won, but the disk says {ends[0].body}")


def _may_be(ask: Ask, permission_id: str, client_id: str) -> bool:
    if ask.arguments["permission"] != permission_id or ask.client_id != client_id:
        return False
    return ask.answer is True or ask.status in ("lost", "given up") or ask.refusal.startswith("JournalPoisoned")


# -- tools ------------------------------------------------------------------------------------------------------------


def _check_tools(history: History) -> None:
    """A tool runs only after an allow for exactly that is on disk (I10), and never after the run was told to stop."""
    asked = {step.detail.split()[0]: step for step in history.steps if step.kind == "ask"}
    notifications: dict[str, list[Stored]] = {}
    for ledger in history.ledgers.values():
        for stored in ledger.facts:
            if stored.row.kind == "permission_notification" and stored.body["outcome"] != "asked":
                notifications.setdefault(stored.body["tool_call_id"], []).append(stored)
    for step in history.steps:
        if step.kind != "tool":
            continue
        if step.told:
            history.violate("I5", f"a tool ran in a run that was told to stop: {step}")
        _, tool, resource = asked[step.detail].detail.split(maxsplit=2)
        decisions = [stored for stored in notifications.get(step.detail, []) if stored.at < step.at]
        if tool in _FORBIDDEN_TOOLS:
            history.violate("I10", f"{step} ran, which a rule forbids")
        if [stored.body["outcome"] for stored in decisions] != ["granted"]:
            history.violate("I10", f"{step} ran after {[stored.body['outcome'] for stored in decisions]}")
        elif (decisions[0].body["by"]["name"] == "policy") != (tool in _ALLOWED_TOOLS):
            history.violate("I10", f"{step} ran by a rule that there is not")
        elif decisions[0].body["by"]["name"] == "grant" and not _was_granted(history, decisions[0], tool, resource):
            history.violate("I10", f"{step} ran by a grant that nobody gave")


def _was_granted(history: History, used: Stored, tool: str, resource: str) -> bool:
    """Whether someone allowed this for the rest of this session, before it was used: exactly, or by the pattern that is
    said to cover it."""
    line = _lineage(history.ledgers[used.row.workspace], used.row.session)
    pattern = used.body["pattern"]
    if pattern and not fnmatchcase(resource, pattern):
        return False
    for stored in history.ledgers[used.row.workspace].facts[: used.row.seq - 1]:
        row = stored.row
        if row.kind != "permission_notification" or row.session not in line or row.private is None:
            continue
        grant = _decode(row.private)
        same = pattern == grant.pattern if pattern else resource == grant.resource and not grant.pattern
        if grant.granted and (grant.tool, grant.action) == (tool, "execute") and same:
            return True
    return False


def _lineage(ledger: Ledger, session: str) -> set[str]:
    """The session and those above it: a sub-agent may do what its parents were granted."""
    parents = {
        stored.row.session: stored.body["parent_session_id"]
        for stored in ledger.facts
        if stored.row.kind == "session" and stored.row.change == "created" and stored.body
    }
    line: set[str] = set()
    while session and session not in line:
        line.add(session)
        session = parents.get(session, "")
    return line
