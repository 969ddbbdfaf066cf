"""What is said in passing is true as well: commands and options in the running text exist."""

import re

import click
import pytest

from tests.docs.pages import every_block, pages
from windlass.cli.main import COMMANDS, windlass

_INLINE = re.compile(r"`(windlass [^`]+)`")
_LINE = re.compile(r"(?:^|[ /=])(windlass [a-z].*)$", re.MULTILINE)


def mentioned() -> list[tuple[str, str]]:
    """Commands in the running text, and in blocks that are not run."""
    inline = [(page, command.replace("\n", " ")) for page, text in pages().items() for command in _INLINE.findall(text)]
    blocks = [block for block in every_block() if block.remark == "not run"]
    return inline + [(block.place, command) for block in blocks for command in _LINE.findall(block.body)]


def unknown(command: str) -> str:
    """What of a command line we do not know, "" if we know it all."""
    words = command.split("#")[0].replace("\\", "").split()[1:]
    found: click.Command = windlass
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        if "|" in words[0] or not words[0].isascii() or not words[0].replace("-", "").islower():
            return ""
        known = found.get_command(click.Context(found), words[0])
        if known is None:
            return words[0]
        found, words = known, words[1:]
    context = click.Context(found)
    if isinstance(found, click.Group):
        listing = found.get_command(context, "list")
        found = listing if listing is not None else found
    options = {option for parameter in found.get_params(context) for option in parameter.opts}
    given = [word.partition("=")[0].strip("[](),.;:'\"") for word in words if word.startswith(("-", "[-"))]
    return next((option for option in given if option.startswith("--") and option not in options), "")


def test_every_command_that_is_mentioned_exists_with_its_options() -> None:
    """A command that was renamed would stay in the prose, where no test executes it."""
    wrong = [f"{place}: `{command}`: {what}" for place, command in mentioned() if (what := unknown(command))]
    assert wrong == []


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("windlass serve --listen 127.0.0.1:0", ""),
        ("windlass serve --no-such-option", "--no-such-option"),
        ("windlass sessions show --json", ""),
        ("windlass no-such-command", "no-such-command"),
        ("windlass sessions --json", ""),
    ],
)
def test_what_is_not_known_is_found(command: str, what: str) -> None:
    """Else the test above would be content with anything."""
    assert unknown(command) == what


def test_every_command_is_in_the_docs() -> None:
    """One that nobody tells of is used by nobody."""
    everything = "\n".join(pages().values())
    assert [name for name in COMMANDS if f"windlass {name}" not in everything] == []
