"""What people see of a command while it works."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from bash_kit import a_shell, plan

from windlass import limits
from windlass.tools.bash import Bash
from windlass.tools.files import WorkspaceRoot
from windlass.tools.screen import Screen


@pytest.fixture
async def bash(root: WorkspaceRoot) -> AsyncIterator[Bash]:
    async with a_shell(root) as shell:
        yield shell.bash


class Audience:
    """Takes what is shown, with the time it came at."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.times: list[float] = []
        self.came = asyncio.Event()

    def __call__(self, piece: str) -> None:
        self.pieces.append(piece)
        self.times.append(asyncio.get_running_loop().time())
        self.came.set()

    @property
    def text(self) -> str:
        return "".join(self.pieces)


async def test_output_is_seen_while_the_command_works(bash: Bash) -> None:
    """People would look at an empty screen for the length of a build."""
    audience = Audience()
    task = asyncio.create_task(plan(bash, "echo one; read line < <(sleep 3600)").run(audience))
    await asyncio.wait_for(audience.came.wait(), 10)
    assert audience.text == "one\n" and not task.done()
    task.cancel()
    await asyncio.wait({task})


async def test_nothing_is_shown_after_the_end(bash: Bash) -> None:
    """A late piece would be added to the result that has taken its place."""
    audience = Audience()
    await plan(bash, "echo one; sleep 0.02; echo two").run(audience)
    shown = audience.text
    await asyncio.sleep(2 * limits.SHOW_SECONDS)
    assert audience.text == shown
    assert "one\ntwo\n".startswith(shown)


async def test_pieces_come_at_most_about_ten_times_a_second(bash: Bash) -> None:
    """A chatty command would make a thousand events a second for everyone who is attached."""
    audience = Audience()
    await plan(bash, "for i in $(seq 60); do echo $i; sleep 0.01; done").run(audience)
    gaps = [after - before for before, after in zip(audience.times, audience.times[1:], strict=False)]
    assert len(gaps) >= 3 and min(gaps) > limits.SHOW_SECONDS * 0.9


async def test_characters_that_are_cut_by_the_pipe_are_shown_whole() -> None:
    """An umlaut whose two bytes come apart would be two marks of a broken character, for ever."""
    audience = Audience()
    screen = Screen(audience)
    for byte in "grün 漢字 🎈".encode():
        screen.add(bytes([byte]))
        await asyncio.sleep(0)
    audience.came.clear()
    await asyncio.wait_for(audience.came.wait(), 5)
    screen.close()
    assert audience.text == "grün 漢字 🎈"


async def test_what_is_shown_is_bounded_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """`yes` would fill the log and every screen until its time limit."""
    monkeypatch.setattr(limits, "SHOWN_CHARACTERS", 10)
    audience = Audience()
    screen = Screen(audience)
    for _ in range(5):
        screen.add(b"abcd")
    await asyncio.wait_for(audience.came.wait(), 5)
    screen.close()
    assert audience.text.startswith("abcdabcdab\n[... more") and audience.text.count("a") <= 4
    assert len(audience.pieces) == 1


async def test_without_an_audience_it_works_as_well(bash: Bash) -> None:
    """Whoever does not know of showing calls `run()`."""
    assert (await plan(bash, "echo a").run()).content == "a\n[exit code 0]"
