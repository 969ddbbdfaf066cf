"""Any stored conversation is one that a provider accepts (I7)."""

from agent_recorders import message
from hypothesis import given
from hypothesis import strategies as st

from windlass.agent.arguments import parse_arguments
from windlass.agent.history import INTERRUPTED, conversation
from windlass.agent.window import estimate, fit
from windlass.wire.messages import (
    Finish,
    FinishData,
    Message,
    Part,
    Reasoning,
    ReasoningData,
    Text,
    ToolCall,
    ToolCallData,
    ToolResult,
    ToolResultData,
)


def call(id: str, input: str = "{}") -> ToolCall:
    return ToolCall(ToolCallData(id, "ls", input, finished=True))


def result(id: str, content: str = "ok") -> Message:
    return message("tool", ToolResult(ToolResultData(id, "ls", content, "", False)))


# Few ids, so that they collide; texts that are blank, inputs that are not JSON.
ids = st.sampled_from(["", "a", "b", "a_2"])
texts = st.sampled_from(["", " ", "hello"])
calls = st.builds(call, ids, st.sampled_from(["", "{}", '{"x": 1}', '{"x', "[]", "null"]))
thoughts = st.builds(lambda text: Reasoning(ReasoningData(text)), texts)
endings = st.sampled_from(["end_turn", "canceled", "error", "tool_use"]).map(lambda r: Finish(FinishData(r, 0)))
users = texts.map(lambda text: message("user", text))
answers = st.lists(st.one_of(texts, thoughts, calls, endings), max_size=5).map(
    lambda parts: message("assistant", *parts)
)
results = st.builds(result, ids, texts)
conversations = st.lists(st.one_of(users, answers, results), max_size=15)


def assert_valid(messages: list[Message]) -> None:
    """What the strictest of the providers checks."""
    seen: set[str] = set()
    expected: list[str] = []
    for one in messages:
        if one.role == "tool":
            (part,) = one.parts
            assert isinstance(part, ToolResult) and expected and part.data.tool_call_id == expected.pop(0)
            assert part.data.content.strip()
            continue
        assert not expected, "a call without its result"
        assert one.text.strip() or one.tool_calls, "an empty message"
        assert all(part.data.text.strip() for part in one.parts if isinstance(part, Text)), "a blank text"
        for made in one.tool_calls:
            assert made.id and made.id not in seen and made.name
            assert isinstance(parse_arguments(made.input), dict) and made.input
            seen.add(made.id)
            expected.append(made.id)
    assert not expected
    assert not messages or messages[-1].role in ("user", "tool")


@given(conversations)
def test_whatever_is_stored_a_provider_accepts_it(stored: list[Message]) -> None:
    """Otherwise a session that was cancelled or crashed at a bad moment could never be continued (I7)."""
    assert_valid(conversation(stored))


@given(conversations, conversations)
def test_what_was_sent_stays_the_beginning_of_what_is_sent(before: list[Message], after: list[Message]) -> None:
    """Otherwise the provider's cache would be lost, and every step would cost the whole conversation again."""
    # A run that is over writes no more results: what comes after it is a prompt, an answer, and then anything.
    earlier = conversation(before)
    later = conversation([*before, message("user", "next"), message("assistant", "answer"), *after])
    assert later[: len(earlier)] == earlier


@given(conversations)
def test_making_it_valid_twice_changes_nothing(stored: list[Message]) -> None:
    """Otherwise what is valid would still be tampered with."""
    once = conversation(stored)
    assert conversation(once) == once


def test_a_call_without_a_result_gets_one() -> None:
    """Otherwise a crash in a tool would end the session for good."""
    made = conversation([message("user", "go"), message("assistant", call("a")), message("user", "again")])
    part = made[2].parts[0]
    assert [one.role for one in made] == ["user", "assistant", "tool", "user"]
    assert isinstance(part, ToolResult) and (part.data.content, part.data.is_error) == (INTERRUPTED, True)


def test_results_follow_their_calls_in_order_wherever_they_were_stored() -> None:
    """Otherwise results of calls that ran at the same time would be refused or mixed up."""
    stored = [message("user", "go"), message("assistant", call("a"), call("b")), result("b", "B"), result("a", "A")]
    assert [part.data.content for one in conversation(stored)[2:] for part in one.parts] == ["A", "B"]


def test_a_run_cancelled_before_its_first_word_is_bridged() -> None:
    """Otherwise roles would not alternate, or the model would take two prompts for one (B04)."""
    canceled: Part = Finish(FinishData("canceled", 0))
    made = conversation([message("user", "one"), message("assistant", canceled), message("user", "two")])
    assert [one.role for one in made] == ["user", "assistant", "user"] and made[1].text


def test_half_an_answer_is_kept() -> None:
    """Otherwise "go on" after a cancel would begin anew."""
    half = message("assistant", "Once upon", Finish(FinishData("canceled", 0)))
    assert conversation([message("user", "one"), half, message("user", "go on")])[1].text == "Once upon"


def long_run(steps: int) -> list[Message]:
    run = [message("user", "the task")]
    for number in range(steps):
        run += [message("assistant", call(f"c{number}")), result(f"c{number}", "x" * 3_000)]
    return run


def test_a_conversation_that_fits_is_left_alone() -> None:
    """Otherwise the model would forget for no reason."""
    run = long_run(3)
    assert fit(run, 1_000_000) is run


@given(st.integers(1, 60), st.integers(3_000, 20_000))
def test_a_long_run_fits_its_window_stays_valid_and_remembers_its_task(steps: int, budget: int) -> None:
    """Otherwise every long run would end with an overflow, or go on without knowing what it is for."""
    fitted = fit(long_run(steps), budget)
    assert sum(map(estimate, fitted)) <= budget + 200
    assert "the task" in [one.text for one in fitted]
    assert_valid(fitted)


def test_what_is_left_out_moves_in_strides() -> None:
    """Otherwise each step of a long run would change the prefix, and the cache would never be used."""
    beginnings = [fit(long_run(steps), 20_000)[2].tool_calls[0].id for steps in range(20, 60)]
    assert len(set(beginnings)) <= 5


def test_a_steered_run_remembers_its_task_as_well_as_what_was_steered() -> None:
    """Otherwise one word of a person on the way would make a long run forget what it is for (B14)."""
    steered = [*long_run(30), message("user", "and be quick"), *long_run(30)[1:]]
    told = [one.text for one in fit(steered, 20_000) if one.role == "user"]
    assert told[1:] == ["the task", "and be quick"]


def test_what_people_said_long_ago_does_not_fill_the_window() -> None:
    """Otherwise a session of a thousand prompts could never be made to fit again."""
    stored = [message(role, "x" * 3_000) for _ in range(100) for role in ("user", "assistant")]
    stored.append(message("user", "now"))
    fitted = fit(stored, 20_000)
    assert sum(map(estimate, fitted)) <= 20_000 and fitted[-1].text == "now"
