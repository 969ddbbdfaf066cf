"""Our conversation as the body of a Messages request."""

import base64
from typing import Any

import msgspec
import pytest
from model_requests import message, request, tool_spec

from windlass import limits
from windlass.models.anthropic_request import body, encode_request, mark
from windlass.wire.messages import (
    Binary,
    BinaryData,
    ImageUrl,
    ImageUrlData,
    Message,
    Part,
    Reasoning,
    ReasoningData,
    ToolCall,
    ToolCallData,
    ToolResult,
    ToolResultData,
)


def call(id: str = "c1", name: str = "ls", input: str = '{"path":"."}') -> ToolCall:
    return ToolCall(ToolCallData(id, name, input, finished=True))


def result(id: str = "c1", content: str = "a.txt", is_error: bool = False, **picture: str) -> ToolResult:
    return ToolResult(ToolResultData(id, "ls", content, "", is_error, **picture))


def thought(text: str = "Hm.", signature: str = "c2ln") -> Reasoning:
    return Reasoning(ReasoningData(text, signature))


def own(*parts: Part | str, provider: str = "claude", model: str = "test-model") -> Message:
    """An answer of this provider and model."""
    return msgspec.structs.replace(message("assistant", *parts), provider=provider, model=model)


def sent(*messages: Message) -> list[dict[str, Any]]:
    return body(request(messages=list(messages)), "claude")["messages"]


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def test_a_step_with_a_tool_becomes_call_and_result() -> None:
    """Otherwise the provider would refuse the next step of every run that used a tool."""
    assert sent(message("user", "go"), message("assistant", "Looking.", call()), message("tool", result())) == [
        {"role": "user", "content": [text("go")]},
        {
            "role": "assistant",
            "content": [text("Looking."), {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [text("a.txt")]}]},
    ]


def test_roles_alternate_and_results_come_first() -> None:
    """Otherwise a steering message beside the results of two calls would be refused."""
    messages = sent(
        message("user", "one"),
        message("user", "two"),
        message("assistant", call("c1"), call("c2")),
        message("tool", result("c1")),
        message("user", "and quickly"),
        message("tool", result("c2")),
    )
    assert [said["role"] for said in messages] == ["user", "assistant", "user"]
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result", "tool_result", "text"]


def test_answers_in_a_row_become_one() -> None:
    """Otherwise a conversation with two answers and no word between them would be refused."""
    assert [said["role"] for said in sent(message("user", "x"), own("one"), own("two"), message("user", "y"))] == [
        "user",
        "assistant",
        "user",
    ]


def test_system_and_tools_have_their_own_fields() -> None:
    """Otherwise the model would know neither its task nor its tools."""
    tool = tool_spec("ls", "path")
    sent_body = body(request(tools=[tool]), "claude")
    assert sent_body["system"] == [text("Be brief.")]
    assert sent_body["tools"] == [{"name": "ls", "description": "The tool ls.", "input_schema": tool.schema}]


def test_a_system_message_in_the_middle_is_passed_on_as_one() -> None:
    """Otherwise the request would be refused, or a rule of the application be lost."""
    assert sent(message("system", "Be kind."), message("user", "hi")) == [
        {"role": "user", "content": [text("<system>\nBe kind.\n</system>"), text("hi")]}
    ]


def test_the_length_of_an_answer_is_always_bounded() -> None:
    """Otherwise the provider would refuse: it wants a bound, also when nobody set one."""
    assert body(request(), "claude")["max_tokens"] == limits.MODEL_ANSWER_TOKENS
    assert body(request(max_tokens=5), "claude")["max_tokens"] == 5


def test_own_thoughts_go_back_in_their_order_with_their_signatures() -> None:
    """Otherwise a model that thinks between its calls would be refused at its second step."""
    content = sent(message("user", "x"), own(thought("a", "sigA"), "Said.", thought("b", "sigB"), call()))[1]["content"]
    assert content[0] == {"type": "thinking", "thinking": "a", "signature": "sigA"}
    assert [block["type"] for block in content] == ["thinking", "text", "thinking", "tool_use"]


