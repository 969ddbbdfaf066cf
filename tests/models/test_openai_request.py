"""Our conversation as chat messages."""

import base64

import msgspec
from model_requests import message, request

from windlass.models.openai_request import chat_messages, encode_request
from windlass.wire.messages import (
    Binary,
    BinaryData,
    ImageUrl,
    ImageUrlData,
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


def test_reasoning_is_not_sent_back() -> None:
    """Otherwise providers that forbid it would refuse the request."""
    thought = Reasoning(ReasoningData("secret thought"))
    assert chat_messages("", [message("assistant", thought, "Yes.")]) == [{"role": "assistant", "content": "Yes."}]


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


def test_the_same_request_gives_the_same_bytes() -> None:
    """Otherwise the provider's cache would never find our prefix again."""
    assert encode_request(request()) == encode_request(request())
