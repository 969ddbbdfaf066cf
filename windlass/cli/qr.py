"""A QR code for a terminal, two rows of it in each line of text."""

from collections.abc import Sequence

from windlass import limits

_HALVES = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}


def qr_lines(text: str, *, ascii: bool = False, draw_dark: bool = False) -> list[str]:
    """The lines of the code.

    What is drawn are its light squares, which is right where text is light on dark; `draw_dark` draws its dark ones.
    `ascii` draws with `#`, for terminals and fonts without block characters.
    """
    import segno

    # The smallest of its kind: a code on a screen is not scratched, and has to fit.
    rows = segno.make(text, error="l", boost_error=False, micro=False).matrix_iter(border=limits.PAIR_BORDER_MODULES)
    drawn = [[bool(module) == draw_dark for module in row] for row in rows]
    return ["".join("##" if on else "  " for on in row) for row in drawn] if ascii else _halved(drawn)


def _halved(rows: Sequence[Sequence[bool]]) -> list[str]:
    blank = [False] * len(rows[0])
    pairs = [(rows[i], rows[i + 1] if i + 1 < len(rows) else blank) for i in range(0, len(rows), 2)]
    return ["".join(_HALVES[both] for both in zip(upper, lower, strict=True)) for upper, lower in pairs]