def test_hidden_thoughts_go_back_as_they_came() -> None:
    """Otherwise the model would have forgotten what it thought, or be refused."""
    content = sent(message("user", "x"), own(thought("", "redacted:c2VjcmV0"), "Said."))[1]["content"]
    assert content[0] == {"type": "redacted_thinking", "data": "c2VjcmV0"}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(own(thought(), "Said.", provider="other"), id="another provider's"),
        pytest.param(own(thought(), "Said.", model="another"), id="another model's"),
        pytest.param(own(thought(signature=""), "Said."), id="without a signature"),
    ],
)
def test_thoughts_that_it_cannot_check_are_not_sent(answer: Message) -> None:
    """Otherwise going on with another model would end every session with a refusal."""
    assert sent(message("user", "x"), answer)[1]["content"] == [text("Said.")]


def test_an_answer_that_ends_in_thoughts_is_sent_without_them() -> None:
    """Otherwise a run that was cancelled while the model thought would spoil its session: such an end is refused."""
    assert sent(message("user", "x"), own("Said.", thought()), message("user", "y"))[1]["content"] == [text("Said.")]


def test_thoughts_can_be_left_away_altogether() -> None:
    """Otherwise there would be no way on when the provider refuses their signatures."""
    messages = [message("user", "x"), own(thought(), "Said."), message("user", "y")]
    assert body(request(messages=messages), "claude", with_thoughts=False)["messages"][1]["content"] == [text("Said.")]


def test_blank_texts_are_never_sent() -> None:
    """Otherwise one empty line in a conversation would make every later request of the session fail."""
    messages = sent(
        message("user", "x", " \n"), message("assistant", "", call()), message("tool", result(content=" ")), own("  ")
    )
    assert [len(said["content"]) for said in messages] == [1, 1, 1]
    assert "content" not in messages[2]["content"][0]


def test_a_failed_tool_is_told_as_a_failure_in_words_only() -> None:
    """Otherwise the model would take an error for content; and a picture in an error is refused."""
    block = sent(message("user", "x"), message("assistant", call()), message("tool", result(is_error=True)))[2]
    assert block["content"][0]["is_error"] is True
    picture = {"data": "QUJD", "mime_type": "image/png"}
    failed = message("tool", result(is_error=True, **picture))
    assert sent(message("assistant", call()), failed)[1]["content"][0]["content"] == [text("a.txt")]


def test_a_picture_that_a_tool_found_is_in_its_result() -> None:
    """Otherwise an agent could not look at a screenshot that it took."""
    found = message("tool", result(data="QUJD", mime_type="image/png"))
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    assert sent(message("assistant", call()), found)[1]["content"][0]["content"] == [
        text("a.txt"),
        {"type": "image", "source": source},
    ]


def test_pictures_of_people_go_along_as_data_and_by_address() -> None:
    """Otherwise a screenshot would not reach the model."""
    parts = [
        Binary(BinaryData("a.png", "image/png", "QUJD")),
        ImageUrl(ImageUrlData("https://example.org/b.png")),
        ImageUrl(ImageUrlData("data:image/gif;base64,R0lG")),
    ]
    assert [block["source"] for block in sent(message("user", *parts))[0]["content"]] == [
        {"type": "base64", "media_type": "image/png", "data": "QUJD"},
        {"type": "url", "url": "https://example.org/b.png"},
        {"type": "base64", "media_type": "image/gif", "data": "R0lG"},
    ]


def test_a_picture_of_a_kind_that_it_refuses_is_named() -> None:
    """Otherwise one bitmap would make every later request of the session fail."""
    content = sent(message("user", Binary(BinaryData("a.bmp", "image/bmp", "QUJD"))))[0]["content"]
    assert content[0]["type"] == "text" and "image/bmp" in content[0]["text"]


def test_an_attached_text_file_is_read_to_the_model() -> None:
    """Otherwise an attached log file would be silently left out."""
    file = Binary(BinaryData("a.log", "text/plain", base64.b64encode(b"line one").decode()))
    assert sent(message("user", "see", file))[0]["content"][1] == text("Attached file a.log:\nline one")


