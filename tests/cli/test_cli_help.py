"""Help: every command says what it is for, in few words, with an example, and fits a terminal."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from command_line import on_files

from windlass.cli.main import COMMANDS, windlass

_COLUMNS = 100


def commands(
    group: click.Group, path: tuple[str, ...] = ("windlass",)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, group
    context = click.Context(group, info_name=path[-1])
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


ALL = dict(commands(windlass))


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_help_says_what_it_is_for_with_an_example_and_fits(path: tuple[str, ...]) -> None:
    """Who does not know a command asks it; and a line that wraps is not read."""
    command = ALL[path]
    parent = None
    for name in path[:-1]:
        parent = click.Context(windlass, info_name=name, parent=parent, max_content_width=_COLUMNS)
    context = click.Context(command, info_name=path[-1], parent=parent, terminal_width=_COLUMNS)
    text = command.get_help(context)
    purpose = (command.help or "").strip().split("\n\n")[0]
    assert purpose and purpose.rstrip(".:").count(". ") <= 3, "one purpose, said first"
    assert f"windlass {' '.join(path[1:])}".strip() in text.partition("\n")[2], "an example of this very command"
    assert not [line for line in text.splitlines() if len(line) > _COLUMNS]


def test_every_command_says_what_it_does_on_the_first_page() -> None:
    """The list of commands is the first thing that is read."""
    for name, (_, text) in COMMANDS.items():
        assert text.endswith(".") and len(name) + len(text) < 80, name


def test_completing_a_command_loads_none() -> None:
    """Pressing a key would take as long as running a command."""
    code = (
        "import os, sys\n"
        "os.environ.update(_WINDLASS_COMPLETE='bash_complete', COMP_WORDS='windlass s', COMP_CWORD='1')\n"
        "from windlass.cli.main import main\n"
        "try:\n    main([])\nexcept SystemExit:\n    pass\n"
        "print({'aiohttp', 'litestar', 'windlass.client', 'windlass.app'} & set(sys.modules))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.splitlines() == ["plain,serve", "plain,sessions", "set()"]


def test_a_group_completes_its_commands(tmp_path: Path) -> None:
    """`windlass sessions` alone means to list them; the key asks for names."""
    words = {"_WINDLASS_COMPLETE": "zsh_complete", "COMP_WORDS": "windlass sessions ", "COMP_CWORD": "2"}
    shown = on_files(tmp_path, **words).stdout.splitlines()
    assert {"list", "show", "export", "search"} <= set(shown[1::3])
