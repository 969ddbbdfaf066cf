"""What the page on the mailbox shows is what happens."""

import asyncio
import os
import re
import sys
from pathlib import Path

from windlass import limits

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "mailbox.md").read_text()


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


async def run(*argv: str, directory: Path) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(directory), "PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(
        *argv, cwd=directory, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def test_the_commands_run_as_shown(tmp_path: Path) -> None:
    """People paste them, from the first to the last."""
    output = await run("bash", "-ec", block("sh"), directory=tmp_path)
    assert "Please look at parser.py" in output
    assert re.search(r"^  tester +pending", output, re.MULTILINE)
    assert re.search(r"^reviewer +0 +0 +0 +0$", output, re.MULTILINE)


async def test_the_python_example_runs(tmp_path: Path) -> None:
    """People copy it."""
    assert await run(sys.executable, "-c", block("python"), directory=tmp_path) == "1 Please look at parser.py\n"


def test_the_bounds_on_the_page_are_those_of_the_code() -> None:
    """A bound that was changed would stay on the page."""
    assert f"{limits.MAILBOX_MESSAGES:,} messages and {limits.MAILBOX_BYTES // limits.MIB} MiB a mailbox" in PAGE
    assert f"{limits.MAIL_BYTES // limits.MIB} MiB a message" in PAGE
    assert limits.MAILBOX_ATTEMPTS == 5 and "claimed five times" in PAGE
