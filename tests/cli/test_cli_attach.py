"""`windlass attach`, the real program: one of several people in a workspace."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_windlass import (
    FakeWindlass,
    a_batch,
    a_message,
    a_notification,
    a_permission,
    a_question,
    a_run,
    finish,
    text,
)
from windlass_program import Program

Start = Callable[..., Awaitable[Program]]


@pytest.fixture
def with_history(server: FakeWindlass) -> None:
    server.add_session("ses_1", "The first one")
    server.add_session("ses_2", "The second one")
    server.messages["ses_1"] = [
        a_message("m1", [text("What is 6 x 7?")], role="user"),
        a_message("m2", [text("It is 42."), finish()]),
    ]


async def attached(start: Start, *arguments: str, from_nothing: bool = False) -> Program:
    program = await start("attach", *arguments, from_nothing=from_nothing)
    await program.says("/help lists the commands")
    return program


@pytest.mark.usefixtures("with_history")
async def test_the_newest_session_is_shown_with_its_history(start: Start) -> None:
    """B24: who comes later sees what was said."""
    program = await attached(start)
    await program.says("> What is 6 x 7?")
    assert "The first one  ses_1" in program.out and "It is 42.\n" in program.out


async def test_an_empty_workspace_gets_a_session(server: FakeWindlass, start: Start) -> None:
    """Else the first line typed would have nowhere to go."""
    await attached(start)
    assert list(server.sessions) == ["ses_1"]


@pytest.mark.usefixtures("with_history")
async def test_a_typed_line_is_a_prompt(server: FakeWindlass, start: Start) -> None:
    """The way to take part."""
    program = await attached(start, from_nothing=True)
    program.type("And 6 x 8?")
    await server.asked_for("/agent")
    assert [(prompt["session_id"], prompt["prompt"]) for prompt in server.prompts] == [("ses_1", "And 6 x 8?")]


@pytest.mark.usefixtures("with_history")
async def test_another_clients_prompt_is_shown_with_who_it_was(server: FakeWindlass, start: Start) -> None:
    """B21 B46: people in one workspace see one another."""
    program = await attached(start)
    by = {"name": "phone", "client_id": "12345678-aaaa-bbbb-cccc-123456789012"}
    server.fact("run", "created", a_run("run_9", prompt="Hello from\nthe phone"), by)
    await program.says("phone (12345678) > Hello from\\nthe phone")


@pytest.mark.usefixtures("with_history")
async def test_text_streams_as_it_comes_and_once(server: FakeWindlass, start: Start) -> None:
    """B43."""
    program = await attached(start)
    server.message("ses_1", a_message("m3", []), "created")
    place: dict[str, Any] = {"message_id": "m3", "session_id": "ses_1", "part": 0, "type": "text", "field": "text"}
    server.live("message_delta", {**place, "at": 0, "text": "Forty"})
    await program.says("Forty")
    server.message("ses_1", a_message("m3", [text("Forty-two."), finish()]))
    await program.says("Forty-two.\n")
    assert program.out.count("Forty") == 1


@pytest.mark.usefixtures("with_history")
async def test_other_sessions_are_not_mixed_in(server: FakeWindlass, start: Start) -> None:
    """One conversation at a time is readable."""
    program = await attached(start)
    server.message("ses_2", a_message("m8", [text("Elsewhere."), finish()], session_id="ses_2"))
    server.message("ses_1", a_message("m9", [text("Here."), finish()]))
    await program.says("Here.")
    assert "Elsewhere." not in program.out


@pytest.mark.usefixtures("with_history")
async def test_one_pending_question_is_answered_with_a_letter(server: FakeWindlass, start: Start) -> None:
    """B23."""
    program = await attached(start)
    server.fact("permission_request", "created", a_permission("per_1", "ses_2"))
    await program.says("bash asks to execute (unconfined")
    program.type("y")
    await server.asked_for("/grant")
    assert server.grants == [("per_1", "allow")]


@pytest.mark.usefixtures("with_history")
@pytest.mark.parametrize("typed", ["s npm test*", "/always per_1 npm test*"])
async def test_a_pattern_is_typed_with_the_answer(server: FakeWindlass, start: Start, typed: str) -> None:
    """B26: it must reach the server as it was typed; and everyone sees what was allowed."""
    program = await attached(start)
    server.fact("permission_request", "created", a_permission("per_1"))
    await program.says("/allow per_1")
    server.fact("permission_request", "created", a_permission("per_2", "ses_2"))
    await program.says("/allow per_2")
    told = {**a_notification("per_2", "granted", {"name": "ann"}), "pattern": "make\u202e *"}
    server.fact("permission_notification", "created", told)
    await program.says("Permission granted by ann, for the session and for what fits make<U+202E> *.")
    program.type(typed)
    await server.asked_for("/grant")
    assert (server.grants, server.patterns, server.prompts) == ([("per_1", "allow_session")], ["npm test*"], [])


@pytest.mark.usefixtures("with_history")
@pytest.mark.parametrize(
    ("tool", "action", "covered"),
    [
        ("bash", "execute", "s (exactly this again, for the session)"),
        ("edit", "edit", "s (any edit of this file, for the session)"),
        ("mcp_tiny_add", "call", "s (exactly this again, for the session)"),
    ],
)
async def test_people_are_told_what_an_answer_for_the_session_covers(
    server: FakeWindlass, start: Start, tool: str, action: str, covered: str
) -> None:
    """B26: who is told "this exact call" allows every later edit of the file without knowing."""
    program = await attached(start)
    server.fact("permission_request", "created", a_permission("per_1", tool_name=tool, action=action))
    await program.says(covered)


@pytest.mark.usefixtures("with_history")
async def test_what_is_said_already_and_what_is_not_so_is_not_shown(server: FakeWindlass, start: Start) -> None:
    """Lines that say nothing hide the command; one that says something must stay."""
    program = await attached(start)
    params = {"command": "ls", "working_directory": "/somewhere", "background": False, "timeout_seconds": 0, "t": 120.0}
    server.fact("permission_request", "created", a_permission("per_1", params=params))
    await program.says("/allow per_1")
    assert "in /somewhere" in program.err and "command: ls" in program.err and "timeout_seconds: 0" in program.err
    assert "  t: 120\n" in program.err
    assert "working_directory" not in program.err and "background" not in program.err


@pytest.mark.usefixtures("with_history")
async def test_a_prompt_typed_while_an_agent_asks_is_said_to_be_one(server: FakeWindlass, start: Start) -> None:
    """Somebody who meant to answer would wait for the run that waits for them."""
    program = await attached(start)
    server.fact("question_batch_request", "created", a_batch("ask_1", a_question("q1", "free_text", "Which?")))
    await program.says("Which?")
    program.type("the red one")
    await program.says("That was a prompt. An agent waits for an answer: /answer TEXT.")
    assert server.prompts[0]["prompt"] == "the red one"


@pytest.mark.usefixtures("with_history")
async def test_a_letter_without_a_question_is_a_prompt(server: FakeWindlass, start: Start) -> None:
    """B28, the other way round: nothing typed as a prompt answers a question that comes later."""
    program = await attached(start)
    program.type("y")
    await server.asked_for("/agent")
    assert (server.grants, server.prompts[0]["prompt"]) == ([], "y")


@pytest.mark.usefixtures("with_history")
async def test_with_two_questions_a_certain_one_is_answered(server: FakeWindlass, start: Start) -> None:
    """A bare `y` could mean either; guessing would approve the wrong command."""
    program = await attached(start)
    server.fact("permission_request", "created", a_permission("per_1"))
    server.fact("permission_request", "created", a_permission("per_2"))
    await program.says("/allow per_2")
    program.type("y")
    await program.says("Say which question")
    program.type("/deny per_2")
    await server.asked_for("/grant")
    assert (server.grants, server.prompts) == ([("per_2", "deny")], [])


@pytest.mark.usefixtures("with_history")
async def test_a_question_that_waited_is_shown_on_attaching(server: FakeWindlass, start: Start) -> None:
    """B24."""
    server.pending = [a_permission("per_1")]
    program = await attached(start)
    await program.says("/allow per_1")


@pytest.mark.usefixtures("with_history")
async def test_an_answer_by_someone_else_is_told(server: FakeWindlass, start: Start) -> None:
    """B23: all see the outcome, whoever gave it."""
    program = await attached(start)
    server.fact("permission_request", "created", a_permission("per_1"))
    server.fact("permission_notification", "created", a_notification("per_1", "granted", {"name": "ann"}))
    await program.says("Permission granted by ann.")


@pytest.mark.usefixtures("with_history")
async def test_a_question_with_hidden_characters_shows_them(server: FakeWindlass, start: Start) -> None:
    """A26: what is approved is what is read."""
    program = await attached(start)
    hidden = a_permission("per_1", params={"command": "rm\u200b -rf \u202ex\n/allow"}, description="x\x1b[A")
    server.fact("permission_request", "created", hidden)
    await program.says("/allow per_1")
    assert "rm<U+200B> -rf <U+202E>x\\n/allow" in program.err and "\x1b" not in program.err


@pytest.mark.usefixtures("with_history")
async def test_commands_do_what_they_say(server: FakeWindlass, start: Start) -> None:
    """The whole round: sessions, use, steer, queue, cancel, help, an unknown one, quit."""
    program = await attached(start)
    program.type("/sessions")
    await program.says("* 1. The first one  ses_1")
    program.type("/use 2")
    await program.says("The second one  ses_2")
    program.type("/steer Look left")
    await server.asked_for("/agent")
    assert (server.prompts[0]["session_id"], server.prompts[0]["on_busy"]) == ("ses_2", "steer")
    program.type("/cancel")
    await program.says("Cancelling 1 run(s).")
    program.type("/queue")
    await program.says("Nothing waits.")
    program.type("/new Third")
    await program.says("Third  ses_3")
    program.type("/nonsense")
    await program.says("There is no command /nonsense")
    program.type("/help")
    await program.says("A line is a prompt.")
    program.type("/quit")
    assert await program.ended() == 0


@pytest.mark.usefixtures("with_history")
async def test_a_refused_line_does_not_end_it(server: FakeWindlass, start: Start) -> None:
    """Else one typing mistake would cost the whole view."""
    program = await attached(start)
    program.type("/use nothing")
    await program.says("windlass: There is no session 'nothing' here.")
    program.type("/quit")
    assert await program.ended() == 0


@pytest.mark.usefixtures("with_history")
async def test_the_end_of_the_input_leaves(start: Start) -> None:
    """Ctrl-D."""
    program = await attached(start)
    assert program.process.stdin is not None
    program.process.stdin.close()
    assert await program.ended() == 0


@pytest.mark.usefixtures("with_history")
async def test_it_survives_a_lost_connection(server: FakeWindlass, start: Start) -> None:
    """B40: a restart of the server is a line on the screen, not the end."""
    program = await attached(start)
    server.is_open = False
    server.drop_streams()
    server.message("ses_1", a_message("m3", [text("Back again."), finish()]))
    await program.says("Back again.")
    assert "Connected again." in program.err and server.creates == 2
