"""Doing what a page says, from its first block to its last."""

import re

from tests.docs.commands import commands
from tests.docs.pages import Block, blocks
from tests.docs.shell import Shell

_EXITS = re.compile(r"# exits (\d+)\b")
_EXECUTED = ("sh", "python")


def is_executed(page: str) -> bool:
    return any(block.language in _EXECUTED and block.remark != "not run" for block in blocks(page))


def walk(page: str, shell: Shell) -> None:
    """Execute every block; raise where the page is wrong, naming its line."""
    executed = [block for block in blocks(page) if block.remark != "not run"]
    if not _starts_a_server(executed):
        shell.type("windlass serve > /dev/null")  # in a terminal that nobody looks at
    since = 0
    for block in executed:
        since = _do(block, shell, since)


def _starts_a_server(executed: list[Block]) -> bool:
    """Whether the page begins with a server of its own."""
    typed = "".join(block.body for block in executed if block.language == "sh")
    first = re.search(r"^(windlass|make) \w+", typed, re.MULTILINE)
    return first is not None and first[0] in ("windlass serve", "make run")


def _do(block: Block, shell: Shell, since: int) -> int:
    """Where the output begins that the next block may show."""
    if block.file:
        _save(block, shell)
    elif block.language in _EXECUTED:
        since = shell.place
        for command in commands(block.body) if block.language == "sh" else [_program(block, shell)]:
            _run(block, command, shell)
    elif block.is_output:
        missing = shell.shows(lambda: not_shown(block.body, shell.said(since)))
        assert not missing, f"{block.place} shows what did not come: {missing}\n{shell.said(since)}"
    return since


def _save(block: Block, shell: Shell) -> None:
    path = shell.home / block.file[2:] if block.file.startswith("~/") else shell.project / block.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.body)


def _program(block: Block, shell: Shell) -> str:
    path = shell.home / f".line-{block.line}.py"
    path.write_text(block.body)
    return f"python3 {path}"


def _run(block: Block, command: str, shell: Shell) -> None:
    since = shell.place
    code = shell.type(command)
    expected = int(found[1]) if (found := _EXITS.search(command)) else 0
    assert code == expected, f"{block.place}: `{command}` ended with {code}\n{shell.said(since)}"


def not_shown(shown: str, said: str) -> list[str]:
    """The lines of a page that were not printed in this order; `...` stands for anything, alone for any lines."""
    said_lines = [line.rstrip() for line in said.splitlines()]
    missing, place = [], 0
    for line in shown.splitlines():
        if not line.strip() or line.strip() == "...":
            continue
        wanted = re.compile(".*".join(re.escape(piece) for piece in line.rstrip().split("...")))
        found = next((at for at in range(place, len(said_lines)) if wanted.fullmatch(said_lines[at])), None)
        if found is None:
            missing.append(line)
        else:
            place = found + 1
    return missing
