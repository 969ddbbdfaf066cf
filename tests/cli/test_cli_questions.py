"""Questions of agents at the terminal: `windlass attach` and `run` show and answer them, and so does `questions`."""

import json
import os
import pty
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_windlass import FakeWindlass, a_batch, a_permission, a_question
from windlass_program import Program

from windlass.cli.answering import read_answer
from windlass.client import Invalid, Question, QuestionResponse
from windlass.wire.questions import Choice

Start = Callable[..., Awaitable[Program]]
WHICH = a_question("q1", "single_choice", "Which database?", "SQLite", "PostgreSQL", description="It stays.")
CALLED = a_question("q2", "free_text", "Called what?")


@pytest.fixture
async def attached(server: FakeWindlass, start: Start) -> Program:
    server.add_session("ses_1", "The first one")
    program = await start("attach")
    await program.says("/help lists the commands")
    return program


async def test_a_batch_is_shown_and_sent_when_its_last_question_is_answered(
    server: FakeWindlass, attached: Program
) -> None:
    """B28: half a batch would let the agent go on; and who cannot see the choices cannot choose."""
    server.fact("question_batch_request", "created", a_batch("ask_1", WHICH, CALLED))
    await attached.says("Answer with /answer TEXT")
    for words in ("1/2 Which database?", "It stays.", "2. PostgreSQL", "2/2 Called what?"):
        assert words in attached.err
    attached.type("/answer 2")
    await attached.says("2/2 Called what?", times=2)
    assert server.answers == []
    attached.type("/answer Anchor, of course")
    await server.asked_for("/questions/answer")
    (sent,) = server.answers
    assert sent == {
        "batch_request_id": "ask_1",
        "responses": [
            {"request_id": "q1", "selected_ids": ["c2"]},
            {"request_id": "q2", "fill_in_text": "Anchor, of course"},
        ],
    }


async def test_a_typed_line_is_a_prompt_and_no_answer(server: FakeWindlass, attached: Program) -> None:
    """B28: what is said into the conversation must never be taken for an answer."""
    server.fact("question_batch_request", "created", a_batch("ask_1", CALLED))
    await attached.says("Called what?")
    attached.type("Anchor")
    await server.asked_for("/agent")
    assert (server.answers, server.prompts[0]["prompt"]) == ([], "Anchor")


async def test_a_bare_yes_answers_a_yes_no_question(server: FakeWindlass, attached: Program) -> None:
    """B28: sent as a prompt it would be a sentence that nobody meant."""
    server.fact("question_batch_request", "created", a_batch("ask_1"))
    await attached.says("Go on?")
    attached.type("y")
    await server.asked_for("/questions/answer")
    assert server.answers[0]["responses"] == [{"request_id": "q1", "yes": True}]


async def test_a_bare_yes_is_not_guessed_between_a_tool_and_a_question(server: FakeWindlass, attached: Program) -> None:
    """I10: a yes to the agent's question would run a command."""
    server.fact("permission_request", "created", a_permission("per_1"))
    server.fact("question_batch_request", "created", a_batch("ask_1"))
    await attached.says("Go on?")
    attached.type("y")
    await attached.says("Say which")
    attached.type("/answer no")
    await server.asked_for("/questions/answer")
    attached.type("y")
    await server.asked_for("/grant")
    assert (server.answers[0]["responses"][0]["yes"], server.grants) == (False, [("per_1", "allow")])


async def test_with_two_batches_a_certain_one_is_answered_and_another_declined(
    server: FakeWindlass, attached: Program
) -> None:
    """An answer to the wrong question would be told to the wrong agent."""
    for batch in ("ask_1", "ask_2"):
        server.fact("question_batch_request", "created", a_batch(batch, CALLED))
    await attached.says("(ask_2)")
    attached.type("/answer Anchor")
    await attached.says("Say which question")
    attached.type("/answer ask_2 Anchor")
    await server.asked_for("/questions/answer")
    attached.type("/decline")
    await server.asked_for("/questions/cancel")
    assert [body["batch_request_id"] for body in server.answers] == ["ask_2", "ask_1"]


async def test_an_answer_by_someone_else_and_one_too_late_are_told(server: FakeWindlass, attached: Program) -> None:
    """B23: all see the outcome, whoever gave it; who lost is not shown an error."""
    server.fact("question_batch_request", "created", a_batch("ask_1"))
    end = {"batch_id": "ask_1", "outcome": "answered", "by": {"name": "ann"}}
    server.fact("question_batch_notification", "created", end)
    await attached.says("Question answered by ann.")
    server.resolved = False
    server.fact("question_batch_request", "created", a_batch("ask_2"))
    await attached.says("Go on?", times=2)
    attached.type("/answer yes")
    await attached.says("Too late")


async def test_a_question_that_waited_is_shown_on_attaching_with_nothing_hidden_in_it(
    server: FakeWindlass, start: Start
) -> None:
    """B24 A26: what is answered is what is read."""
    server.add_session("ses_1")
    hidden = a_question("q1", "yes_no", "Go\x1b[A on\u202e?", description="One\n/allow per_1")
    server.batches = [a_batch("ask_1", hidden)]
    program = await start("attach")
    await program.says("(ask_1)")
    assert "Go<U+001B>[A on<U+202E>?" in program.err and "\x1b" not in program.err
    assert "\n/allow per_1" not in program.err


# -- windlass run --


