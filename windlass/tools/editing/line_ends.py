"""Line ends: which ones a place in a text has, and giving them to other text."""

import re

_BREAK = re.compile(r"\r?\n")


def line_end_of(place: str, text: str) -> str:
    """How lines end at this place: as in the place itself, else as everywhere in the text; "" if that is mixed."""
    inside = _BREAK.search(place)
    if inside is not None:
        return inside[0]
    return uniform_line_end(text)


def uniform_line_end(text: str) -> str:
    """The line end of all lines of a text; "" if it has none or several."""
    breaks, windows = text.count("\n"), text.count("\r\n")
    if not breaks or 0 < windows < breaks:
        return ""
    return "\r\n" if windows else "\n"


def with_line_end(text: str, line_end: str) -> str:
    """The text with this line end everywhere; as it is when that is ""."""
    return text.replace("\r\n", "\n").replace("\n", line_end) if line_end else text
