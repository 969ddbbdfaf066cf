"""The bench itself works: a small one, so that it cannot rot between the runs that people look at."""

import asyncio
import importlib
import json
from pathlib import Path

import pytest

from bench import plan, rows
from bench.__main__ import SECTIONS, page
from bench.fleet import executor, link
from bench.gaps import longest
from bench.sections import overload
from bench.wire import wire
from windlass.fleet.worker.dialect import encode
from windlass.fleet.worker.full_voice import FullVoice
from windlass.wire.run_events import Delta


@pytest.mark.parametrize("section", ["tokens", "times", "history", "mailbox", "fleet"])
async def test_a_section_measures_a_real_server_beside_something_bare(section: str, tmp_path: Path) -> None:
    """`make bench` would fail, or fill its table with zeros, on the day someone needs the figures."""
    module = importlib.import_module(f"bench.sections.{section}")
    found = await module.measure(plan.TINY, tmp_path)
    assert found
    for row in found:
        # What something adds is a difference of two measurements: on a busy machine noise makes it negative.
        assert row.value > 0 or ("added" in row.name and row.value != 0), row
        assert row.bare is None or row.bare > 0, row


def test_the_bare_socket_carries_what_a_link_carries() -> None:
    """The link would be compared with a library that is given less, or more, to carry."""
    word = Delta(executor.MESSAGE_ID, 0, "text", executor.WORD)
    (waiting,) = FullVoice("run", 1).say(word, encode(word), None)
    ours, bare = json.loads(waiting.encode(waiting)), json.loads(link.event_frame(durable=False))
    of_one_run = ("run_id", "seq")
    assert {**ours, **dict.fromkeys(of_one_run)} == {**bare, **dict.fromkeys(of_one_run)}


def test_every_section_can_be_asked_for() -> None:
    """A section that is left out of the list is never measured again, and nobody notices."""
    there = {path.stem for path in (Path(rows.__file__).parent / "sections").glob("[a-z]*.py")}
    assert there == set(SECTIONS)


def test_the_table_says_which_aims_are_missed() -> None:
    """A figure that got worse would stand in the table like any other."""
    missed = rows.Row(name="slow thing", value=7.0, unit="ms", bare=2.0, aim=5.0)
    met = rows.Row(name="fast thing", value=3.0, unit="ms", aim=5.0)
    text = page([missed, met], seconds=1.0)
    assert "| slow thing | 7 ms | 2 ms | 3.5x | 5 ms | **no** |" in text
    assert "| fast thing | 3 ms |  |  | 5 ms | yes |" in text


def test_a_percentile_of_few_samples_is_one_of_them() -> None:
    """The p99 of ten samples is the worst of them; anything else would hide it."""
    assert rows.spread([float(number) for number in range(10, 0, -1)]) == (5.0, 10.0)


def test_gaps_before_the_measurement_do_not_count(tmp_path: Path) -> None:
    """The start of a process, which may take long, would pass for the loop being held up by work."""
    file = tmp_path / "gaps.txt"
    file.write_text("10.0 0.5 0.4\n20.0 0.030 0.012\n21.0 0.020 0.018\n")
    late, computed = longest(file, since=15.0)
    assert (round(late), round(computed)) == (30, 18)


async def test_a_loop_that_does_not_answer_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare loop that drowns answers in seconds, if at all: two hundred questions would hold up all other figures."""
    monkeypatch.setattr(overload, "_ASKING_SECONDS", 0.5)
    silent = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
    async with silent, wire(silent.sockets[0].getsockname()[1]) as requests:
        took = await asyncio.wait_for(overload._ask(requests, plan.TINY), 20)
    assert len(took) == 1 and took[0] >= 250, "what was waited for in vain counts as long as it was waited for"
