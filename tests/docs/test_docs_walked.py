"""What the pages show is what happens: every command and program in them is executed, against real servers."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import pages
from tests.docs.shell import Shell
from tests.docs.walk import is_executed, not_shown, walk
from windlass.testing import canary
from windlass.testing.server_process import ServerProcess
from windlass.testing.watched_program import SIGN


@pytest.fixture
def shell() -> Iterator[Shell]:
    # A short path: that of a Unix socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="page-") as directory:
        assert ServerProcess.stem is not None
        shell = Shell(Path(directory), ServerProcess.stem)
        try:
            yield shell
        finally:
            shell.close()
        said = shell.said() + shell.server_log
        assert SIGN not in said, said
        canary.check_text(said, "what a page's commands printed")


@pytest.mark.parametrize("page", [page for page in pages() if is_executed(page)])
def test_a_page_does_what_it_shows(page: str, shell: Shell) -> None:
    """People paste what is on it, from the first line to the last, and believe what it says they will see."""
    walk(page, shell)


def test_the_files_of_a_mailbox_are_where_its_page_says(shell: Shell) -> None:
    """Whoever looks into a mailbox by hand would look in vain."""
    walk("docs/mailbox.md", shell)
    shell.type("windlass mailbox send tester --from me again")
    page = pages()["docs/mailbox.md"].partition("agents/projects/<key>/\n")[2].partition("```")[0]
    (project,) = (shell.data_dir / "agents/projects").iterdir()
    for line in page.splitlines():
        assert list(project.glob(re.sub(r"<\w+>", "*", line.split()[0]))), line


def test_a_command_that_fails_is_noticed(shell: Shell) -> None:
    """Else a page could show anything."""
    assert shell.type("false") == 1
    assert shell.type("windlass no-such-command") == 2


def test_a_shell_keeps_its_directory_and_its_variables(shell: Shell) -> None:
    """Else pages would have to be written for the test instead of for people."""
    shell.type("cd src && word=kept")
    shell.type('echo "$word in $(basename "$PWD")"')
    assert "kept in src" in shell.said()


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        ("one\nthree\n", []),
        ("o...\n...\nthree", []),
        ("three\none", ["one"]),
        ("on", ["on"]),
        ("four", ["four"]),
    ],
)
def test_output_is_shown_line_by_line_in_its_order(shown: str, missing: list[str]) -> None:
    """A page that shows half of a line, or lines that came the other way round, would pass."""
    assert not_shown(shown, "one\ntwo\nthree\n") == missing
