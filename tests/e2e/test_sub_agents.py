"""Sub-agents of a real server, each in a worker process of its own: what people see, answer, cancel and get back."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Starter
from shared_world import Client, finish_of, story

from windlass.fleet.store.store import Store
from windlass.testing.forked_program import fork
from windlass.testing.model_call import ModelCall
from windlass.testing.model_server import ModelServer
from windlass.testing.processes import alive, descendants, marked
from windlass.testing.server_process import EventTap, ServerProcess, until

ROLES = """
[roles.reader]
description = "Reads."
prompt = "You are a careful reader."
read_only = true

[roles.builder]
prompt = "You build."
tools = ["bash", "write", "agent"]

[roles.worktree]
worktree = true
"""


class Family:
    """One session whose model starts agents, with a client that watches."""

    def __init__(self, server: ServerProcess, model: ModelServer, api: Client, tap: EventTap, session_id: str) -> None:
        self.server = server
        self.model = model
        self.api = api
        self.tap = tap
        self.session_id = session_id
        self._waiting: list[ModelCall] = []

    async def call(self, prompt: str) -> ModelCall:
        """The next request to the model in the conversation that began with this prompt."""
        while True:
            for call in self._waiting:
                if first_prompt(call) == prompt:
                    self._waiting.remove(call)
                    return call
            self._waiting.append(await self.model.next_call())

    async def use(self, prompt: str, name: str, /, **arguments: Any) -> None:
        """The model of this conversation uses a tool."""
        call = await self.call(prompt)
        await call.tool(name, arguments)
        await call.end()

    async def answer(self, prompt: str, text: str) -> None:
        call = await self.call(prompt)
        await call.say(text)
        await call.end()

    async def shown(self, text: str) -> None:
        """Return when everyone has seen this in some message."""
        await self.tap.wait_for("message", lambda event: text in str(event.body["parts"]))

    async def children(self, parent: str = "") -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = await self.api.ok("GET", f"W/sessions?parent={parent or self.session_id}")
        return answer


def first_prompt(call: ModelCall) -> str:
    """Words that follow each other from the same side are one message to a provider."""
    said = next(str(message["content"]) for message in call.request["messages"] if message["role"] == "user")
    return said.partition("\n")[0]


def last_result(call: ModelCall) -> str:
    """What the model was told by the tool it used last."""
    return str(call.request["messages"][-1]["content"])


@pytest.fixture
async def family(start_server: Starter, model: ModelServer, directory: Path, stack: Any) -> Family:
    server = await start_server(agents='placement = "process"\n' + ROLES, permissions='allow = ["agent"]')
    api = await stack.enter_async_context(Client(server))
    await api.open(directory)
    tap = await stack.enter_async_context(api.stream())
    return Family(server, model, api, tap, await api.new_session())


async def test_an_agent_runs_in_a_worker_and_its_answer_comes_back(family: Family) -> None:
    """B72 B73: the whole way of a sub-agent, over a real link."""
    run_id = (await family.api.prompt(family.session_id, "root"))["run_id"]
    await family.use("root", "agent", action="start", role="reader", prompt="child")
    child_call = await family.call("child")
    assert "You are a careful reader." in child_call.request["messages"][0]["content"]
    offered = {tool["function"]["name"] for tool in child_call.request["tools"]}
    assert {"view", "ls", "question", "todos"} <= offered and not {"write", "edit", "bash"} & offered
    (child,) = await family.children()
    assert (child["parent_session_id"], child["role"], child["is_busy"]) == (family.session_id, "reader", True)
    assert any("windlass worker" in line for line in marked("--spec-stdin").values())
    await family.use("root", "agent", action="wait")
    await child_call.say("It is a parser.")
    await child_call.end()
    call = await family.call("root")
    assert "It is a parser." in last_result(call)
    await call.say("Done.")
    await call.end()
    await family.tap.complete(run_id)
    ends = [event.body["session_id"] for event in family.tap.events if event.kind == "run_complete"]
    assert ends == [child["id"], family.session_id]
    assert await family.api.story(child["id"]) == ["user: child", "assistant: It is a parser. [end_turn]"]


async def test_a_model_that_ends_its_turn_hears_of_its_agents_first(family: Family) -> None:
    """B72: else what they did is thrown away because the model did not say "wait"."""
    run_id = (await family.api.prompt(family.session_id, "root"))["run_id"]
    await family.use("root", "agent", action="start", prompt="child")
    await family.answer("root", "I have started it.")
    await family.answer("child", "Here I am.")
    call = await family.call("root")
    assert "Here I am." in last_result(call)
    await call.say("It says: Here I am.")
    await call.end()
    assert (await family.tap.complete(run_id)).body["text"] == "It says: Here I am."


async def test_people_attached_to_the_parent_answer_for_the_child(family: Family, directory: Path) -> None:
    """B72: a question that only the child's session knew of would be seen by nobody."""
    run_id = (await family.api.prompt(family.session_id, "root"))["run_id"]
    await family.use("root", "agent", action="start", role="builder", prompt="child")
    await family.use("child", "bash", command="echo built > made")
    request = (await family.tap.wait_for("permission_request")).body
    (child,) = await family.children()
    assert (request["session_id"], request["root_session_id"]) == (child["id"], family.session_id)
    assert not (directory / "made").exists()
    assert await family.api.answer(request, "allow")
    call = await family.call("child")
    assert (directory / "made").read_text() == "built\n"
    await call.say("Built.")
    await call.end()
    await family.use("root", "agent", action="wait")
    await family.answer("root", "Good.")
    assert (await family.tap.complete(run_id)).body["text"] == "Good."


