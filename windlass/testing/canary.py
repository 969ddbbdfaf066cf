"""The canary in the keys: every key that a test gives to a program of ours bears this mark, and nothing may show it.

A key that got out would sit in a log, an event, a database or on a screen, where nobody looks for it until somebody
does (A39). So whatever comes out of a server or a program in a test is searched for the mark, and the test fails that
finds it. Only the config is left out: that is where keys are written down.
"""

import re
from collections.abc import Iterator
from pathlib import Path

MARK = "secretcanary"  # nothing that is washed out for its looks alone, as "key-..." is: then we would not see it
KEY = f"{MARK}-7f3a91"  # what tests write into a config
ENVIRONMENT = {"WINDLASS_TEST_API_KEY": f"{MARK}-in-the-environment"}  # what every server of a test finds there

found: list[str] = []  # what got out where nobody could be told; whoever runs the tests looks here after each

_API_KEY = re.compile(r'^\s*api_key\s*=\s*"([^"]*)"', re.MULTILINE)
_READ_BYTES = 1024 * 1024  # of a file at a time; a journal may have hundreds of megabytes


def check_config(text: str) -> None:
    """Fail a test whose config holds a key without the mark: nobody would notice if that one got out."""
    unmarked = [key for key in _API_KEY.findall(text) if MARK not in key]
    assert not unmarked, f"api_key in a test's config needs {MARK!r} in it: {unmarked}"


def check_text(text: str | bytes, where: str) -> None:
    """Fail a test in which a key has got out."""
    mark = MARK if isinstance(text, str) else MARK.encode()
    if mark in text:  # type: ignore[operator]
        place = text.index(mark)  # type: ignore[arg-type]
        raise AssertionError(f"a key got out: {where} has {text[max(0, place - 200) : place + 100]!r}")


def note_text(text: str, where: str) -> None:
    """The same where raising would only end some task that nobody waits for."""
    try:
        check_text(text, where)
    except AssertionError as error:
        found.append(str(error))


def check_files(*places: Path) -> None:
    """The same for files, and for all files in directories."""
    for file in _files(places):
        before = b""
        with file.open("rb") as opened:
            while piece := opened.read(_READ_BYTES):
                check_text(before + piece, str(file))
                before = piece[-len(MARK) :]


def _files(places: tuple[Path, ...]) -> Iterator[Path]:
    for place in places:
        yield from (path for path in [place, *place.rglob("*")] if path.is_file() and not path.is_symlink())
