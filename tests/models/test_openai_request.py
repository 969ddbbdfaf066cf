"""Our conversation as chat messages."""

import base64

import msgspec
import pytest
from model_requests import message, request

from windlass.models.openai_request import chat_messages, encode_request
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


def test_a_step_with_a_tool_becomes_call_and_result() -> None:
    """Otherwise the provider would refuse the next step of every run that used a tool."""
    call = ToolCall(ToolCallData("c1", "ls", '{"path":"."}', finished=True))
    result = ToolResult(ToolResultData("c1", "ls", "a.txt", "", False))
    chat = chat_messages("Be brief.", [message("user", "go"), message("assistant", call), message("tool", result)])
    function = {"name": "ls", "arguments": '{"path":"."}'}
    assert chat == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "go"},
        {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
    ]


def test_a_failed_tool_is_told_as_a_failure() -> None:
    """Otherwise the model would take an error's text for the content it asked for."""
    result = ToolResult(ToolResultData("c1", "ls", "no such directory", "", True))
    assert chat_messages("", [message("tool", result)])[0]["content"] == "Error: no such directory"


def thinking(*parts: Part | str, text: str = "hm", field: str = "reasoning_content", model: str = "m") -> Message:
    """An answer of the model `m` of the provider `p` that thought before it spoke."""
    said = message("assistant", Reasoning(ReasoningData(text, field)), *parts)
    return msgspec.structs.replace(said, provider="p", model=model)


CALL = ToolCall(ToolCallData("c1", "ls", "{}", finished=True))
RESULT = message("tool", ToolResult(ToolResultData("c1", "ls", "a.txt", "", False)))


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thoughts_of_a_turn_with_calls_go_back_under_the_name_they_came_by(field: str) -> None:
    """Otherwise servers that want them back would refuse the step after every call, or all others would refuse us."""
    step = [message("user", "go"), thinking(CALL, field=field), RESULT, thinking("Done.", field=field)]
    chat = chat_messages("", step, "p", "m")
    assert [one[field] for one in chat if one["role"] == "assistant"] == ["hm", "hm"]


def test_a_step_without_thoughts_has_none_where_they_are_wanted() -> None:
    """Otherwise a server that checks for them would refuse a step in which the model thought nothing."""
    silent = msgspec.structs.replace(message("assistant", CALL), provider="p", model="m")
    chat = chat_messages("", [message("user", "go"), thinking(CALL), RESULT, silent, RESULT], "p", "m")
    assert chat[3]["reasoning_content"] == ""


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(thinking("Yes."), id="a turn without calls"),
        pytest.param(thinking(CALL, model="other"), id="another model"),
        pytest.param(thinking(CALL, field=""), id="cut off"),
        pytest.param(thinking(CALL, field='{"encrypted_content":"x"}'), id="another protocol"),
    ],
)
def test_thoughts_do_not_go_back_otherwise(said: Message) -> None:
    """Otherwise providers that forbid it would refuse the request."""
    (chat,) = chat_messages("", [said], "p", "m")
    assert set(chat) <= {"role", "content", "tool_calls"}


def test_an_image_of_a_tool_follows_the_results_of_its_step() -> None:
    """Otherwise a model that looks at a picture would see only its name, or the provider refuse a result that waits."""
    calls = [ToolCall(ToolCallData(id, "view", "{}", finished=True)) for id in ("c1", "c2")]
    picture = ToolResultData("c1", "view", "a.png", "", False, data="QUJD", mime_type="image/png")
    plain = ToolResultData("c2", "view", "text", "", False)
    results = [message("tool", ToolResult(picture)), message("tool", ToolResult(plain))]
    chat = chat_messages("", [message("assistant", *calls), *results])
    assert [one["role"] for one in chat] == ["assistant", "tool", "tool", "user"]
    assert chat[1]["content"] == "a.png"
    assert chat[3]["content"][1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}


