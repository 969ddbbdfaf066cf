"""What a restart finds in the tables: runs, questions, grants, and the numbers that come next."""

import pytest

from tests.journal.facts import answer_fact, file_fact, question_fact, run_fact, session_fact, skip_fact
from tests.journal.two_workspaces import Two, names, two_workspaces
from windlass.journal import view
from windlass.journal.journal import Journal
from windlass.wire.events import ConfigChanged, Fact
from windlass.wire.permissions import By


@pytest.fixture
async def two(journal: Journal) -> Two:
    return await two_workspaces(journal)


def versions(opening: view.Opening) -> dict[tuple[str, str], int]:
    return {place: known.version for place, known in opening.files.items()}


async def test_runs_come_in_the_order_they_were_accepted_and_can_be_filtered(two: Two) -> None:
    """A client would look for its run in the wrong place, or in another session (B16)."""
    everything = await two.read(view.runs, "", "", "", 9)
    assert names(everything) == ["r1", "r2", "r3", "r4"]
    assert names(await two.read(view.runs, "s2", "", "", 9)) == ["r3", "r4"]
    assert names(await two.read(view.runs, "", "running", "", 9)) == ["r2"]
    assert names(await two.read(view.runs, "s2", "queued", "", 9)) == ["r3"]
    assert names(await two.read(view.runs, "", "", "r1", 2)) == ["r2", "r3"]
    assert await two.read(view.runs, "", "", "r9", 2) is None


async def test_a_run_that_changed_keeps_its_place(two: Two) -> None:
    """The queue would be shown in another order after each step of a run."""
    await two.here.durable(two.here.append([run_fact("r1", "canceled", number=1, order=1)]))
    assert names(await two.read(view.runs, "", "", "", 9)) == ["r1", "r2", "r3", "r4"]
    assert names(await two.read(view.runs, "", "completed", "", 9)) == []


async def test_one_run_is_found_with_its_private_half(two: Two) -> None:
    """A prompt that is sent again would be taken for a new one (I8)."""
    body, private = await two.read(view.run, "r4")
    assert (names([body]), private.number, private.order) == (["r4"], 2, 4)
    assert await two.read(view.run, "r9") is None


async def test_a_restart_finds_everything_that_was_not_over(two: Two) -> None:
    """A run that was acknowledged would be forgotten, or one of another project started here (I1)."""
    opening = await two.read(view.opening)
    assert (opening.workspace.id, opening.workspace.path) == (two.here.workspace_id, "/here")
    assert sorted(session.title for session in opening.sessions) == [
        "here child",
        "here first",
        "here same time",
        "here second",
    ]
    assert [(found.run.id, found.private.order) for found in opening.runs] == [("r2", 2), ("r3", 3)]
    assert names(opening.permissions) == ["q2", "q1"]
    assert opening.grants == [("s1", "edit", "write", "here-0", "")]


async def test_a_restart_goes_on_counting_where_it_was(two: Two) -> None:
    """Two runs would have one number, and a cancel of the first would cover the second (R4)."""
    opening = await two.read(view.opening)
    assert (opening.next_numbers, opening.next_order) == ({"s1": 3, "s2": 3}, 5)
    assert versions(opening) == {("s1", "a.txt"): 2, ("s2", "b.txt"): 1}


@pytest.mark.parametrize(
    ("state", "is_open", "other", "other_is_open"),
    [
        ("accepted", True, "waiting", True),
        ("queued", True, "completed", False),
        ("running", True, "interrupted", False),
    ],
)
async def test_a_workspace_is_opened_at_a_start_while_it_has_runs_that_are_not_over(
    journal: Journal, state: str, is_open: bool, other: str, other_is_open: bool
) -> None:
    """Nobody asks for these after a restart, but their runs were acknowledged (I1)."""
    rows = [await journal.workspace_for(path) for path in ("/one", "/two", "/three")]
    for row, wanted in zip(rows, (state, other), strict=False):
        log, _ = await journal.open_log(row.id)
        await log.durable(log.append([run_fact("r1", wanted), run_fact("r2", wanted)]))
    found = await journal.read(view.workspaces_with_open_runs)
    expected = [row.id for row, wanted in zip(rows, (is_open, other_is_open), strict=False) if wanted]
    assert [row.id for row in found] == sorted(expected)
    assert [row.id for row in await journal.read(view.workspaces)] == sorted(row.id for row in rows)


