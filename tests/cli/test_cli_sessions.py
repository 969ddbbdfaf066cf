"""`windlass sessions undo`, `plan` and `summarize`: what they ask of the server, and what people are told."""

from collections.abc import Awaitable, Callable

from aiohttp import web
from fake_windlass import FakeWindlass, a_message, a_run, finish
from windlass_program import Program

Start = Callable[..., Awaitable[Program]]


async def run(start: Start, *arguments: str) -> Program:
    program = await start(*arguments)
    await program.ended()
    return program


def a_past(server: FakeWindlass, *run_ids: str) -> None:
    """A session in which these have run."""
    server.add_session("ses_abc", "One")
    for run_id in run_ids:
        server.runs[run_id] = {**a_run(run_id, "ses_abc", "go"), "state": "completed", "started_at": "2026-01-01"}


async def test_the_newest_run_is_undone_and_what_was_refused_is_said(server: FakeWindlass, start: Start) -> None:
    """People would believe that everything is as it was."""
    a_past(server, "run_1", "run_2")
    refused = [{"path": "/w/b\x1b[2J", "reason": "It has changed since the run."}]
    server.refuse("/undo", web.json_response({"restored": ["/w/a"], "refused": refused}))
    program = await run(start, "sessions", "undo", "ses_a")
    assert program.out == "Restored /w/a\n"
    assert "/w/b<U+001B>[2J: It has changed since the run." in program.err
    assert ("POST", "/v1/workspaces/ws_1/sessions/ses_abc/undo") in [
        (method, path.partition("?")[0]) for method, path in server.requests
    ]


async def test_a_file_that_the_run_had_made_is_said_to_be_removed(server: FakeWindlass, start: Start) -> None:
    """They would read that it was restored, and then not find it."""
    a_past(server, "run_1")
    undone = {"restored": ["/w/new", "/w/old"], "refused": [], "removed": ["/w/new"]}
    server.refuse("/undo", web.json_response(undone))
    program = await run(start, "sessions", "undo", "ses_a")
    assert program.out == "Removed /w/new, which was new\nRestored /w/old\n"


async def test_a_run_is_named_by_the_beginning_of_its_id(server: FakeWindlass, start: Start) -> None:
    """Nobody types 32 hexadecimal digits; and one that is not there must not become another one."""
    a_past(server, "run_1", "run_2")
    program = await run(start, "sessions", "undo", "ses_a", "run_9")
    assert program.process.returncode == 1 and "There is no run" in program.err
    server.refuse("/undo", web.json_response({"restored": [], "refused": []}))
    program = await run(start, "sessions", "undo", "ses_a", "run_1")
    assert program.process.returncode == 0 and "Nothing to undo" in program.err


async def test_a_session_without_runs_has_nothing_to_undo(server: FakeWindlass, start: Start) -> None:
    """It would end in a stack trace."""
    a_past(server)
    program = await run(start, "sessions", "undo", "ses_a")
    assert program.process.returncode == 1 and "Nothing has run" in program.err


async def test_plan_mode_is_switched(server: FakeWindlass, start: Start) -> None:
    """Only a person may let a plan go on."""
    a_past(server)
    server.refuse("/plan", web.json_response({**server.sessions["ses_abc"], "plan": True}))
    program = await run(start, "sessions", "plan", "ses_a", "on")
    assert program.process.returncode == 0 and "Plan mode is on." in program.err


async def test_a_summary_is_printed(server: FakeWindlass, start: Start) -> None:
    """People would not know what the model still knows."""
    a_past(server)
    answer = {"run_id": "run_1", "message_id": "m1", "summary": "They spoke of ropes."}
    server.refuse("/summarize", web.json_response(answer))
    program = await run(start, "sessions", "summarize", "ses_a")
    assert program.out == "They spoke of ropes.\n"


async def test_the_output_of_a_persons_own_command_is_shown(server: FakeWindlass, start: Start) -> None:
    """Half of what happened in a session would be missing."""
    a_past(server)
    command = {"type": "shell_command", "data": {"command": "ls", "output": "a.txt\n", "exit_code": 0}}
    server.messages["ses_abc"] = [a_message("m1", [command, finish()])]
    assert "a.txt\n[exit code 0]\n" in (await run(start, "sessions", "show", "ses_a")).out