def test_consecutive_requests_share_every_byte_before_the_newest_message() -> None:
    """Otherwise the provider's cache would never find our prefix again, and every step would cost in full."""
    picture = ToolResult(ToolResultData("c1", "ls", "a.png", "", False, data="QUJD", mime_type="image/png"))
    step = [thinking("Looking.", CALL), message("tool", picture)]
    messages = [message("user", "go"), *step]
    earlier = chat_messages("Be brief.", messages, "p", "m")
    for more in ([thinking("Done.")], step, [*step, message("user", "wait"), *step]):
        assert chat_messages("Be brief.", [*messages, *more], "p", "m")[: len(earlier)] == earlier


def test_names_and_ids_that_would_be_refused_are_made_to_fit() -> None:
    """Otherwise one name that a model made up, or another provider's long id, would end the session for good."""
    call = ToolCall(ToolCallData("i" * 60, "no such.tool", "{}", finished=True))
    result = ToolResult(ToolResultData("i" * 60, "no such.tool", "There is none.", "", True))
    said, told = chat_messages("", [message("assistant", call), message("tool", result)])
    assert said["tool_calls"][0]["function"]["name"] == "no_such_tool"
    assert said["tool_calls"][0]["id"] == told["tool_call_id"] and len(told["tool_call_id"]) <= 40


def test_images_go_along_as_data_and_by_address() -> None:
    """Otherwise a screenshot would not reach the model."""
    parts = [Binary(BinaryData("a.png", "image/png", "QUJD")), ImageUrl(ImageUrlData("https://example.org/b.png"))]
    content = chat_messages("", [message("user", "look", *parts)])[0]["content"]
    urls = [piece["image_url"]["url"] for piece in content[1:]]
    assert urls == ["data:image/png;base64,QUJD", "https://example.org/b.png"]


def test_an_attached_text_file_is_read_to_the_model() -> None:
    """Otherwise an attached log file would be silently left out."""
    file = Binary(BinaryData("a.log", "text/plain", base64.b64encode(b"line one").decode()))
    assert chat_messages("", [message("user", "see", file)])[0]["content"] == "see\n\nAttached file a.log:\nline one"


def test_an_attachment_that_cannot_be_shown_is_named() -> None:
    """Otherwise the model would answer as if nothing had been attached."""
    file = Binary(BinaryData("a.zip", "application/zip", base64.b64encode(b"\xff\x00").decode()))
    assert "a.zip" in chat_messages("", [message("user", "see", file)])[0]["content"]


def test_user_messages_in_a_row_become_one() -> None:
    """Otherwise local models whose template wants roles to alternate would answer with an error."""
    chat = chat_messages("", [message("user", "one"), message("user", "two")])
    assert chat == [{"role": "user", "content": "one\n\ntwo"}]


def test_merging_keeps_images() -> None:
    """Otherwise a picture sent right before a steering message would be lost."""
    image = Binary(BinaryData("a.png", "image/png", "QUJD"))
    content = chat_messages("", [message("user", "one", image), message("user", "two")])[0]["content"]
    assert [piece["type"] for piece in content] == ["text", "image_url", "text"]


def test_openai_itself_is_told_the_limit_in_its_new_word() -> None:
    """Otherwise its newer models would refuse every request."""
    body = msgspec.json.decode(encode_request(request(max_tokens=5), openai_itself=True))
    assert body["max_completion_tokens"] == 5 and "max_tokens" not in body


def test_openai_itself_is_told_which_conversation_it_is() -> None:
    """Otherwise its cache would be found again by luck; others may refuse a field they do not know."""
    assert msgspec.json.decode(encode_request(request(session_id="s"), openai_itself=True))["prompt_cache_key"] == "s"
    assert b"prompt_cache_key" not in encode_request(request(session_id="s"))


def test_the_same_request_gives_the_same_bytes() -> None:
    """Otherwise the provider's cache would never find our prefix again."""
    assert encode_request(request()) == encode_request(request())
