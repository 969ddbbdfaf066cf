"""What the processes were told, compared with what is there: nothing lost, nothing half, one reader at a time."""

import json
import os
from collections import defaultdict
from typing import Any

from windlass.fleet.mailbox.mail_names import parse
from windlass.fleet.store.durable_files import is_unfinished

from .mailbox_workers import PROJECT, RECEIVER, Plan, read_report

Line = dict[str, Any]


def lines(plan: Plan) -> list[Line]:
    """All reports, by time."""
    found = [{"who": path.name, **line} for path in sorted(plan.reports.iterdir()) for line in read_report(path)]
    return sorted(found, key=lambda line: float(line["at"]))


def violations(plan: Plan, told: list[Line]) -> list[str]:
    problems = [f"a process failed: {line['error']}" for line in told if line["what"] == "failed"]
    return problems + _lost(plan, told) + _numbers(told) + _claims(plan, told) + _left(plan) + _sessions(plan, told)


def _of(told: list[Line], what: str) -> list[Line]:
    return [line for line in told if line["what"] == what]


def _lost(plan: Plan, told: list[Line]) -> list[str]:
    """Every message that a writer was told is safe was read; and what was read is what was written."""
    got = {line["id"] for line in _of(told, "got")}
    safe = {line["id"] for line in _of(told, "told")}
    problems = [f"I23: {mail_id} was delivered and never read" for mail_id in sorted(safe - got)]
    problems += [
        f"I23: {line['id']} was read and is not what was written" for line in _of(told, "got") if not line["right"]
    ]
    if len(safe) != plan.messages:
        problems.append(f"the suite itself: {len(safe)} of {plan.messages} messages were delivered")
    return problems


def _numbers(told: list[Line]) -> list[str]:
    """A number belongs to one message."""
    owners: dict[int, set[str]] = defaultdict(set)
    for line in [*_of(told, "told"), *_of(told, "got")]:
        owners[line["sequence"]].add(line["id"])
    problems = [f"B71: number {number} was given to {ids}" for number, ids in owners.items() if len(ids) > 1]
    for who in {line["who"] for line in _of(told, "told")}:
        numbers = [line["sequence"] for line in _of(told, "told") if line["who"] == who]
        if numbers != sorted(set(numbers)):
            problems.append(f"B71: {who}'s messages are not in the order of their delivery")
    return problems


def _claims(plan: Plan, told: list[Line]) -> list[str]:
    """One reader at a time, the oldest first, and never again after the ack. A token says when its claim was made."""
    problems = []
    ends: dict[int, int] = {}
    first = []
    acked = {line["sequence"]: line["at"] for line in _of(told, "acked")}
    released = {line["token"] for line in _of(told, "releasing")}  # or killed while doing so: it may be free
    claims = {line["token"]: line["sequence"] for line in _of(told, "got")}
    lease_ms = int(plan.lease_seconds * 1000)
    for token in sorted(claims, key=lambda token: int(token.rsplit("-", 1)[1])):
        name = parse(token)
        assert name is not None
        made = name.lease_ends_ms - lease_ms
        if made < ends.get(name.sequence, 0) - 2:  # milliseconds are cut off twice
            problems.append(f"I23: {name.sequence} was claimed by two at the same time")
        ends[name.sequence] = 0 if token in released else name.lease_ends_ms
        if made > acked.get(name.sequence, float("inf")) * 1000 + 2:
            problems.append(f"I23: {name.sequence} was claimed again after its ack")
        if name.attempts == 1:
            first.append((name.lease_ends_ms, name.sequence))
    if [number for _, number in sorted(first)] != sorted(number for _, number in first):
        problems.append("B71: first claims were not made in the order of the numbers")
    return problems


def _left(plan: Plan) -> list[str]:
    """Nothing is left outside tmp/, and the mailbox knows it."""
    directory = plan.store().project_directory(PROJECT) / "mailboxes" / RECEIVER
    problems = [
        f"I23: {place}/ still holds {os.listdir(directory / place)[:3]}"
        for place in ("new", "cur", "corrupt")
        if os.listdir(directory / place)
    ]
    box = plan.mailbox()
    before = box.statistics()
    if os.listdir(directory / "ids"):
        problems.append("B71: ids of messages are kept that are gone")
    box.recover()  # counts anew
    if before != box.statistics():
        problems.append(f"B71: the mailbox counted {before}, and there is {box.statistics()}")
    return problems


def _sessions(plan: Plan, told: list[Line]) -> list[str]:
    """I24 B70: every session is as its last save said, whole, and the indices say the same."""
    store = plan.store()
    store.index(PROJECT)  # opens it
    problems = [f"I24: {name} differed after the end" for name in store.rebuild(PROJECT).mended]
    saved: dict[str, int] = {}
    begun: dict[str, set[int]] = defaultdict(set)
    for line in told:
        if line["what"] == "saved":
            saved[line["id"]] = line["count"]
            begun[line["id"]].clear()
        elif line["what"] == "saving":
            begun[line["id"]].add(line["count"])
    for child, count in saved.items():
        payload = json.loads(bytes(store.load(PROJECT, child).payload))
        if payload["count"] not in {count, *begun[child]} or payload["filling"] != "x" * (payload["count"] % 5000):
            problems.append(f"B70: {child} holds {payload['count']}, and {count} was saved")
    for directory, _, names in os.walk(store.project_directory(PROJECT) / "sessions"):
        problems += [f"B70: {directory}/{name} is half a file" for name in names if is_unfinished(name)]
    return problems
