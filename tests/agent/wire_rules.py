"""What each provider's API refuses, as checks of a request's body: one function a wire, written from its documentation.

They know nothing of how our encoders work, so that a mistake there is not repeated here.
"""

import json
import re
from typing import Any

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
ANTHROPIC_ID = re.compile(r"[A-Za-z0-9_-]+")
ANTHROPIC_IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}


def check_chat(body: dict[str, Any]) -> None:
    """Chat completions: calls are followed by their results at once, nothing is empty, roles of people alternate."""
    seen: set[str] = set()
    waiting: list[str] = []
    previous = ""
    messages = [message for message in body["messages"] if message["role"] != "system"]
    assert not messages or messages[0]["role"] == "user", "people speak first"
    for message in body["messages"]:
        role = message["role"]
        if role == "tool":
            assert message["tool_call_id"] in waiting, "a result without a call, or not right after it"
            waiting.remove(message["tool_call_id"])
            assert message["content"].strip()
        else:
            assert not waiting, "a call without its result"
        if role in ("user", "system"):
            _check_said(message["content"], {"text", "image_url"})
            assert role == "system" or previous != "user", "two user messages in a row"
        if role == "assistant":
            calls = message.get("tool_calls", [])
            assert calls or message["content"].strip(), "an empty answer"
            assert message.get("content", "x").strip(), "a blank text beside calls"
            for call in calls:
                assert call["type"] == "function" and NAME.fullmatch(call["function"]["name"])
                assert 0 < len(call["id"]) <= 40 and call["id"] not in seen
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
                seen.add(call["id"])
                waiting.append(call["id"])
        previous = role
    assert not waiting
    assert not messages or messages[-1]["role"] in ("user", "tool"), "it is not the model's turn"


def check_anthropic(body: dict[str, Any]) -> None:
    """Messages: roles alternate and begin and end with the user's; results are the first blocks after their calls."""
    messages = body["messages"]
    assert body["max_tokens"] > 0
    roles = [message["role"] for message in messages]
    assert roles == [("user", "assistant")[number % 2] for number in range(len(roles))], "roles do not alternate"
    assert not roles or roles[-1] == "user", "it is not the model's turn"
    seen: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        content = message["content"]
        assert isinstance(content, list) and content, "an empty message"
        kinds = [block["type"] for block in content]
        answered = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        assert sorted(answered) == sorted(waiting), "results and calls do not match"
        assert kinds[: len(answered)] == ["tool_result"] * len(answered), "something stands before a result"
        waiting = []
        for block in content:
            _check_block(block, message["role"])
            if block["type"] == "tool_use":
                assert block["id"] not in seen
                seen.add(block["id"])
                waiting.append(block["id"])
        if message["role"] == "assistant":
            assert kinds[-1] not in ("thinking", "redacted_thinking"), "an answer that ends with a thought"
    assert not waiting


def _check_block(block: dict[str, Any], role: str) -> None:
    match block["type"]:
        case "text":
            assert block["text"].strip(), "a blank text"
        case "image":
            _check_source(block["source"])
            assert role == "user"
        case "tool_use":
            assert role == "assistant" and isinstance(block["input"], dict)
            assert ANTHROPIC_ID.fullmatch(block["id"]) and NAME.fullmatch(block["name"])
        case "tool_result":
            assert role == "user"
            inner = block.get("content", [])
            assert all(one["type"] == "text" for one in inner) or not block.get("is_error"), "a picture in an error"
            for one in inner:
                assert one["type"] in ("text", "image")
                _check_block(one, role)
        case "thinking":
            assert role == "assistant" and block["signature"], "a thought without its signature"
        case "redacted_thinking":
            assert role == "assistant" and block["data"]
        case unknown:
            raise AssertionError(f"a block of type {unknown}")


def _check_source(source: dict[str, Any]) -> None:
    if source["type"] == "base64":
        assert source["media_type"] in ANTHROPIC_IMAGES and source["data"]
    else:
        assert source["type"] == "url" and source["url"]


def check_responses(body: dict[str, Any]) -> None:
    """Responses: each call has one output after it, thoughts are followed by what they led to."""
    items = body["input"]
    waiting: list[str] = []
    seen: set[str] = set()
    after_thought = False
    for item in items:
        is_theirs = item["type"] == "function_call" or item.get("role") == "assistant"
        assert not after_thought or is_theirs or item["type"] == "reasoning", "a thought without what it led to"
        after_thought = item["type"] == "reasoning"
        match item["type"]:
            case "message":
                kinds = {"output_text"} if is_theirs else {"input_text", "input_image"}
                assert item["role"] in ("user", "assistant", "system", "developer")
                assert item["role"] == "assistant" or not waiting, "a call without its output"
                _check_said(item["content"], kinds)
            case "function_call":
                assert 0 < len(item["call_id"]) <= 64 and item["call_id"] not in seen
                assert NAME.fullmatch(item["name"]) and isinstance(json.loads(item["arguments"]), dict)
                seen.add(item["call_id"])
                waiting.append(item["call_id"])
            case "function_call_output":
                assert item["call_id"] in waiting, "an output without a call"
                waiting.remove(item["call_id"])
                _check_said(item["output"], {"input_text", "input_image"})
            case "reasoning":
                assert item.get("encrypted_content") or item.get("content"), "a thought that is not there"
            case unknown:
                raise AssertionError(f"an item of type {unknown}")
    assert not waiting and not after_thought
    if items:
        assert items[0]["type"] == "message" and items[0]["role"] != "assistant", "people speak first"
        assert items[-1]["type"] == "function_call_output" or items[-1].get("role") != "assistant"


def _check_said(content: str | list[dict[str, Any]], kinds: set[str]) -> None:
    if isinstance(content, str):
        assert content.strip(), "nothing is said"
        return
    assert content, "nothing is said"
    for piece in content:
        assert piece["type"] in kinds
        if "text" in piece:
            assert piece["text"].strip(), "a blank text"
