"""Two workspaces in one journal that use the same ids for different things, as clients that choose their ids may."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from tests.journal.conftest import new_log
from tests.journal.facts import (
    answer_fact,
    batch_end_fact,
    batch_fact,
    file_fact,
    message_fact,
    question_fact,
    run_fact,
    session_fact,
    skip_fact,
)
from windlass.journal.journal import Journal
from windlass.journal.log import Log
from windlass.wire.events import Fact


class Two(NamedTuple):
    """`here` is asked about; whatever comes back from `there` is a leak."""

    journal: Journal
    here: Log
    there: Log

    async def read(self, query: Callable[..., Any], *arguments: Any) -> Any:
        return await self.journal.read(query, self.here.workspace_id, *arguments)


async def two_workspaces(journal: Journal) -> Two:
    here, there = await new_log(journal, "/here"), await new_log(journal, "/there")
    await there.durable(there.append([*_facts("there"), skip_fact(there.workspace_id, True)]))
    await here.durable(here.append(_facts("here")))
    return Two(journal, here, there)


def _facts(where: str) -> list[Fact]:
    other = 1 if where == "there" else 0  # the other workspace has more of everything
    return [
        session_fact("s1", f"{where} first", at=5),
        session_fact("s2", f"{where} second", at=9),
        session_fact("s3", f"{where} child", parent="s1", at=7),
        session_fact("s4", f"{where} same time", at=5),
        message_fact("m1", f"{where} asked", role="user", number=1, index=0, at=1),
        message_fact("m2", f"{where} answered", done=True, number=1, index=1, at=2),
        message_fact("m3", f"{where} asked again", role="user", number=2, index=0, at=3),
        message_fact("m4", f"{where} answers", number=2, index=1, at=4),
        message_fact("m5", f"{where} elsewhere", role="user", session="s2", number=1, index=0, at=2),
        run_fact("r1", "completed", number=1, order=1),
        run_fact("r2", "running", number=2, order=2),
        run_fact("r3", "queued", number=1 + other, order=3, session="s2"),
        run_fact("r4", "failed", number=2 + other, order=4 + other, session="s2"),
        question_fact("q2", resource=f"{where}-2", run="r2"),
        question_fact("q1", resource=f"{where}-1", run="r2"),
        question_fact("q0", resource=f"{where}-0", run="r2"),
        answer_fact("q0", resource=f"{where}-0", run="r2", remember=True),
        batch_fact("b2", run="r2", question=f"{where}-2"),
        batch_fact("b1", run="r3", session="s2", question=f"{where}-1"),
        batch_fact("b0", run="r2"),
        batch_end_fact("b0", run="r2"),
        file_fact("f1", "a.txt", 1),
        file_fact("f2", "a.txt", 2 + other),
        file_fact("f3", "b.txt", 1, session="s2"),
    ]


def names(bodies: list[bytes], field: str = "id") -> list[str]:
    return [msgspec.json.decode(body)[field] for body in bodies]


def text(body: bytes) -> str:
    found: str = msgspec.json.decode(body)["parts"][0]["data"]["text"]
    return found
