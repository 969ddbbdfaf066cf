"""What is read from the tables: of one workspace, of one session, in one order."""

import pytest

from tests.journal.facts import message_fact, session_fact
from tests.journal.two_workspaces import Two, names, text, two_workspaces
from windlass import limits
from windlass.journal import view
from windlass.journal.journal import Journal
from windlass.journal.records import Checkpoint


@pytest.fixture
async def two(journal: Journal) -> Two:
    return await two_workspaces(journal)


async def test_sessions_come_newest_change_first_and_without_their_children(two: Two) -> None:
    """A list of conversations would show those of another project, or bury the one that was just used (B18)."""
    titles = names(await two.read(view.sessions, ""), "title")
    assert titles == ["here second", "here same time", "here first"]
    assert names(await two.read(view.sessions, "s1"), "title") == ["here child"]


async def test_one_session_is_found_in_its_workspace_only(two: Two) -> None:
    """A client would be shown a conversation of another project under the same id."""
    assert names([await two.read(view.session, "s1")], "title") == ["here first"]
    assert await two.read(view.session, "s9") is None


async def test_messages_come_in_the_order_of_their_runs(two: Two) -> None:
    """A conversation would be shown, and sent to the model, in another order than it was held (B04)."""
    rows = await two.read(view.messages, "s1")
    assert [(row.id, text(row.body)) for row in rows] == [
        ("m1", "here asked"),
        ("m2", "here answered"),
        ("m3", "here asked again"),
        ("m4", "here answers"),
    ]
    assert [row.unfinished for row in rows] == [False, False, False, True]


async def test_a_page_of_messages_goes_on_after_the_one_before(two: Two) -> None:
    """A client that pages would miss messages, or see them twice."""
    pages = [await two.read(view.messages, "s1", after, 2) for after in ("", "m2", "m3", "m4")]
    assert [[row.id for row in page] for page in pages] == [["m1", "m2"], ["m3", "m4"], ["m4"], []]
    assert await two.read(view.messages, "s1", "m5", 2) is None  # of another session


async def test_one_message_is_found_in_its_workspace_only(two: Two) -> None:
    """A client would be shown words of another project."""
    finished, unfinished = await two.read(view.message, "m2"), await two.read(view.message, "m4")
    assert [(row.id, row.unfinished, text(row.body)) for row in (finished, unfinished)] == [
        ("m2", False, "here answered"),
        ("m4", True, "here answers"),
    ]
    assert await two.read(view.message, "m9") is None


async def test_what_people_said_comes_newest_first(two: Two) -> None:
    """The history of one's prompts would begin at the wrong end, or hold somebody else's."""
    said = [text(body) for body in await two.read(view.user_messages, "")]
    assert said == ["here asked again", "here elsewhere", "here asked"]
    assert [text(body) for body in await two.read(view.user_messages, "s1")] == ["here asked again", "here asked"]


async def test_what_people_said_at_the_same_time_comes_in_the_order_of_their_runs(two: Two) -> None:
    """Two prompts of one second would swap places from one look to the next."""
    late = [message_fact(f"x{n}.{i}", f"{n}.{i}", role="user", number=n, index=i, at=9) for n in (8, 7) for i in (0, 1)]
    await two.here.durable(two.here.append(late))
    said = [text(body) for body in await two.read(view.user_messages, "s1")]
    assert said[:4] == ["8.1", "8.0", "7.1", "7.0"]


async def test_what_people_said_is_bounded(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """One look at the history would load years of it."""
    monkeypatch.setattr(limits, "MESSAGES_PER_PAGE", 2)
    assert len(await two.read(view.user_messages, "")) == 2


async def test_the_messages_of_a_run_hold_the_text_so_far(two: Two) -> None:
    """A restart would end a message with less than people had already read (B10)."""
    for log in (two.there, two.here):
        body = b'{"parts": [{"type": "text", "data": {"text": "so far in %s"}}]}' % log.workspace_id.encode()
        two.journal.stage([Checkpoint(log.workspace_id, "m4", "s1", body)])
    await two.journal.settled()
    rows = await two.read(view.run_messages, "s1", 2)
    assert [(run, place.number, place.index) for run, place, _ in rows] == [("r1", 2, 0), ("r1", 2, 1)]
    assert [text(body) for *_, body in rows] == ["here asked again", f"so far in {two.here.workspace_id}"]


async def test_a_fact_of_a_message_replaces_the_text_so_far_and_no_others(two: Two) -> None:
    """A finished answer would be cut back to its last checkpoint by the next restart."""
    so_far = b'{"parts": [{"type": "text", "data": {"text": "so far"}}]}'
    two.journal.stage([Checkpoint(two.here.workspace_id, id, "s1", so_far) for id in ("m3", "m4")])
    two.journal.stage([Checkpoint(two.there.workspace_id, "m4", "s1", so_far)])
    done = message_fact("m4", "all of it", done=True, number=2, index=1)
    await two.here.durable(two.here.append([done]))
    assert [text(body) for *_, body in await two.read(view.run_messages, "s1", 2)] == ["so far", "all of it"]
    there = await two.journal.read(view.run_messages, two.there.workspace_id, "s1", 2)
    assert [text(body) for *_, body in there] == ["there asked again", "so far"]


async def test_a_page_of_facts_lies_between_its_bounds(two: Two) -> None:
    """A reader would miss a fact at the seam of two pages, or get it twice (I13)."""
    assert [row.seq for row in await two.read(view.facts, 2, 5)] == [3, 4, 5]
    assert all(row.workspace == two.here.workspace_id for row in await two.read(view.facts, 0, 99))


async def test_a_page_of_facts_is_bounded_in_number_and_bytes(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader far behind would hold the whole log in memory."""
    monkeypatch.setattr(limits, "PAGE_FACTS", 4)
    assert [row.seq for row in await two.read(view.facts, 0, 99)] == [1, 2, 3, 4]
    first, second = (await two.read(view.facts, 0, 2))[:2]
    monkeypatch.setattr(limits, "PAGE_BYTES", len(first.body) + len(second.body))
    assert [row.seq for row in await two.read(view.facts, 0, 99)] == [1, 2]
    monkeypatch.setattr(limits, "PAGE_BYTES", 1)
    assert [row.seq for row in await two.read(view.facts, 0, 99)] == [1]


async def test_a_query_says_how_new_its_answer_is(two: Two) -> None:
    """An answer would be given before the streams have shown what it rests on (B19)."""
    await two.here.durable(two.here.append([session_fact("s5")]))
    head, found = await two.read(view.at_head, view.session, two.here.workspace_id, "s5")
    assert (head, found is not None) == (two.here.head, True)
    assert await two.journal.read(view.at_head, "unknown", view.workspaces) == (
        0,
        await two.journal.read(view.workspaces),
    )
