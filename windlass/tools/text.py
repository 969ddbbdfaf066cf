"""Making text fit to be shown: to a model, and to people who decide by what they see."""

from difflib import unified_diff

from windlass import limits


def shown(name: str) -> str:
    """A name on one line: a newline or a broken byte in it must not look like another entry, nor break the encoding."""
    readable = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(character if character.isprintable() else f"\\x{ord(character):02x}" for character in readable)


def shorten(text: str, limit: int) -> str:
    """About `limit` characters: the head and the tail of the text, and a line between that says what is missing."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def diff(path: str, before: str, after: str) -> str:
    """A unified diff, at most about DIFF_CHARACTERS long; it says when it was cut.

    Comparing lines is quadratic, so only the stretch between the first and the last changed line is compared, and a
    very long stretch is shown as removed and added as a whole.
    """
    old, new = _lines(before), _lines(after)
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    first = max(0, start - 3)
    last = max(0, end - 3)
    old, new = old[first : len(old) - last], new[first : len(new) - last]
    if max(len(old), len(new)) > limits.DIFF_LINES:
        lines = [f"@@ line {first + 1}: {len(old)} lines become {len(new)} @@\n"]
        lines += ["-" + line for line in old] + ["+" + line for line in new]
    else:
        # The headers are ours: difflib would number the lines from the stretch, not from the file.
        lines = [_moved(line, first) for line in list(unified_diff(old, new))[2:]]
    body = "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)
    return shorten(f"--- {path}\n+++ {path}\n{body}", limits.DIFF_CHARACTERS) if body else ""


def _lines(text: str) -> list[str]:
    """Lines with their ends. Not `splitlines`: it also splits where no editor does."""
    *whole, rest = text.split("\n")
    return [line + "\n" for line in whole] + ([rest] if rest else [])


def _common(left: list[str], right: list[str]) -> int:
    """How many lines both begin with."""
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count


def _moved(line: str, by: int) -> str:
    """A hunk's header `@@ -1,3 +1,4 @@` with its line numbers moved; any other line as it is."""
    if not line.startswith("@@ "):
        return line
    old, new = line.split()[1:3]
    return f"@@ -{_shift(old, by)} +{_shift(new, by)} @@\n"


def _shift(stretch: str, by: int) -> str:
    first, comma, length = stretch[1:].partition(",")
    return f"{int(first) + by}{comma}{length}"