async def test_a_version_of_a_file_that_is_told_again_is_the_same_version(two: Two) -> None:
    """A run that repeats what it wrote would stop the whole journal."""
    await two.here.durable(two.here.append([file_fact("f2", "a.txt", 2), file_fact("f4", "a.txt", 3)]))
    assert versions(await two.read(view.opening)) == {("s1", "a.txt"): 3, ("s2", "b.txt"): 1}


async def test_questions_wait_in_the_order_they_were_asked_until_they_are_answered(two: Two) -> None:
    """People would be asked what was answered long ago, or not what is waiting (B24)."""
    assert names(await two.read(view.permissions)) == ["q2", "q1"]
    await two.here.durable(two.here.append([question_fact("q3"), answer_fact("q2", resource="here-2")]))
    assert names(await two.read(view.permissions)) == ["q1", "q3"]
    assert names(await two.journal.read(view.permissions, two.there.workspace_id)) == ["q2", "q1"]


async def test_an_answer_is_remembered_only_when_it_was_given_for_the_session(two: Two) -> None:
    """A tool would act without asking on a yes that was meant once (I10 B26)."""
    facts = [answer_fact("q1", resource="once"), answer_fact("q2", resource="always", remember=True)]
    await two.here.durable(two.here.append([*facts, facts[1]]))
    grants = (await two.read(view.opening)).grants
    assert sorted(resource for *_, resource, _ in grants) == ["always", "here-0"]


async def test_skipping_questions_is_of_one_workspace(two: Two) -> None:
    """Tools would act unasked in a project where nobody switched asking off (I10)."""
    found = {row.path: row.skip for row in await two.journal.read(view.workspaces)}
    assert found == {"/here": False, "/there": True}
    await two.there.durable(two.there.append([skip_fact(two.there.workspace_id, False)]))
    assert (await two.journal.read(view.workspace_by_path, "/there")).skip is False


async def test_another_change_of_the_config_leaves_skipping_as_it_was(two: Two) -> None:
    """A new model in the config would switch asking back on, or break the log."""
    changed = Fact("config_changed", "updated", ConfigChanged(two.there.workspace_id), By("tester"))
    await two.there.durable(two.there.append([changed]))
    assert (await two.journal.read(view.workspace_by_id, two.there.workspace_id)).skip is True


async def test_a_deleted_session_takes_its_content_along_and_nothing_else(two: Two) -> None:
    """Words people deleted would stay readable, or a deletion would take another conversation with it (B45)."""
    await two.here.durable(two.here.append([session_fact("s1", change="deleted")]))
    assert await two.read(view.messages, "s1") == []
    assert [row.id for row in await two.read(view.messages, "s2")] == ["m5"]
    opening = await two.read(view.opening)
    assert sorted(session.id for session in opening.sessions) == ["s2", "s3", "s4"]
    assert ([found.run.id for found in opening.runs], opening.grants, opening.permissions) == (["r3"], [], [])
    assert versions(opening) == {("s2", "b.txt"): 1}
    there = await two.journal.read(view.opening, two.there.workspace_id)
    assert (len(there.sessions), len(there.runs), len(there.grants)) == (4, 2, 1)
    assert len(await two.journal.read(view.messages, two.there.workspace_id, "s1")) == 4


async def test_facts_of_a_deleted_session_keep_their_numbers_and_lose_their_words(two: Two) -> None:
    """Readers would have a gap, or read what was deleted (B45 I13)."""
    await two.here.durable(two.here.append([session_fact("s1", change="deleted")]))
    rows = await two.read(view.facts, 0, 99)
    assert [row.seq for row in rows] == list(range(1, two.here.head + 1))
    emptied = [row for row in rows if row.session == "s1"]
    assert {(row.change, row.key) for row in emptied} == {("deleted", "")}
    assert emptied[1].body == b'{"id":"m1","session_id":"s1"}'
    assert {row.change for row in rows if row.session == "s2"} == {"updated", "created"}
    there = await two.journal.read(view.facts, two.there.workspace_id, 0, 99)
    assert "deleted" not in {row.change for row in there}
