"""What commands draw: times as people read them, a run's timeline, and a code to scan."""

import time

import pytest
import segno

from windlass.cli.qr import qr_lines
from windlass.cli.timeline import drawn
from windlass.cli.times import duration, local_minute, local_time
from windlass.wire.timeline import Span, Timeline


@pytest.mark.parametrize("moment", ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678+00:00", 1767323045, 1767323045.6])
def test_a_moment_is_shown_in_local_time(moment: float | str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`runs` said one time and `sessions` another for the same moment."""
    monkeypatch.setenv("TZ", "Asia/Kathmandu")  # a quarter of an hour off everyone else
    time.tzset()
    try:
        assert local_time(moment) == "2026-01-02 08:49:05"
        assert local_minute(moment) == "2026-01-02 08:49"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_what_is_no_moment_is_shown_as_it_is() -> None:
    """A server of another version must not make a list impossible to print."""
    assert (local_time(""), local_time("soon"), local_time(1e30)) == ("", "soon", "1e+30")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0.0 s"), (0.44, "0.4 s"), (12.4, "12 s"), (300, "5 min"), (185, "3 min 5 s"), (7800, "2 h 10 min")],
)
def test_a_duration_is_as_exact_as_one_wants_to_know(seconds: float, text: str) -> None:
    """Nobody divides 7800 by 3600."""
    assert duration(seconds) == text


SPANS = [
    Span("queue", "", 100.0, 102.0),
    Span("model", "scripted/demo", 102.0, 104.0, outcome="tool_use"),
    Span("permission", "bash", 104.0, 109.0, outcome="granted", by="phone"),
    Span("tool", "bash\x1b[2J", 109.0, 109.001, outcome="error"),
    Span("model", "scripted/demo", 109.001),
]


def test_a_timeline_has_each_span_at_its_place() -> None:
    """A picture in which things are elsewhere is worse than none."""
    lines = drawn(Timeline("run_1", 100.0, 0.0, True, SPANS), 110.0, 200)
    bars = [line.split("|")[1] for line in lines[1:]]
    assert lines[0] == "run_1: 10 s, and it goes on"
    assert [(bar.index(bar.strip()[0]), len(bar.strip())) for bar in bars] == [
        (0, 12),
        (12, 12),
        (24, 30),
        (54, 1),
        (54, 6),
    ]
    assert lines[3].endswith("| 5.0 s granted by phone") and lines[5].endswith("| 1.0 s so far")


def test_a_timeline_fits_a_small_terminal_and_moves_no_cursor() -> None:
    """A41; and wrapped bars are unreadable."""
    lines = drawn(Timeline("run_1", 100.0, 110.0, True, SPANS[:2]), 110.0, 80)
    assert max(len(line) for line in lines) <= 80
    assert "\x1b" not in "".join(drawn(Timeline("r", 100.0, 110.0, True, SPANS), 110.0, 80))


def test_a_run_of_no_duration_is_drawn() -> None:
    """Dividing by nothing would end in a traceback."""
    assert len(drawn(Timeline("run_1", 1.0, 1.0, True, [Span("queue", "", 1.0, 1.0)]), 1.0, 80)) == 2


@pytest.mark.parametrize(("ascii", "draw_dark"), [(False, False), (False, True), (True, False)])
def test_a_code_drawn_has_the_modules_of_the_code(ascii: bool, draw_dark: bool) -> None:
    """A phone would read nothing, or another address."""
    link = "http://192.168.1.5:4747/?ticket=abcdefghijklmnopqrstuvwxyz012345"
    modules = [[bool(m) for m in row] for row in segno.make(link, error="l", boost_error=False).matrix_iter(border=2)]
    lines = qr_lines(link, ascii=ascii, draw_dark=draw_dark)
    if ascii:
        found = [[line[i] == "#" for i in range(0, len(line), 2)] for line in lines]
    else:
        halves = {" ": (False, False), "▀": (True, False), "▄": (False, True), "█": (True, True)}
        found = [[halves[c][half] for c in line] for line in lines for half in (0, 1)][: len(modules)]
    assert [[on == draw_dark for on in row] for row in found] == modules