async def test_run_takes_a_typed_line_as_the_answer(server: FakeWindlass, start: Start) -> None:
    """A run in a terminal would wait for ever for an answer that nobody can type."""

    def play(prompt: dict[str, Any]) -> None:
        server.run_state(prompt["run_id"], "running")
        server.fact("question_batch_request", "created", a_batch("ask_1", WHICH))

    server.on_prompt = play
    keyboard, terminal = pty.openpty()
    program = await start("run", "Go", stdin=terminal)
    os.close(terminal)
    try:
        await program.says("Type the answer, or /decline:")
        os.write(keyboard, b"3\n")
        await program.says("There are the numbers 1 to 2.")
        os.write(keyboard, b"1\n")
        await server.asked_for("/questions/answer")
        assert server.answers[0]["responses"] == [{"request_id": "q1", "selected_ids": ["c1"]}]
        server.finish(server.prompts[0]["run_id"])
        assert await program.ended() == 0
    finally:
        os.close(keyboard)


async def test_run_without_a_terminal_says_how_to_answer(server: FakeWindlass, start: Start) -> None:
    """Else a script hangs, and nobody knows why."""

    def play(prompt: dict[str, Any]) -> None:
        server.run_state(prompt["run_id"], "running")
        server.fact("question_batch_request", "created", a_batch("ask_1", WHICH))

    server.on_prompt = play
    program = await start("run", "Go")
    await program.says("windlass questions answer -C ")
    server.finish(server.prompts[0]["run_id"])
    assert await program.ended() == 0


# -- windlass questions --


async def ended(start: Start, *arguments: str, from_nothing: bool = False) -> tuple[int, Program]:
    program = await start(*arguments, from_nothing=from_nothing)
    return await program.ended(), program


async def test_pending_questions_are_listed_for_people_and_for_scripts(server: FakeWindlass, start: Start) -> None:
    """B24."""
    server.batches = [a_batch("ask_1", WHICH, CALLED)]
    _, program = await ended(start, "questions", from_nothing=True)
    assert "ask_1" in program.out and "1/2 Which database? (a number, or your own words)" in program.out
    _, program = await ended(start, "questions", "list", "--json")
    assert json.loads(program.out)[0]["questions"][1]["id"] == "q2"


async def test_a_batch_is_answered_or_declined_in_one_command(server: FakeWindlass, start: Start) -> None:
    """B28: a person on another machine helps a run along."""
    server.batches = [a_batch("ask_1", WHICH, CALLED)]
    assert (await ended(start, "questions", "answer", "ask_1", "postgresql", "Anchor"))[0] == 0
    assert (await ended(start, "questions", "cancel", "ask_1"))[0] == 0
    assert server.answers[0]["responses"] == [
        {"request_id": "q1", "selected_ids": ["c2"]},
        {"request_id": "q2", "fill_in_text": "Anchor"},
    ]
    assert server.answers[1]["batch_request_id"] == "ask_1"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("answer", "ask_1", "1"), 1, "Questions: 2, answers: 1."),
        (("answer", "ask_1", "9", "x"), 1, "the numbers 1 to 2"),
        (("answer", "ask_9", "1", "x"), 1, "no pending question"),
        (("cancel",), 2, "--all"),
    ],
)
async def test_what_cannot_be_sent_is_said(
    server: FakeWindlass, start: Start, arguments: tuple[str, ...], code: int, words: str
) -> None:
    """Half an answer, or one to another question, would be worse than none."""
    server.batches = [a_batch("ask_1", WHICH, CALLED)]
    exit_code, program = await ended(start, "questions", *arguments)
    assert (exit_code, server.answers, words in program.err) == (code, [], True)


async def test_an_answer_that_came_too_late_fails(server: FakeWindlass, start: Start) -> None:
    """A script would believe that it decided."""
    server.batches, server.resolved = [a_batch("ask_1")], False
    for arguments in (("answer", "ask_1", "yes"), ("cancel", "--all")):
        assert (await ended(start, "questions", *arguments))[0] == 1


CHOICES = (Choice("c1", "SQLite"), Choice("c2", "Postgres, of course"), Choice("c3", "None"))


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("yes_no", " YES ", QuestionResponse("q", yes=True)),
        ("yes_no", "n", QuestionResponse("q", yes=False)),
        ("yes_no", "maybe", None),
        ("free_text", " 1 ", QuestionResponse("q", fill_in_text="1")),
        ("free_text", " ", None),
        ("single_choice", "2", QuestionResponse("q", ("c2",))),
        ("single_choice", "postgres, OF course", QuestionResponse("q", ("c2",))),
        ("single_choice", "1,2", None),
        ("single_choice", "0", None),
        ("single_choice", "4", None),
        ("single_choice", "9" * 5000, None),
        ("single_choice", "Neither", QuestionResponse("q", fill_in_text="Neither")),
        ("multi_choice", "3, 1 3", QuestionResponse("q", ("c3", "c1"))),
        ("multi_choice", "1 and 2", QuestionResponse("q", fill_in_text="1 and 2")),
    ],
)
def test_what_is_typed_is_read_as_it_was_meant(kind: Any, text: str, expected: QuestionResponse | None) -> None:
    """A slip of the finger must not be told to the agent as words; nor words as a choice."""
    question = Question("q", kind, "?", choices=CHOICES if "choice" in kind else ())
    if expected is None:
        with pytest.raises(Invalid):
            read_answer(question, text)
    else:
        assert read_answer(question, text) == expected