@pytest.mark.parametrize("written", ["", "{", "[1]", '"x"', "[" * 100_000])
def test_arguments_that_are_no_object_become_an_empty_one(written: str) -> None:
    """Otherwise a call that was cut off would make every later request of the session fail (A32)."""
    assert sent(message("assistant", call(input=written)))[0]["content"][0]["input"] == {}


def test_ids_and_names_of_other_providers_are_made_to_fit() -> None:
    """Otherwise a session begun with another provider could not go on with this one."""
    messages = sent(
        message("assistant", call("functions.ls:0", "my.ls"), call("functions_ls_0")),
        message("tool", result("functions.ls:0"), result("functions_ls_0")),
    )
    calls, results = messages[0]["content"], messages[1]["content"]
    assert [block["id"] for block in calls] == ["functions_ls_0", "functions_ls_0_2"]
    assert [block["tool_use_id"] for block in results] == ["functions_ls_0", "functions_ls_0_2"]
    assert calls[0]["name"] == "my_ls"


# -- the cache --------------------------------------------------------------------------------------------------------


def markers(value: Any) -> int:
    """How often `cache_control` stands in it."""
    if isinstance(value, list):
        return sum(markers(one) for one in value)
    if not isinstance(value, dict):
        return 0
    return ("cache_control" in value) + sum(markers(one) for one in value.values())


def run_of(steps: int) -> list[Message]:
    messages = [message("user", "go")]
    for step in range(steps):
        messages += [own(thought(signature=f"sig{step}"), call(f"c{step}")), message("tool", result(f"c{step}"))]
    return messages


def test_a_request_is_the_beginning_of_the_next_one_byte_for_byte() -> None:
    """Otherwise the provider's cache would not be found again, and each step be paid for as if it were the first."""
    fields = {"tools": [tool_spec("ls", "path")], "reasoning_effort": "high", "model": "claude-opus-5-5"}
    messages = run_of(30)
    for end in range(1, len(messages), 2):
        before = encode_request(request(messages=messages[:end], **fields), "claude")
        after = encode_request(request(messages=messages[: end + 2], **fields), "claude")
        assert after.startswith(before.removesuffix(b"]}"))


def test_the_newest_message_and_what_never_changes_are_marked() -> None:
    """Otherwise nothing would be cached at all."""
    marked = mark(body(request(messages=run_of(3), tools=[tool_spec("ls")]), "claude"))
    ephemeral = {"type": "ephemeral"}
    assert marked["cache_control"] == marked["system"][-1]["cache_control"] == ephemeral
    assert markers(marked) == 2


def test_without_a_system_prompt_the_last_tool_is_marked() -> None:
    """Otherwise the tools, often the longest part, would be paid for at each new session."""
    marked = mark(body(request(system="", tools=[tool_spec("ls"), tool_spec("view")]), "claude"))
    assert ["cache_control" in tool for tool in marked["tools"]] == [False, True]


@pytest.mark.parametrize(("calls", "wanted"), [(8, 2), (10, 3), (64, 3)])
def test_a_step_of_many_calls_says_where_the_request_before_it_ended(calls: int, wanted: int) -> None:
    """Otherwise the provider, which looks back twenty blocks, would read the whole conversation anew."""
    ids = [f"c{number}" for number in range(calls)]
    messages = [
        *run_of(2),
        own(*(call(id) for id in ids)),
        message("tool", *(result(id) for id in ids)),
    ]
    marked = mark(body(request(messages=messages), "claude"))
    assert markers(marked) == wanted <= 4
    assert ("cache_control" in marked["messages"][-3]["content"][-1]) is (wanted == 3)


def test_marking_leaves_the_body_as_it_was() -> None:
    """Otherwise comparing two requests without their markers would compare something else."""
    plain = body(request(messages=run_of(2)), "claude")
    before = msgspec.json.encode(plain)
    mark(plain)
    assert msgspec.json.encode(plain) == before and markers(plain) == 0
