"""`windlass run`, the real program: what it prints where, and the exit code a script gets."""

import asyncio
import json
import os
import pty
import signal
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_windlass import EPOCH, FakeWindlass, a_message, a_notification, a_permission, finish, text
from windlass_program import Program

Start = Callable[..., Awaitable[Program]]


def delta(at: int, words: str, message_id: str = "m1") -> dict[str, Any]:
    place = {"message_id": message_id, "session_id": "ses_1", "part": 0, "type": "text", "field": "text"}
    return {**place, "at": at, "text": words}


def answers(server: FakeWindlass, *pieces: str) -> Callable[[dict[str, Any]], None]:
    """A run that streams the pieces and completes."""

    def play(prompt: dict[str, Any]) -> None:
        begin(server, prompt)
        said = ""
        for piece in pieces:
            server.live("message_delta", delta(len(said), piece))
            said += piece
        server.message("ses_1", a_message("m1", [text(said), finish()]))
        server.finish(prompt["run_id"], text=said)

    return play


def begin(server: FakeWindlass, prompt: dict[str, Any]) -> None:
    server.run_state(prompt["run_id"], "running")
    server.message("ses_1", a_message("m0", [text(prompt["prompt"])], role="user"), "created")
    server.message("ses_1", a_message("m1", []), "created")


async def test_the_answer_goes_to_standard_output_and_the_code_is_zero(server: FakeWindlass, start: Start) -> None:
    """`windlass run ... > file` must hold the answer and nothing else."""
    server.on_prompt = answers(server, "Hello ", "world.")
    program = await start("run", "Say hello", from_nothing=True)
    assert (await program.ended(), program.out) == (0, "Hello world.\n")


async def test_text_is_printed_while_it_comes(server: FakeWindlass, start: Start) -> None:
    """B43: a person watches the answer being written."""
    runs: list[str] = []

    def play(prompt: dict[str, Any]) -> None:
        begin(server, prompt)
        server.live("message_delta", delta(0, "Thinking aloud"))
        runs.append(prompt["run_id"])

    server.on_prompt = play
    program = await start("run", "Go")
    await program.says("Thinking aloud")
    server.message("ses_1", a_message("m1", [text("Thinking aloud, done."), finish()]))
    server.finish(runs[0])
    assert (await program.ended(), program.out) == (0, "Thinking aloud, done.\n")


async def test_a_failed_run_is_code_one_and_says_why(server: FakeWindlass, start: Start) -> None:
    """Else a script would go on with half an answer."""

    def play(prompt: dict[str, Any]) -> None:
        begin(server, prompt)
        server.finish(prompt["run_id"], "failed", error="The model refused the key.")

    server.on_prompt = play
    program = await start("run", "Go")
    assert await program.ended() == 1
    assert "The model refused the key." in program.err


async def test_a_run_that_someone_cancelled_is_code_130(server: FakeWindlass, start: Start) -> None:
    """B03: cancel is not a failure, and a script can tell them apart."""

    def play(prompt: dict[str, Any]) -> None:
        begin(server, prompt)
        server.finish(prompt["run_id"], "canceled", cancelled=True)

    server.on_prompt = play
    assert await (await start("run", "Go")).ended() == 130


async def test_the_first_interrupt_cancels_the_run_and_waits_for_its_end(server: FakeWindlass, start: Start) -> None:
    """Else Ctrl-C would leave the agent working on, unseen."""
    server.on_prompt = lambda prompt: begin(server, prompt)

    def end(run_id: str) -> None:
        server.message("ses_1", a_message("m1", [finish("canceled")]))
        server.finish(run_id, "canceled", cancelled=True)

    server.on_cancel = end
    program = await start("run", "Go")
    await server.asked_for("/agent")
    program.process.send_signal(signal.SIGINT)
    assert await program.ended() == 130
    assert "Canceled." in program.err


