"""A day's work over the real wire of each provider: read, edited, steered, cancelled, gone on, green, undone."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from story import Story

from windlass.testing.anthropic_wire import AnthropicServer
from windlass.testing.model_call import ModelCall
from windlass.testing.model_server import ModelServer
from windlass.testing.processes import marked
from windlass.testing.responses_wire import ResponsesServer
from windlass.testing.server_process import Api, Event, EventTap, ServerProcess, until

PAGE = Path(__file__).parents[2] / "docs" / "a-session.md"
SERVERS: dict[str, type[ModelServer]] = {
    "openai": ModelServer,
    "openai-responses": ResponsesServer,
    "anthropic": AnthropicServer,
}
MEAN = '''"""Means of numbers."""


def mean(numbers):
    """The arithmetic mean."""
    return sum(numbers) / len(numbers) - 1
'''
TESTS = """import unittest

from mean import mean


class MeanTest(unittest.TestCase):
    def test_the_mean_of_some_numbers(self):
        self.assertEqual(mean([1, 2, 3]), 2)

    def test_the_mean_of_nothing_is_nought(self):
        self.assertEqual(mean([]), 0)


if __name__ == "__main__":
    unittest.main()
"""
RUN_TESTS = "set -o pipefail; python3 -m unittest -q 2>&1 | tail -n 1"
PATIENT = f"{RUN_TESTS}; echo waiting; sleep 4711"


@pytest.fixture(params=list(SERVERS))
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def provider(wire: str) -> AsyncIterator[ModelServer]:
    async with SERVERS[wire]() as server:
        yield server


@pytest.fixture
async def server(wire: str, provider: ModelServer, tmp_path: Path) -> AsyncIterator[ServerProcess]:
    config = (
        f'model = "fake/test-model"\n[providers.fake]\ntype = "{wire}"\nbase_url = "{provider.url}"\n'
        'api_key = "secretcanary-of-the-story"\nmodels = [{ id = "test-model", context_window = 200000 }]\n'
    )
    async with ServerProcess(tmp_path / "server", config=config) as server:
        yield server


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    (path / "mean.py").write_text(MEAN)
    (path / "test_mean.py").write_text(TESTS)
    return path


class Work:
    """One person at work in a session: prompts, and answers what is asked; the test plays the model."""

    def __init__(self, api: Api, tap: EventTap, provider: ModelServer, session: str) -> None:
        self.api, self.tap, self.provider, self.session = api, tap, provider, session
        self._answered = 0

    async def next_call(self, *expected: str) -> ModelCall:
        """The model's next turn, which has been told of these words."""
        call = await self.provider.next_call()
        told = str(call.request)
        assert [words for words in expected if words not in told] == []
        return call

    async def allow(self, tool: str) -> dict[str, Any]:
        """Allow the next thing that is asked for, which is for this tool."""
        number = self._answered
        self._answered += 1
        await until(lambda: len(self._requests()) > number, "a permission is asked for")
        asked = self._requests()[number].body
        assert asked["tool_name"] == tool
        answer = await self.api.ok(
            "POST", "W/permissions/grant", {"permission": {"id": asked["id"]}, "action": "allow"}
        )
        assert answer == {"resolved": True}
        return asked

    def _requests(self) -> list[Event]:
        return [event for event in self.tap.events if event.kind == "permission_request"]


async def test_a_broken_project_is_mended_with_people_in_the_way_and_undone_to_the_start(
    provider: ModelServer, server: ServerProcess, directory: Path
) -> None:
    """B04 B14 B18 B23 I7: else the agent works in a demo, and not through a day with people who change their minds."""
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(Api(server))
        await api.open(directory)
        tap = await stack.enter_async_context(api.stream(deltas=True))
        work = Work(api, tap, provider, await api.new_session("Mend the mean"))
        first = await mend_until_cancelled(work, directory)
        second = await go_on_to_green(work, directory)
        told = Story(directory).tell(tap.facts)
        await undo(api, work.session, [second, first])
    assert (directory / "mean.py").read_text() == MEAN
    assert (directory / "test_mean.py").read_text() == TESTS
    assert told == page_story(), told


async def mend_until_cancelled(work: Work, directory: Path) -> str:
    """Read, run the tests, be steered, edit, and be stopped while a command runs."""
    run = (await work.api.prompt(work.session, "The tests fail. Find out why, and mend it."))["run_id"]
    call = await work.next_call("The tests fail")
    await call.say("I will look at the code and its tests.")
    await call.tool("view", {"file_path": "mean.py"}, "call_a")
    await call.tool("view", {"file_path": "test_mean.py"}, "call_b")
    await call.end()
    call = await work.next_call("len(numbers) - 1", "test_the_mean_of_nothing_is_nought")
    await call.tool("bash", {"command": RUN_TESTS}, "call_c")
    await call.end()
    await work.allow("bash")
    call = await work.next_call("FAILED", "exit code 1")
    steered = await work.api.prompt(work.session, "An empty list has the mean 0.", on_busy="steer")
    assert steered["disposition"] == "steered"
    await call.tool("edit", {"file_path": "mean.py", "old_string": " - 1", "new_string": ""}, "call_d")
    await call.end()
    asked = await work.allow("edit")
    assert "-    return sum(numbers) / len(numbers) - 1" in asked["params"]["diff"]
    call = await work.next_call("An empty list has the mean 0.")
    await call.say("Noted. The tests once more.")
    await call.tool("bash", {"command": PATIENT}, "call_e")
    await call.end()
    await work.allow("bash")
    await work.tap.wait_for("message_delta", shows_output)
    await work.api.ok("POST", f"W/agent/sessions/{work.session}/cancel")
    assert (await work.tap.complete(run)).body["cancelled"]
    await until(lambda: not marked("sleep 4711"), "the command and what it started are gone")
    return str(run)


def shows_output(event: Event) -> bool:
    """Whether people see what the command says while it runs."""
    return event.body["field"] == "content" and "waiting" in event.body["text"]


async def go_on_to_green(work: Work, directory: Path) -> str:
    run = (await work.api.prompt(work.session, "Go on, without the waiting."))["run_id"]
    call = await work.next_call("Go on, without the waiting.", "call_e", "cancelled")
    new = "    if not numbers:\n        return 0\n    return"
    await call.tool("edit", {"file_path": "mean.py", "old_string": "    return", "new_string": new}, "call_f")
    await call.tool("bash", {"command": RUN_TESTS}, "call_g")
    await call.end()
    await work.allow("edit")
    await work.allow("bash")
    call = await work.next_call("exit code 0")
    await call.say("Both tests pass: the mean no longer loses one, and an empty list has the mean 0.")
    await call.end()
    assert (await work.tap.complete(run)).body["text"].startswith("Both tests pass")
    assert passes(directory)
    return str(run)


def passes(directory: Path) -> bool:
    """Whether the project's tests pass, by our own look."""
    command = [sys.executable, "-m", "unittest", "-q"]
    return subprocess.run(command, cwd=directory, capture_output=True).returncode == 0


async def undo(api: Api, session: str, runs: list[str]) -> None:
    """Newest first; the older one alone is refused, because its file was changed since."""
    path = f"W/sessions/{session}/undo"
    early = await api.ok("POST", path, {"run_id": runs[-1]})
    assert (early["restored"], len(early["refused"])) == ([], 1)
    for run in runs:
        answer = await api.ok("POST", path, {"run_id": run})
        assert len(answer["restored"]) == 1 and answer["refused"] == []


def page_story() -> str:
    """The story as the page tells it: its first fenced block."""
    return PAGE.read_text("utf-8").partition("```text\n")[2].partition("```")[0]
