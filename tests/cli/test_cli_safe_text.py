"""Nothing a model, a tool or another person wrote can steer the terminal or hide from its reader (A26, A41)."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.cli.safe_text import exact, prose, shortened

EVERY_CHARACTER = list(map(chr, range(0x110000)))


def is_dangerous(character: str) -> bool:
    """Controls, and what is there without being seen; written apart from the code under test."""
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def test_no_dangerous_character_survives_as_prose() -> None:
    """One escape character is enough to rewrite what a person already read."""
    shown = prose("".join(EVERY_CHARACTER))
    assert {character for character in set(shown) if is_dangerous(character)} == {"\n", "\t"}


def test_no_dangerous_character_survives_where_a_person_decides() -> None:
    """There not even a line break may: a second line could look like ours."""
    shown = exact("".join(EVERY_CHARACTER))
    assert not [character for character in set(shown) if is_dangerous(character)]


def test_an_escape_sequence_is_shown_and_not_obeyed() -> None:
    """`ESC [ 2 J` would clear the screen before the question is asked."""
    assert prose("a\x1b[2Jb") == "a<U+001B>[2Jb"


def test_a_bidi_override_is_shown() -> None:
    """With it a command reads from the wrong end."""
    assert exact("rm \u202eslif\u202c") == "rm <U+202E>slif<U+202C>"


@pytest.mark.parametrize("hidden", ["\u200b", "\u2060", "\ufeff", "\U000e0041", "\u00ad", "\ufe0f", "\u3164", "\u00a0"])
def test_two_commands_that_differ_never_look_the_same(hidden: str) -> None:
    """A hidden character makes another path of the same look; the person approves one and gets the other."""
    assert exact(f"rm a{hidden}b") != "rm ab"
    assert exact(f"rm a{hidden}b") != "rm a b"
    assert hidden not in exact(f"rm a{hidden}b")


def test_ordinary_writing_is_left_alone() -> None:
    """Safety that mangles every language but English would be switched off."""
    words = "Grüße, мир, 你好, שלום, مرحبا — “quoted” 😀\n\tindented"
    assert prose(words) == words


def test_an_emoji_with_joiners_stays_readable() -> None:
    """Models write these; the joiners are left out, the pictures stay."""
    assert prose("❤️ 👩‍💻") == "❤ 👩💻"


def test_line_breaks_of_windows_become_plain_ones() -> None:
    """A bare carriage return would let the rest of the line overwrite its beginning."""
    assert prose("one\r\ntwo\rthree") == "one\ntwothree"


@given(st.text(max_size=50), st.integers(0, 50))
def test_prose_may_come_in_pieces(words: str, cut: int) -> None:
    """Text streams: a danger cut in two must not slip through, nor harmless text change."""
    assert prose(words[:cut]) + prose(words[cut:]) == prose(words)


def test_what_is_cut_says_how_much_is_missing() -> None:
    """Nobody approves what they cannot see without knowing that."""
    assert shortened("x" * 12, 10) == "x" * 10 + "... (2 more characters)"
    assert shortened("x" * 10, 10) == "x" * 10
