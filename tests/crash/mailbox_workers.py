"""The processes of the mailbox's crash suite: writers that deliver and save, readers that claim and acknowledge.

Each may be killed at any moment, and often kills itself in the middle of an operation: a kill from outside nearly
always finds a process waiting for the disk, and seldom between two renames. What they were told they write down, one
line each, before they go on: a line that is there happened.
"""

import json
import os
import random
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from windlass.errors import Unavailable
from windlass.fleet.mailbox.mail_names import since_boot
from windlass.fleet.mailbox.mailbox import Mailbox
from windlass.fleet.mailbox.mailbox_errors import ClaimLost, MailboxFull
from windlass.fleet.mailbox.mailbox_shapes import MailboxBounds
from windlass.fleet.store.store import Store
from windlass.wire.agents import AgentSession, Mail, MailFrom

PROJECT = Path("/crash/project")
RECEIVER = "receiver"
BOUNDS = MailboxBounds(messages=40, attempts=100_000)  # a small mailbox, so that it is full now and then
_MINED = ("open", "write", "fsync", "fdatasync", "link", "rename", "replace", "unlink", "mkdir", "pwrite")
_write, _open = os.write, os.open


@dataclass(frozen=True)
class Plan:
    root: Path
    messages: int = 10_000
    writers: int = 8
    readers: int = 2
    claims: int = 4  # outstanding, of each reader
    lease_seconds: float = 2.0
    mine: float = 1 / 500  # the share of system calls at which a process kills itself
    saves: int = 10  # a session is saved after so many messages

    @property
    def reports(self) -> Path:
        return self.root / "reports"

    def store(self) -> Store:
        return Store(self.root / "agents")

    def mailbox(self) -> Mailbox:
        return self.store().mailbox(PROJECT, RECEIVER, BOUNDS)


def body(mail_id: str) -> dict[str, Any]:
    """What a message must say, by its id; some are longer than a page of memory."""
    return {"id": mail_id, "text": mail_id * (1 + 997 * (len(mail_id) + ord(mail_id[-1])) % 1500)}


class Report:
    """A process's own account. Written past the mines: it must not die of writing that it lives."""

    def __init__(self, path: Path) -> None:
        self._descriptor = _open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def add(self, what: str, **details: Any) -> None:
        _write(self._descriptor, json.dumps({"what": what, "at": since_boot(), **details}).encode() + b"\n")


def read_report(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def lay_mines(share: float, seed: str, report: Report) -> None:
    """From now on this process kills itself right before or after some of its system calls."""
    dice = random.Random(seed)
    for name in _MINED:
        setattr(os, name, _mined(getattr(os, name), name, share, dice, report))


def _mined(
    plain: Callable[..., Any], name: str, share: float, dice: random.Random, report: Report
) -> Callable[..., Any]:
    def step(*arguments: Any, **options: Any) -> Any:
        chance = dice.random() / share
        if chance < 1:
            report.add("mine", call=name)
            if chance < 0.5:
                os.kill(os.getpid(), signal.SIGKILL)
        result = plain(*arguments, **options)
        if chance < 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return step


def write(plan: Plan, number: int, seed: str) -> None:
    """Deliver this writer's messages, from the first that it was not told is safe."""
    path = plan.reports / f"writer-{number}"
    told = {line["id"] for line in read_report(path) if line["what"] == "told"}
    report = Report(path)
    box, store = plan.mailbox(), plan.store()
    lay_mines(plan.mine, seed, report)
    dice = random.Random(seed + "pace")
    for count in range(number, plan.messages, plan.writers):
        mail_id = f"w{number}-{count}"
        if mail_id in told:
            continue
        if (count // plan.writers) % plan.saves == 0:
            _save(store, number, count, report)
        mail = Mail(id=mail_id, sender=MailFrom(f"w{number}"), kind="task", body=body(mail_id), created_at=count)
        report.add("told", id=mail_id, sequence=_deliver(box, mail, report, dice))
    report.add("done")


def _deliver(box: Mailbox, mail: Mail, report: Report, dice: random.Random) -> int:
    while True:
        try:
            return box.deliver(mail)
        except MailboxFull:
            report.add("full")
            time.sleep(dice.uniform(0.01, 0.1))


def _save(store: Store, number: int, count: int, report: Report) -> None:
    child = f"child-{number}-{count % 7}"
    payload = msgspec.Raw(msgspec.json.encode({"count": count, "filling": "x" * (count % 5000)}))
    report.add("saving", id=child, count=count)
    store.save(
        PROJECT, child, AgentSession("agent", "running", updated_at=count, payload=payload), parent=f"top-{number}"
    )
    report.add("saved", id=child, count=count)


def read(plan: Plan, number: int, seed: str) -> None:
    """Claim and acknowledge until the parent says that there will be no more."""
    report = Report(plan.reports / f"reader-{number}")
    box = plan.mailbox()
    lay_mines(plan.mine, seed, report)
    dice = random.Random(seed + "pace")
    while True:
        last = (plan.root / "no-more").exists()
        claims = box.claim(plan.claims, plan.lease_seconds)
        for claim in claims:
            right = claim.mail.body == body(claim.mail.id)
            report.add("got", id=claim.mail.id, sequence=claim.sequence, token=claim.token, right=right)
        for claim in claims:
            try:
                if dice.random() < 0.03:
                    report.add("releasing", token=claim.token)
                    box.release(claim)
                else:
                    box.ack(claim)
                    report.add("acked", token=claim.token, sequence=claim.sequence)
            except ClaimLost:
                report.add("lost", token=claim.token)
        if not claims:
            if last and box.statistics().claimed == 0 and not box.list(1):
                break
            time.sleep(0.01)
    report.add("done")


def child(work: Callable[[Plan, int, str], None], plan: Plan, number: int, seed: str) -> int:
    """Start one of the above in a process of its own; returns its id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work(plan, number, seed)
        code = 0
    except Unavailable as error:
        Report(plan.reports / "failures").add("failed", error=str(error))
    except BaseException:  # the border of a process: what it died of is a finding
        Report(plan.reports / "failures").add("failed", error=traceback.format_exc())
    finally:
        os._exit(code)
    return 0
