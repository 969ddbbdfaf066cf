"""Keys never appear anywhere: the search for them that every test is under, and that this search can fail."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from windlass.testing.canary import ENVIRONMENT, KEY, MARK
from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import Api, ServerProcess, openai_config

REPOSITORY = Path(__file__).parent.parent
LEAKY = """
import pytest, structlog
from windlass.testing import canary
from windlass.testing.server_process import Api, ServerProcess

def test_prints(): print("Authorization: Bearer", canary.KEY)
def test_logs(): structlog.get_logger().warning("refused", key=canary.KEY)
def test_event(): canary.note_text('{"error": "' + canary.KEY + '"}', "an event")
def test_unmarked(tmp_path): ServerProcess(tmp_path, config='[providers.x]\\napi_key = "a-real-one"')

async def test_answer(tmp_path):
    (tmp_path / canary.KEY).mkdir()
    async with ServerProcess(tmp_path / "server") as server, Api(server) as api:
        await api.open(tmp_path / canary.KEY)

async def test_database(tmp_path):
    server = await ServerProcess(tmp_path / "server").start()
    (server.data_dir / "some.db").write_bytes(b"x" * (1024 * 1024 - 5) + canary.KEY.encode())
    await server.stop()

async def test_log_of_a_server_that_was_killed(tmp_path):
    server = await ServerProcess(tmp_path / "server").start()
    with server.log_file.open("a") as log:
        log.write(canary.KEY)
    await server.kill()

def test_innocent(): print("nothing to see")
"""
WORDS = {
    "test_prints": "Captured stdout call: Authorization: Bearer",
    "test_logs": "Captured stdout call",
    "test_event": "an event has",
    "test_unmarked": "api_key in a test's config needs",
    "test_answer": "the answer to POST /v1/workspaces has",
    "test_database": "some.db has",
    "test_log_of_a_server_that_was_killed": "server.log has",
}


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each of the tests above was told, by its name."""
    directory = tmp_path_factory.mktemp("leaky")
    (directory / "test_leaky.py").write_text(LEAKY)
    (directory / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
    )
    argv = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-p", "no:xdist"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    ended = subprocess.run(argv, cwd=directory, env=environment, capture_output=True, text=True, timeout=100)
    parts = re.split(r"\n_+ (?:ERROR at teardown of )?(test_\w+) _+\n", ended.stdout.partition("short test summary")[0])
    # Not the whole output, should it be wrong: this very test would be found to show a key.
    return {name: said.replace(MARK, "***") for name, said in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.mark.parametrize("name", WORDS)
def test_a_test_that_lets_a_key_out_fails(name: str, complaints: dict[str, str]) -> None:
    """A39: else a key in a log, an answer, an event or the database would be found by somebody else."""
    assert WORDS[name] in complaints[name]


def test_no_other_test_is_blamed(complaints: dict[str, str]) -> None:
    """Else people learn to ignore the complaint."""
    assert set(complaints) == set(WORDS)


async def test_neither_a_provider_nor_a_command_can_bring_a_key_out(tmp_path: Path) -> None:
    """A39: a provider that repeats the key it refuses, and a command that prints its environment, at the noisiest."""
    (tmp_path / "project").mkdir()
    async with ModelServer() as model:
        server = ServerProcess(tmp_path / "server", config=openai_config(model.url))
        await server.start({"WINDLASS_LOG": "debug", "OPENAI_API_KEY": KEY})
        try:
            async with Api(server) as api:
                await api.open(tmp_path / "project", yolo=True)
                async with api.stream(deltas=True) as tap:
                    session = await api.new_session()
                    run = await api.prompt(session, "What is in your environment?")
                    call = await model.next_call()
                    assert call.headers["Authorization"] == f"Bearer {KEY}"  # so it was there to be let out
                    await call.tool(
                        "bash", {"command": "env; tr '\\0' ' ' < /proc/$PPID/environ", "description": "look"}
                    )
                    await call.end("tool_calls")
                    call = await model.next_call()
                    shown = str(call.request["messages"][-1])
                    assert "PATH=" in shown and ENVIRONMENT["WINDLASS_TEST_API_KEY"] not in shown
                    await call.fail(403, {"error": {"message": f"Incorrect API key provided: {KEY}. Bearer {KEY}"}})
                    await tap.complete(run["run_id"])
                    assert "refused the API key" in (await api.run(run["run_id"]))["error"]
        finally:
            await server.stop()  # which searches its log and its data