async def test_the_second_interrupt_leaves_at_once(server: FakeWindlass, start: Start) -> None:
    """A server that does not answer must not hold the terminal."""
    server.on_prompt = lambda prompt: begin(server, prompt)
    program = await start("run", "Go")
    await server.asked_for("/agent")
    program.process.send_signal(signal.SIGINT)
    await program.says("Ctrl-C again")
    program.process.send_signal(signal.SIGINT)
    assert await program.ended() == 130
    assert "is the server's now" in program.err


async def test_json_prints_the_envelopes_one_a_line(server: FakeWindlass, start: Start) -> None:
    """Scripts read the same shapes as any client of the stream."""
    server.on_prompt = answers(server, "Hi \x1b[2J\u202e")
    program = await start("run", "--json", "Go")
    assert await program.ended() == 0
    events = [json.loads(line) for line in program.out.splitlines()]
    kinds = ["hello", "run", "run", "message", "message", "message_delta", "message", "run", "run_complete"]
    assert [event["type"] for event in events] == kinds
    assert events[-1]["id"] == f"{EPOCH}.{len(server.facts)}"
    assert program.out.isascii()


async def test_other_peoples_runs_on_the_session_are_not_mixed_into_the_answer(
    server: FakeWindlass, start: Start
) -> None:
    """B11: behind a busy session, the output must hold our answer only."""

    def play(prompt: dict[str, Any]) -> None:
        server.message("ses_1", a_message("m9", [text("Theirs.")]), "created")
        server.message("ses_1", a_message("m9", [text("Theirs."), finish()]))
        answers(server, "Ours.")(prompt)

    server.add_session("ses_1")
    server.on_prompt = play
    program = await start("run", "--session", "ses_1", "Go")
    assert (await program.ended(), program.out) == (0, "Ours.\n")


async def test_a_dropped_stream_does_not_repeat_or_lose_text(server: FakeWindlass, start: Start) -> None:
    """B40: the answer in a file must be whole, once."""
    runs: list[str] = []

    def play(prompt: dict[str, Any]) -> None:
        begin(server, prompt)
        server.live("message_delta", delta(0, "One "))
        runs.append(prompt["run_id"])

    server.on_prompt = play
    program = await start("run", "Go")
    await program.says("One ")
    server.drop_streams()
    await asyncio.wait_for(server.attached.wait(), 10)
    server.message("ses_1", a_message("m1", [text("One two."), finish()]))
    server.finish(runs[0])
    assert (await program.ended(), program.out) == (0, "One two.\n")


async def test_an_answer_that_starts_again_is_said_to(server: FakeWindlass, start: Start) -> None:
    """A provider retry: what is on the screen cannot be taken back, so it must be disowned, and the new text shown."""
    runs: list[str] = []

    def play(prompt: dict[str, Any]) -> None:
        begin(server, prompt)
        server.live("message_delta", delta(0, "Wrong"))
        server.message("ses_1", a_message("m1", []))
        server.live("message_delta", delta(0, "Right"))
        runs.append(prompt["run_id"])

    server.on_prompt = play
    program = await start("run", "Go")
    await program.says("Right")
    server.message("ses_1", a_message("m1", [text("Right."), finish()]))
    server.finish(runs[0])
    assert (await program.ended(), program.out) == (0, "Wrong\nRight.\n")
    assert "starts again" in program.err


async def test_dangerous_text_of_the_model_does_not_reach_the_terminal(server: FakeWindlass, start: Start) -> None:
    """A26: a model repeats what a web page told it."""
    server.on_prompt = answers(server, "a\x1b[2Jb")
    program = await start("run", "Go")
    await program.ended()
    assert program.out == "a<U+001B>[2Jb\n"