async def test_a_cancel_of_the_parent_stops_every_level_and_its_processes(family: Family, directory: Path) -> None:
    """B18 B72: two levels below, a command of a worker's worker."""
    run_id = (await family.api.prompt(family.session_id, "root"))["run_id"]
    await family.use("root", "agent", action="start", role="builder", prompt="child")
    await family.use("child", "agent", action="start", role="builder", prompt="grandchild")
    await family.use("grandchild", "bash", command="touch started; exec sleep 1000")
    request = (await family.tap.wait_for("permission_request")).body
    await family.api.answer(request, "allow")
    await until((directory / "started").exists, "the command runs")
    assert (await family.api.cancel(family.session_id)) == [run_id]
    await family.tap.complete(run_id)
    ends = [event.body for event in family.tap.events if event.kind == "run_complete"]
    (child,) = await family.children()
    (grandchild,) = await family.children(child["id"])
    assert [end["session_id"] for end in ends] == [grandchild["id"], child["id"], family.session_id]
    assert all(end["cancelled"] for end in ends)
    # Those below the server: another test's command may look the same.
    await until(lambda: not _sleeping(family.server.pid), "the command is gone")


def _sleeping(pid: int) -> list[int]:
    lines = marked("sleep 1000")
    return [child for child in descendants(pid) if child in lines]


async def test_a_child_whose_worker_is_killed_ends_interrupted_and_the_parent_goes_on(family: Family) -> None:
    """B58 I22: the parent would wait for ever for a process that is gone."""
    run_id = (await family.api.prompt(family.session_id, "root"))["run_id"]
    await family.use("root", "agent", action="start", prompt="child")
    call = await family.call("child")
    await call.say("Half an ans")
    await family.shown("Half an ans")
    await family.use("root", "agent", action="wait")
    workers = {pid for pid in marked("--spec-stdin") if pid in descendants(family.server.pid)}
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    call = await family.call("root")
    assert "interrupted" in last_result(call)
    await call.say("It was lost.")
    await call.end()
    await family.tap.complete(run_id)
    (child,) = await family.children()
    messages = await family.api.messages(child["id"])
    assert (finish_of(messages[-1]), alive(workers)) == ("error", set())
    assert story(messages)[-1] == "assistant: Half an ans [error]"


