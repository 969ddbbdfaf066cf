"""What the README shows is what happens."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from windlass import config
from windlass.testing.server_process import ServerProcess

ROOT = Path(__file__).parent.parent


def block(language: str) -> str:
    """The first code block of a language."""
    found = re.search(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    return found[1]


async def run(*argv: str, directory: Path, **environment: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=directory,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    (path / "notes.txt").write_text("hello")
    return path


async def test_the_first_screen_is_what_a_server_says(tmp_path: Path, directory: Path) -> None:
    """A new user's first look would already find the README wrong, or a request that does not work as pasted."""
    async with ServerProcess(tmp_path / "server") as server:
        said = server.log()
        shown = block("text").splitlines()
        for line in shown[1:]:
            if line and not line.startswith("  ") and "4747" not in line:
                assert line in said
        request = next(line for line in said.splitlines() if line.startswith("  curl "))
        assert '"version"' in await run("bash", "-c", request, directory=directory)


async def test_the_python_example_runs(tmp_path: Path, directory: Path) -> None:
    """People copy it."""
    async with ServerProcess(tmp_path / "server") as server:
        (tmp_path / "token").write_text(server.token)
        (tmp_path / "token").chmod(0o600)
        output = await run(
            sys.executable,
            "-c",
            block("python"),
            directory=directory,
            WINDLASS_URL=server.url,
            WINDLASS_TOKEN_FILE=str(tmp_path / "token"),
        )
        assert "ls" in output


def test_the_config_example_is_valid(tmp_path: Path) -> None:
    """People copy it."""
    file = tmp_path / "config.toml"
    file.write_text(block("toml"))
    assert config.load(file).providers["local"].type == "openai"


def test_the_commands_shown_exist() -> None:
    """A command that was renamed would stay in the README."""
    from windlass.cli.main import COMMANDS

    shown = re.findall(r"^windlass (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(shown) >= 8
    assert set(shown) <= set(COMMANDS)