async def test_tools_are_told_on_standard_error(server: FakeWindlass, start: Start) -> None:
    """A person sees what is done; the answer stays clean."""
    call = {"type": "tool_call", "data": {"id": "c1", "name": "bash", "input": '{"command": "ls"}', "finished": True}}
    result = {"tool_call_id": "c1", "name": "bash", "content": "a\nb\nc", "metadata": "", "is_error": False}

    def play(prompt: dict[str, Any]) -> None:
        begin(server, prompt)
        server.message("ses_1", a_message("m1", [call, finish("tool_use")]))
        server.message("ses_1", a_message("m2", [{"type": "tool_result", "data": result}], role="tool"))
        server.finish(prompt["run_id"])

    server.on_prompt = play
    program = await start("run", "Go")
    await program.ended()
    assert '* bash {"command": "ls"}' in program.err and "  a\n" in program.err
    assert program.out == ""


async def test_without_a_terminal_a_question_says_how_to_answer_it(server: FakeWindlass, start: Start) -> None:
    """B15: else a script would wait for a person who does not know."""
    runs: list[str] = []

    def play(prompt: dict[str, Any]) -> None:
        begin(server, prompt)
        server.fact("permission_request", "created", a_permission("per_1"))
        runs.append(prompt["run_id"])

    server.on_prompt = play
    program = await start("run", "Go")
    await program.says("windlass permissions allow -C ")
    server.fact("permission_notification", "created", a_notification("per_1", "denied", {"name": "ann"}))
    await program.says("Permission denied by ann.")
    server.finish(runs[0])
    assert await program.ended() == 0


@pytest.mark.parametrize(("typed", "pattern"), [("a", ""), ("s", ""), ("s npm test*", "npm test*")])
async def test_on_a_terminal_a_question_is_asked_and_the_answer_sent(
    server: FakeWindlass, start: Start, typed: str, pattern: str
) -> None:
    """B23 B26: the person at the keyboard decides with one letter, or says what else it holds for."""
    runs: list[str] = []

    def play(prompt: dict[str, Any]) -> None:
        begin(server, prompt)
        server.fact("permission_request", "created", a_permission("per_1"))
        runs.append(prompt["run_id"])

    server.on_prompt = play
    keyboard, terminal = pty.openpty()
    try:
        program = await start("run", "Go", stdin=terminal)
        await program.says("Allow? y = yes")
        os.write(keyboard, b"what\n")
        await program.says("Please answer: y = yes")
        os.write(keyboard, f"{typed}\n".encode())
        await server.asked_for("/grant")
        server.finish(runs[0])
        assert await program.ended() == 0
    finally:
        os.close(keyboard)
        os.close(terminal)
    assert (server.grants, server.patterns) == ([("per_1", "allow_session")], [pattern])


async def test_a_prompt_can_come_from_standard_input(server: FakeWindlass, start: Start) -> None:
    """`git diff | windlass run -`"""
    server.on_prompt = answers(server, "Read.")
    program = await start("run", "-", stdin=PIPE)
    program.type("Review this.")
    assert program.process.stdin is not None
    program.process.stdin.close()
    assert await program.ended() == 0
    assert server.prompts[0]["prompt"] == "Review this.\n"


async def test_another_model_than_asked_for_is_said(server: FakeWindlass, start: Start) -> None:
    """A server that does not know the wish must not be believed to have followed it."""
    server.on_prompt = answers(server, "Hi")
    program = await start("run", "--model", "local/big", "Go")
    assert await program.ended() == 0
    assert server.prompts[0]["model"] == "local/big"
    assert "The server used scripted/demo, not local/big." in program.err


async def test_a_run_whose_end_is_among_what_is_gone_still_ends(server: FakeWindlass, start: Start) -> None:
    """B41: after a restore the stream says `reset`; the run's end is then asked for."""
    server.on_prompt = lambda prompt: begin(server, prompt)
    program = await start("run", "Go")
    await server.asked_for("/agent")
    run_id = server.prompts[0]["run_id"]
    done = a_message("m1", [text("Meanwhile done."), finish()])
    server.messages["ses_1"] = [done]
    server.runs[run_id] |= {"state": "completed", "message_ids": ["m1"]}
    server.epoch = "another"
    server.drop_streams()
    assert (await program.ended(), program.out) == (0, "Meanwhile done.\n")
