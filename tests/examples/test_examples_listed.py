"""Every example is introduced, and passes the strictest check that its readers may have."""

import ast
import asyncio
import re
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PAGE = EXAMPLES.parent / "docs" / "sdk.md"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_example_says_what_it_shows_and_how_to_start_it_and_is_listed(program: str) -> None:
    """Nobody would find it, or know how to begin."""
    said = ast.get_docstring(ast.parse((EXAMPLES / program).read_text())) or ""
    assert f"examples/{program}" in said or f"examples.{program.removesuffix('.py')}" in said
    assert f"]({program})" in (EXAMPLES / "README.md").read_text()


async def test_the_examples_and_what_the_page_shows_are_strictly_typed(tmp_path: Path) -> None:
    """People's own type checkers would complain about what they copied, or about the SDK."""
    programs = [EXAMPLES / program for program in PROGRAMS]
    for number, snippet in enumerate(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)):
        programs.append(tmp_path / f"snippet_{number}.py")
        programs[-1].write_text(snippet)
    argv = ["-m", "mypy", "--strict", "--no-error-summary", *map(str, programs)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *argv, cwd=EXAMPLES.parent, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert (process.returncode, output.decode()) == (0, "")
