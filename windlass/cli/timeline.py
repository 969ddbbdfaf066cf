"""A run's timeline as text: one line a span, its bar where it was in time."""

from windlass import limits
from windlass.cli.safe_text import exact
from windlass.cli.times import duration
from windlass.wire.timeline import Span, Timeline

_MARKS = {"queue": ".", "model": "█", "tool": "▓", "permission": "?", "question": "?"}
_NAMES = {"queue": "waits", "model": "model", "tool": "tool", "permission": "asks", "question": "asks"}


def drawn(timeline: Timeline, now: float, columns: int) -> list[str]:
    """The lines, none wider than `columns` where that is possible. What goes on is drawn until `now`."""
    end = max(timeline.end or now, timeline.start)
    width = max(10, min(limits.TIMELINE_BAR_CHARACTERS, columns - limits.TIMELINE_COLUMN_CHARACTERS - 20))
    lines = [f"{exact(timeline.run_id)}: {duration(end - timeline.start)}{'' if timeline.end else ', and it goes on'}"]
    for span in timeline.spans:
        until = span.end or end
        bar = _bar(span, until, timeline.start, end - timeline.start, width)
        lines.append(f"{_label(span)} |{bar}| {duration(until - span.start)}{_outcome(span)}")
    return lines


def _label(span: Span) -> str:
    width = limits.TIMELINE_COLUMN_CHARACTERS
    text = f"{_NAMES[span.kind]:<5} {exact(span.label)}"
    return (text if len(text) <= width else text[: width - 3] + "...").ljust(width)


def _bar(span: Span, until: float, start: float, whole: float, width: int) -> str:
    """At least one mark: what was short must still be seen."""
    scale = width / whole if whole > 0 else 0.0
    first = min(width - 1, max(0, int((span.start - start) * scale)))
    last = min(width, max(first + 1, round((until - start) * scale)))
    return (" " * first + _MARKS[span.kind] * (last - first)).ljust(width)


def _outcome(span: Span) -> str:
    plain = ("", "end_turn", "tool_use")
    outcome = "" if span.outcome in plain else f" {exact(span.outcome)}"
    goes_on = "" if span.end else " so far"
    return f"{goes_on}{outcome}{f' by {exact(span.by)}' if span.by else ''}"
