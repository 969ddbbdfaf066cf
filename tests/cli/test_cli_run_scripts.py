"""`windlass run` in scripts: what it reads, how it ends, and that it waits for nobody it was told not to wait for."""

import asyncio
import base64
import json
import signal
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fake_windlass import TOKEN, FakeWindlass, a_message, a_permission, finish, text
from windlass_program import Program

from windlass import limits
from windlass.cli.one_run import OneRun, Request
from windlass.cli.terminal import Terminal
from windlass.client import Client
from windlass.testing.server_process import until

Start = Callable[..., Awaitable[Program]]


def begin(server: FakeWindlass, prompt: dict[str, Any]) -> None:
    server.run_state(prompt["run_id"], "running")
    server.message("ses_1", a_message("m0", [text(prompt["prompt"])], role="user"), "created")
    server.message("ses_1", a_message("m1", []), "created")


def completes(server: FakeWindlass) -> Callable[[dict[str, Any]], None]:
    def play(prompt: dict[str, Any]) -> None:
        begin(server, prompt)
        server.message("ses_1", a_message("m1", [text("Done."), finish()]))
        server.finish(prompt["run_id"], text="Done.")

    return play


def ends_canceled(server: FakeWindlass) -> Callable[[str], None]:
    return lambda run_id: server.finish(run_id, "canceled", cancelled=True)


async def piped(start: Start, content: str, *arguments: str) -> Program:
    program = await start("run", *arguments, stdin=PIPE)
    assert program.process.stdin is not None
    program.process.stdin.write(content.encode())
    program.process.stdin.close()
    await program.ended()
    return program


# -- what is sent ------------------------------------------------------------------------------------------------------


async def test_without_a_prompt_it_is_what_is_piped_in(server: FakeWindlass, start: Start) -> None:
    """`generate-prompt | windlass run`"""
    server.on_prompt = completes(server)
    program = await piped(start, "Say hello.\n")
    assert (program.process.returncode, server.prompts[0]["prompt"]) == (0, "Say hello.\n")


async def test_what_is_piped_in_beside_a_prompt_is_a_block_below_it(server: FakeWindlass, start: Start) -> None:
    """`git diff | windlass run "Review this"`: the diff would be lost, or be taken for the request."""
    server.on_prompt = completes(server)
    await piped(start, "- a\n+ b\n", "Review this")
    assert server.prompts[0]["prompt"] == "Review this\n\n```\n- a\n+ b\n```"


async def test_what_the_user_allows_this_run_is_sent_with_it(
    server: FakeWindlass, start: Start, tmp_path: Path
) -> None:
    """The script would wait for answers that it has given on its command line."""
    (tmp_path / "note.txt").write_text("Hello.")
    server.on_prompt = completes(server)
    options = ["--allow", "edit", "--allow", "bash:make*", "--max-cost", "0.5", "--effort", "high"]
    program = await start("run", *options, "--attach", str(tmp_path / "note.txt"), "Go")
    assert await program.ended() == 0
    prompt = server.prompts[0]
    assert (prompt["allow"], prompt["max_cost"], prompt["reasoning_effort"]) == (["edit", "bash:make*"], 0.5, "high")
    (attached,) = prompt["attachments"]
    assert (attached["file_name"], attached["mime_type"]) == ("note.txt", "text/plain")
    assert base64.b64decode(attached["content"]) == b"Hello."


@pytest.mark.parametrize(("option", "chosen"), [(["--session", "ses_b"], "ses_b2"), (["--continue"], "ses_a1")])
async def test_a_run_goes_on_with_a_session(server: FakeWindlass, start: Start, option: list[str], chosen: str) -> None:
    """Nobody types forty characters of an id, or looks up which session was the last."""
    server.add_session("ses_a1")
    server.add_session("ses_b2")
    server.on_prompt = lambda prompt: server.finish(prompt["run_id"])
    program = await start("run", *option, "Go")
    assert (await program.ended(), server.prompts[0]["session_id"]) == (0, chosen)


# -- how it ends -------------------------------------------------------------------------------------------------------


