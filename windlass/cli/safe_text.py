"""Text from models, tools, files and other people, made safe to print on a terminal.

A terminal obeys what it is shown: an escape sequence can move the cursor up and overwrite the question a person is
about to answer, a bidi override can make `rm -rf` read like something else, a zero-width character can hide in a
command (A26, A41). So nothing of the kind reaches the terminal. Two manners:

- `prose` for conversation: line breaks and tabs stay, what is dangerous is shown as `<U+202E>`; carriage returns and
  the joiners inside emoji are left out, because they are common there and harmless.
- `exact` for what a person decides on (commands, paths, names): one line, and every character that is not what it looks
  like is shown, also a line break or a space that is not a plain one.
"""

import unicodedata

_LEFT_OUT_OF_PROSE = "\r\u200d\ufe0e\ufe0f"
# Letters by category, blank to the eye: they could pad or split a command unseen.
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
# Controls (Cc), invisible formatting (Cf), halves of surrogates (Cs), unassigned (Cn), line and paragraph separators.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})
_VARIATION_SELECTORS = frozenset((*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0), *range(0x180B, 0x180F)))


def prose(text: str) -> str:
    """Safe text of several lines. Each character is judged alone, so a text may be given in pieces."""
    return text.translate(_PROSE)


def exact(text: str) -> str:
    """Safe text on one line, in which two different texts never look the same for want of a visible character."""
    return text.translate(_EXACT)


def shortened(text: str, characters: int) -> str:
    """The beginning of a long text, saying how much is missing."""
    if len(text) <= characters:
        return text
    return f"{text[:characters]}... ({len(text) - characters} more characters)"


class _Prose(dict[int, str | int]):
    """A translation table that judges a character when it is first met."""

    def __missing__(self, code: int) -> str | int:
        character = chr(code)
        if character in _LEFT_OUT_OF_PROSE:
            shown: str | int = ""
        elif character in "\n\t" or not _is_hidden(character):
            shown = code
        else:
            shown = _named(code)
        self[code] = shown
        return shown


class _Exact(dict[int, str | int]):
    def __missing__(self, code: int) -> str | int:
        character = chr(code)
        if character == "\n":
            shown: str | int = "\\n"
        elif character == "\t":
            shown = "\\t"
        elif _is_hidden(character) or character in _BLANK_LETTERS or _is_odd_space(character):
            shown = _named(code)
        else:
            shown = code
        self[code] = shown
        return shown


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN_CATEGORIES or ord(character) in _VARIATION_SELECTORS


def _is_odd_space(character: str) -> bool:
    return character != " " and unicodedata.category(character) == "Zs"


def _named(code: int) -> str:
    return f"<U+{code:04X}>"


_PROSE = _Prose()
_EXACT = _Exact()
