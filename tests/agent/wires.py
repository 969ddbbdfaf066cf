"""The three wires: how a conversation is encoded for each, and what its provider refuses."""

from typing import Any

import msgspec
from wire_rules import check_anthropic, check_chat, check_responses

from windlass.models import anthropic_request, openai_request, responses_request
from windlass.wire.messages import Message
from windlass.wire.model import ModelRequest, ToolSpec

TOOLS = [ToolSpec("ls", "Lists.", {"type": "object"})]


def request_of(messages: list[Message]) -> ModelRequest:
    return ModelRequest("test-model", "Be brief.", messages, TOOLS, max_tokens=1_000, session_id="s")


def chat(messages: list[Message]) -> Any:
    return msgspec.json.decode(openai_request.encode_request(request_of(messages), provider="test"))


def anthropic(messages: list[Message]) -> Any:
    return msgspec.json.decode(anthropic_request.encode_request(request_of(messages), "test"))


def responses(messages: list[Message]) -> Any:
    return msgspec.json.decode(responses_request.encode_request(request_of(messages), provider="test"))


WIRES = [(chat, check_chat), (anthropic, check_anthropic), (responses, check_responses)]
