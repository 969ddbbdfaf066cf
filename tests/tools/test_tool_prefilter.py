"""ripgrep finds files and Python decides: the same results with it and without it, whatever the pattern."""

import random
import re
import warnings
from pathlib import Path

import pytest

from tests.tools.searching import RIPGREP, WITH, WITHOUT, grep, make_files
from windlass.tools.files import WorkspaceRoot
from windlass.tools.searching.prefilter import ripgrep_pattern

ATOMS = [
    "a", "b", "k", "s", "i", "é", "ß", "\u212a", "\u017f", "\ufffd", " ", "\\.", ".", "\\d", "\\D", "\\w", "\\W",
    "\\s", "\\S", "[ab]", "[^a]", "[^\\W]", "[a-k]", "[é-ü]", "[^é]", "[\\s_]", "\\b", "\\B", "^", "$", "\\A", "\\Z",
    "(?=a)", "(?!a)", "(?<=b)", "(?<!b)", "\\x1c", "\\t", "(?i:s)", "(?a:\\w)", "(?a:\\S)",
]  # fmt: skip
LINES = [
    b"a", b"b a", b"ab.ba", b"K s I", "é ß".encode(), "\u212a\u017f\u0131".encode(), b"\xff\xfe", b"caf\xe9", b"7",
    b"\x1c\x1d", b"\tab ", b"", b"aaaa", b"SKI", "\ufffd".encode(), b"a\r", "\u00a0_".encode(), b"a b_1",
]  # fmt: skip


def some_pattern(dice: random.Random) -> str:
    pattern, groups = "", 0
    for _ in range(dice.randint(1, 5)):
        atom = dice.choice(ATOMS)
        if dice.random() < 0.25:
            atom, groups = f"({atom}|{dice.choice(ATOMS)})", groups + 1
        elif groups and dice.random() < 0.1:
            atom = f"\\{groups}"
        pattern += f"(?:{atom})" + dice.choice(["", "", "", "*", "+", "?", "{2}", "{1,3}", "*?", "++"])
    return dice.choice(["", "", "(?i)"]) + pattern


def some_file(dice: random.Random) -> bytes:
    mark = b"\xef\xbb\xbf" if dice.random() < 0.2 else b""
    return mark + dice.choice([b"\n", b"\r\n"]).join(dice.choices(LINES, k=dice.randint(1, 4)))


def lines_of(content: bytes) -> list[str]:
    text = content.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


@pytest.mark.parametrize("seed", range(20))
def test_what_python_finds_the_wider_pattern_finds_too(seed: int) -> None:
    """A file that has a match would be passed over where ripgrep is installed, and only there.

    The wider pattern uses only what Python's patterns for bytes read as ripgrep does.
    """
    dice = random.Random(f"prefilter {seed}")
    for _ in range(200):
        pattern, content = some_pattern(dice), some_file(dice)
        wider = ripgrep_pattern(pattern, 0)
        assert wider is not None
        found = any(re.search(pattern, line) for line in lines_of(content))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            found_wider = re.search(wider.encode("latin-1"), content, re.MULTILINE) is not None
        assert found_wider or not found, f"{pattern!r} is in {content!r}, and {wider!r} is not"


@pytest.mark.parametrize("letter", "abcdefghijklmnopqrstuvwxyz")
def test_only_three_letters_have_relatives_outside_ascii(letter: str) -> None:
    """The pattern for ripgrep would be too narrow where case does not matter."""
    foreign = [chr(code) for code in range(0x80, 0x2200) if re.fullmatch(letter, chr(code), re.IGNORECASE)]
    assert bool(foreign) is (letter in "iks")


@pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed here")
@pytest.mark.parametrize("seed", range(8))
async def test_both_ways_of_searching_tell_the_same(root: WorkspaceRoot, workspace: Path, seed: int) -> None:
    """What a model is told would depend on what is installed."""
    dice = random.Random(f"engines {seed}")
    names = [f"{dice.choice(['', 'd/', 'd/e/', '.h/'])}{number}.{dice.choice(['c', 'h'])}" for number in range(40)]
    make_files(workspace, {**{name: some_file(dice) for name in names}, ".gitignore": "3*\n", "binary": b"a\0a"})
    for _ in range(4):
        more = {
            "include": dice.choice(["", "*.c", "d/**"]),
            "output": dice.choice(["lines", "files", "count"]),
            "context": dice.choice([0, 1]),
            "limit": dice.choice([3, 1000]),
            "literal": dice.random() < 0.2,
            "case_insensitive": dice.random() < 0.3,
        }
        pattern = some_pattern(dice)
        assert await grep(root, pattern, WITH, **more) == await grep(root, pattern, WITHOUT, **more), pattern