async def test_after_a_crash_nothing_goes_on_for_a_run_that_is_gone(family: Family, directory: Path) -> None:
    """I3 B13: what waited at an agent would be run, and paid, for a parent that was interrupted."""
    run_id = (await family.api.prompt(family.session_id, "root"))["run_id"]
    await family.use("root", "agent", action="start", prompt="child")
    call = await family.call("child")
    await call.say("Half an ans")
    (child,) = await family.children()
    await family.use("root", "agent", action="steer", id=child["id"], text="and then")
    await family.call("root")  # it was told that the steering was accepted
    await family.server.kill()
    await family.server.start()
    await family.api.open(directory)
    assert (await family.api.run_over(run_id))["state"] == "interrupted"
    runs = {run["prompt"]: run["state"] for run in await family.api.runs(child["id"])}
    assert runs == {"child": "interrupted", "and then": "canceled"}


async def test_an_agent_in_a_worktree_leaves_its_work_on_a_branch(family: Family, directory: Path) -> None:
    """Two agents that write the same files at the same time would undo each other's work."""

    def git(*arguments: str) -> str:
        names = ["-c", "user.name=tester", "-c", "user.email=tester@localhost"]
        argv = ["git", *names, *arguments]
        return subprocess.run(argv, cwd=directory, check=True, capture_output=True, text=True).stdout

    await asyncio.to_thread(git, "init", "-q", "-b", "main")
    (directory / "README").write_text("here\n")
    await asyncio.to_thread(git, "add", ".")
    await asyncio.to_thread(git, "commit", "-q", "-m", "first")
    run_id = (await family.api.prompt(family.session_id, "root"))["run_id"]
    await family.use("root", "agent", action="start", role="worktree", prompt="child")
    await family.use("child", "write", file_path="made.txt", content="by the child\n")
    await family.api.answer((await family.tap.wait_for("permission_request")).body, "allow")
    await family.answer("child", "Written.")
    await family.use("root", "agent", action="wait")
    call = await family.call("root")
    (child,) = await family.children()
    assert child["branch"] and child["branch"] in last_result(call)
    await call.say("Thanks.")
    await call.end()
    await family.tap.complete(run_id)
    assert not (directory / "made.txt").exists()
    assert await asyncio.to_thread(git, "show", f"{child['branch']}:made.txt") == "by the child\n"
    assert len((await asyncio.to_thread(git, "worktree", "list")).splitlines()) == 1


async def test_a_message_waits_for_an_agent_that_is_not_running(family: Family, directory: Path) -> None:
    """B71 B72: handed over at the first step boundary of its next run, once, and then gone from its mailbox."""
    await family.api.prompt(family.session_id, "root")
    await family.use("root", "agent", action="start", prompt="child")
    await family.answer("child", "First.")
    await family.use("root", "agent", action="wait")
    (child,) = await family.children()
    await family.use("root", "agent", action="message", id=child["id"], text="remember the milk")
    await family.use("root", "agent", action="steer", id=child["id"], text="again")
    call = await family.call("child")
    assert last_result(call).startswith("again") and last_result(call).count("remember the milk") == 1
    await call.say("Second.")
    await call.end()
    await family.use("root", "agent", action="wait")
    call = await family.call("root")
    assert "Second." in last_result(call)
    await call.say("Done.")
    await call.end()

    async def is_empty() -> bool:
        mailbox = Store(family.server.data_dir / "agents").mailbox(directory, child["id"])
        counted = await asyncio.to_thread(mailbox.statistics)
        return (counted.waiting, counted.claimed, counted.set_aside) == (0, 0, 0)

    await until(is_empty, "the letter was acknowledged")


async def test_a_letter_from_the_command_line_is_read_at_the_next_runs_first_step(
    family: Family, directory: Path
) -> None:
    """B71: whoever is not an agent of ours can reach one too, while no server knows of it."""
    words = ("--from", "me", "-C", str(directory), "mind the gap")
    await _windlass(family.server, "mailbox", "send", family.session_id, *words)
    await family.api.prompt(family.session_id, "root")
    call = await family.call("root")
    assert "mind the gap" in last_result(call)
    await family.shown("mind the gap")
    assert [line.partition(":")[0] for line in await family.api.story(family.session_id)][:2] == ["user", "user"]
    await call.say("I will.")
    await call.end()


async def _windlass(server: ServerProcess, *arguments: str) -> str:
    assert server.stem is not None
    argv = ["windlass", *arguments, "--data-dir", str(server.data_dir)]
    process = await fork(server.stem, argv, dict(os.environ))
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()