async def test_a_run_that_takes_too_long_is_cancelled_and_is_code_124(server: FakeWindlass, start: Start) -> None:
    """A job in CI would be killed from outside, and the agent would work on."""
    server.on_prompt = lambda prompt: begin(server, prompt)
    server.on_cancel = ends_canceled(server)
    program = await start("run", "--timeout", "200ms", "Go")
    assert await program.ended() == 124
    assert "cancelled after 0.2 s (--timeout)" in program.err
    assert any(path.endswith("/cancel") for path in server.answered)


async def test_a_run_that_ends_well_in_the_same_instant_has_ended_well(server: FakeWindlass, start: Start) -> None:
    """B10: how a run ended is what the server says, not what the client wanted."""
    server.on_prompt = lambda prompt: begin(server, prompt)
    server.on_cancel = lambda run_id: server.finish(run_id, text="Just done.")
    program = await start("run", "--timeout", "200ms", "Go")
    assert await program.ended() == 0


async def test_a_cancel_that_comes_to_nothing_does_not_hold_a_script(
    server: FakeWindlass, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server that hangs would make --timeout wait for ever."""
    monkeypatch.setattr(limits, "CLIENT_CANCEL_SECONDS", 0.1)
    server.on_prompt = lambda prompt: begin(server, prompt)
    async with Client(server.url, TOKEN) as client:
        workspace = await client.open("/somewhere")
        request = Request(prompt="Go", timeout=0.1)
        code = await OneRun(workspace, Terminal(), request, asyncio.get_running_loop()).execute()
    assert code == 124
    assert "is the server's now" in capsys.readouterr().err


async def test_an_interrupt_before_the_server_answered_still_cancels(server: FakeWindlass, start: Start) -> None:
    """R1: a Ctrl-C between the prompt and its answer would be lost, and the agent would work on."""
    server.accepts.clear()
    server.on_prompt = lambda prompt: begin(server, prompt)
    server.on_cancel = ends_canceled(server)
    program = await start("run", "Go")
    await server.attached.wait()
    await until(
        lambda: any(path.partition("?")[0].endswith("/agent") for _, path in server.requests), "the prompt came"
    )
    program.process.send_signal(signal.SIGINT)
    await program.says("Cancelling")
    server.accepts.set()
    assert await program.ended() == 130
    assert len(server.prompts) == 1


async def test_an_interrupt_while_standard_input_is_read_sends_nothing(server: FakeWindlass, start: Start) -> None:
    """Who forgot that a pipe is open would have to kill it; and must not get half a prompt answered."""
    program = await start("run", "Review this", stdin=PIPE)
    await program.says("</dev/null")
    program.process.send_signal(signal.SIGINT)
    assert (await program.ended(), server.prompts) == (130, [])


# -- who is waited for -------------------------------------------------------------------------------------------------


async def test_with_no_wait_a_permission_is_denied_at_once(server: FakeWindlass, start: Start) -> None:
    """A job in CI would wait a day for a person who does not exist."""
    runs: list[str] = []

    def play(prompt: dict[str, Any]) -> None:
        begin(server, prompt)
        server.fact("permission_request", "created", a_permission("per_1"))
        runs.append(prompt["run_id"])

    server.on_prompt = play
    program = await start("run", "--no-wait", "Go")
    await server.asked_for("/grant")
    server.finish(runs[0])
    assert await program.ended() == 0
    assert server.grants == [("per_1", "deny")]
    assert "Denied: nobody is waited for" in program.err


async def test_with_no_wait_the_questions_of_an_earlier_run_are_left_alone(server: FakeWindlass, start: Start) -> None:
    """B23: a script that queues behind a person's run must not answer for the person."""

    def play(prompt: dict[str, Any]) -> None:
        server.fact("permission_request", "created", a_permission("per_1"))
        server.finish(prompt["run_id"])

    server.add_session("ses_1")
    server.on_prompt = play
    program = await start("run", "--no-wait", "--session", "ses_1", "Go")
    assert (await program.ended(), server.grants) == (0, [])


async def test_with_no_wait_a_question_is_declined(server: FakeWindlass, start: Start) -> None:
    """B28: the agent would wait for words that nobody writes."""
    question = {"id": "q1", "type": "yes_no", "question": "Shall I?"}
    batch = {"id": "ask_1", "session_id": "ses_1", "tool_call_id": "c1", "questions": [question]}
    runs: list[str] = []

    def play(prompt: dict[str, Any]) -> None:
        begin(server, prompt)
        server.fact("question_batch_request", "created", {**batch, "root_session_id": "ses_1", "run_id": "r"})
        runs.append(prompt["run_id"])

    server.on_prompt = play
    program = await start("run", "--no-wait", "Go")
    await server.asked_for("/questions/cancel")
    server.finish(runs[0])
    assert await program.ended() == 0
    assert server.answers == [{"batch_request_id": "ask_1"}]


# -- what is printed ---------------------------------------------------------------------------------------------------


async def test_json_tells_of_sub_agents_too_and_ends_with_the_run(server: FakeWindlass, start: Start) -> None:
    """B72: whoever adds up what a run did would miss most of it; and must know when to stop reading."""

    def play(prompt: dict[str, Any]) -> None:
        begin(server, prompt)
        for id, parent in (("ses_2", "ses_1"), ("ses_3", "ses_2"), ("ses_9", "ses_8")):
            server.fact("session", "created", {"id": id, "parent_session_id": parent, "title": ""})
            server.fact("message", "created", {**a_message(f"m_{id}", [text("Hi")]), "session_id": id})
        server.finish(prompt["run_id"], text="Done.")

    server.on_prompt = play
    program = await start("run", "--json", "Go")
    assert await program.ended() == 0
    events = [json.loads(line) for line in program.out.splitlines()]
    told = [event["payload"]["payload"].get("id") for event in events if event["type"] in ("session", "message")]
    assert told == ["m0", "m1", "ses_2", "m_ses_2", "ses_3", "m_ses_3"]
    assert events[-1]["type"] == "run_complete"


async def test_json_ends_with_the_run_also_when_its_end_is_gone(server: FakeWindlass, start: Start) -> None:
    """B41: after a restore whoever waits for the last line would wait for ever."""
    server.on_prompt = lambda prompt: begin(server, prompt)
    program = await start("run", "--json", "Go")
    await server.asked_for("/agent")
    run_id = server.prompts[0]["run_id"]
    server.messages["ses_1"] = [a_message("m1", [text("Meanwhile done."), finish()])]
    server.runs[run_id] |= {"state": "completed", "message_ids": ["m1"]}
    server.epoch = "another"
    server.drop_streams()
    assert await program.ended() == 0
    last = json.loads(program.out.splitlines()[-1])
    assert last["type"] == "run_complete"
    assert last["payload"]["payload"]["text"] == "Meanwhile done."


async def test_quiet_says_only_the_answer_and_what_a_person_must_know(server: FakeWindlass, start: Start) -> None:
    """A cron job mails whatever is printed; and must not wait in silence."""
    call = {"type": "tool_call", "data": {"id": "c1", "name": "bash", "input": "{}", "finished": True}}
    runs: list[str] = []

    def play(prompt: dict[str, Any]) -> None:
        begin(server, prompt)
        server.message("ses_1", a_message("m1", [call, finish("tool_use")]))
        server.fact("permission_request", "created", a_permission("per_1"))
        runs.append(prompt["run_id"])

    server.on_prompt = play
    program = await start("run", "--quiet", "Go")
    await program.says("windlass permissions allow -C ")
    server.message("ses_1", a_message("m2", [text("Done."), finish()]), "created")
    server.finish(runs[0])
    assert (await program.ended(), program.out) == (0, "Done.\n")
    assert "* bash" not in program.err


async def test_a_cost_limit_that_could_not_be_kept_is_said(server: FakeWindlass, start: Start) -> None:
    """A model without a price costs nothing by our count; the bill says otherwise."""

    def play(prompt: dict[str, Any]) -> None:
        usage = {"prompt_tokens": 5, "completion_tokens": 5, "cache_read_tokens": 0, "cache_write_tokens": 0}
        server.run_state(prompt["run_id"], "running", usage=usage)
        server.finish(prompt["run_id"])

    server.on_prompt = play
    program = await start("run", "--max-cost", "1", "Go")
    assert await program.ended() == 0
    assert "--max-cost could not limit it" in program.err
