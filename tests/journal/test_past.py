"""What was: a run's facts in order and within bounds, and the workspaces that were ever open."""

import pytest

from tests.journal.conftest import new_log
from tests.journal.facts import message_fact, run_fact, session_fact
from tests.journal.two_workspaces import Two, two_workspaces
from windlass import limits
from windlass.journal import past
from windlass.journal.journal import Journal
from windlass.journal.log import Log

Seen = tuple[float, str, str, int]


@pytest.fixture
async def log(log: Log) -> Log:
    """With three messages of one run, and one fact that is no run's."""
    await log.durable(log.append([session_fact(), *(message_fact(f"m{number}", "words") for number in range(3))]))
    return log


def seen(time: float, kind: str, change: str, body: bytes) -> Seen:
    return time, kind, change, len(body)


async def facts_of_run(journal: Journal, log: Log) -> tuple[list[Seen], bool]:
    found: tuple[list[Seen], bool] = await journal.read(past.run_facts, log.workspace_id, "s1", "r1", seen)
    return found


async def test_a_runs_facts_are_told_in_order_and_no_others(journal: Journal) -> None:
    """A timeline would show another run's time, or another workspace's."""
    two: Two = await two_workspaces(journal)

    def words(time: float, kind: str, change: str, body: bytes) -> str | None:
        return body.decode() if kind == "message" else None

    texts, is_all = await two.read(past.run_facts, "s1", "r1", words)
    expected = ("here asked", "here answered", "here asked again", "here answers")
    assert is_all and len(texts) == 4
    assert all(f'"{text}"' in body for text, body in zip(expected, texts, strict=True))
    (elsewhere,), _ = await two.read(past.run_facts, "s2", "r1", words)
    assert "here elsewhere" in elsewhere


async def test_as_many_facts_as_may_be_are_all_and_one_more_is_not(
    journal: Journal, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is longer than what is looked at would be told as if it ended there."""
    whole, is_all = await facts_of_run(journal, log)
    assert len(whole) == 3 and is_all
    monkeypatch.setattr(limits, "TIMELINE_FACTS", 3)
    assert await facts_of_run(journal, log) == (whole, True)
    monkeypatch.setattr(limits, "TIMELINE_FACTS", 2)
    assert await facts_of_run(journal, log) == (whole[:2], False)


async def test_as_many_bytes_as_may_be_are_all_and_one_more_is_not(
    journal: Journal, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of large messages would fill the memory."""
    whole, _ = await facts_of_run(journal, log)
    size = sum(length for *_, length in whole)
    monkeypatch.setattr(limits, "TIMELINE_BYTES", size)
    assert await facts_of_run(journal, log) == (whole, True)
    monkeypatch.setattr(limits, "TIMELINE_BYTES", size - 1)
    assert await facts_of_run(journal, log) == (whole[:2], False)


async def test_what_decoding_leaves_out_does_not_count(
    journal: Journal, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run with many facts that no timeline shows would be cut off for them."""
    monkeypatch.setattr(limits, "TIMELINE_FACTS", 1)
    await log.durable(log.append([run_fact()]))

    def runs_only(time: float, kind: str, change: str, body: bytes) -> str | None:
        return kind if kind == "run" else None

    assert await journal.read(past.run_facts, log.workspace_id, "s1", "r1", runs_only) == (["run"], True)


async def test_workspaces_are_told_with_the_latest_used_first(
    journal: Journal, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One would look for today's project among all that were ever opened."""
    other = await new_log(journal, "/other")
    await other.durable(other.append([session_fact()]))
    untouched = await new_log(journal, "/untouched")
    found = {known.path: known for known in await journal.read(past.known_workspaces)}
    assert set(found) == {"/some/project", "/other", "/untouched"}
    assert found["/untouched"].last == 0.0 and found["/untouched"].id == untouched.workspace_id
    assert found["/other"].last >= found["/some/project"].last > 0
    await log.durable(log.append([session_fact()]))
    monkeypatch.setattr(limits, "KNOWN_WORKSPACES", 1)
    assert [known.path for known in await journal.read(past.known_workspaces)] == ["/some/project"]
    for each in (other, untouched):
        each.close()
