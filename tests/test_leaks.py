"""The fixture that fails a test which leaves something: tried on tests that do, in a pytest of their own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
UNTIDY = """
import asyncio, os, socket, subprocess, threading, time
import pytest, tests.leaks
tests.leaks.PATIENCE_SECONDS = 0.1
held = []

async def test_task(): held.append(asyncio.create_task(asyncio.Event().wait(), name="forgotten"))
async def test_timer(): asyncio.get_running_loop().call_later(9, print, "late")
async def test_timer_of_a_pool(): held.append(asyncio.get_running_loop().call_later(9, held.clear))
def test_thread(): threading.Thread(target=time.sleep, args=(3,), name="spinner", daemon=True).start()
def test_socket(): held.append(socket.socket())
def test_descriptor(): held.append(open("/dev/full"))
def test_child(): held.append(subprocess.Popen(["sleep", "3"]))

@pytest.mark.asyncio(loop_scope="session")
async def test_shared_loop_task(): held.append(asyncio.create_task(asyncio.Event().wait(), name="forgotten by all"))

@pytest.fixture
def careless():
    yield
    held.append(os.open("/dev/zero", os.O_RDONLY))

def test_fixture(careless): pass
async def test_nothing(): await asyncio.to_thread(os.getpid)
async def test_closes_a_little_later(): asyncio.get_running_loop().call_later(0.05, print, "soon")
def test_does_not_mind_what_others_left(): assert held
"""


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each of the tests above was told, by its name."""
    directory = tmp_path_factory.mktemp("untidy")
    (directory / "test_untidy.py").write_text(UNTIDY)
    (directory / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
    )
    argv = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-p", "no:xdist"]
    argv.append("--no-programs")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    ended = subprocess.run(argv, cwd=directory, env=environment, capture_output=True, text=True, timeout=60)
    assert "12 passed" in ended.stdout, ended.stdout + ended.stderr
    parts = re.split(r"_+ ERROR at teardown of (\w+) _+\n", ended.stdout.partition("short test summary")[0])
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("test_task", "task forgotten: <coroutine object Event.wait"),
        ("test_timer", "timer: <TimerHandle"),
        ("test_timer_of_a_pool", "list.clear"),
        ("test_thread", "thread spinner"),
        ("test_socket", "-> socket:["),
        ("test_descriptor", "-> /dev/full"),
        ("test_child", "sleep 3"),
        ("test_shared_loop_task", "task forgotten by all"),
        ("test_fixture", "-> /dev/zero"),
    ],
)
def test_what_is_left_is_named(name: str, words: str, complaints: dict[str, str]) -> None:
    """Else a leak fails some later test that has nothing to do with it, or a server after a week."""
    assert words in complaints[name]
    assert complaints[name].count("\n  ") == 1  # and nothing else is blamed on it


@pytest.mark.parametrize("name", ["test_nothing", "test_closes_a_little_later", "test_does_not_mind_what_others_left"])
def test_a_tidy_test_is_not_blamed(name: str, complaints: dict[str, str]) -> None:
    """Else people learn to ignore the complaint."""
    assert name not in complaints
