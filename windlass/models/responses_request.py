"""Our conversation as the body of a request to OpenAI's Responses protocol.

The body is made the same way every time and the conversation is its end, so that consecutive requests share their whole
prefix and the provider's cache finds it again.
"""

from typing import Any

import msgspec

from windlass.models.pieces import (
    Piece,
    Words,
    call_id,
    result_picture,
    result_words,
    tool_name,
    user_pieces,
)
from windlass.models.responses_thoughts import has_phases, thinks, thoughts_item
from windlass.wire.messages import Message, Reasoning, Text, ToolCall, ToolCallData, ToolResult, ToolResultData
from windlass.wire.model import ModelRequest

Item = dict[str, Any]
_ID_CHARACTERS = 64  # of a call; longer ones are refused
_LEAST_OUTPUT_TOKENS = 16  # fewer are refused


def encode_request(request: ModelRequest, *, provider: str = "", summaries: bool = True) -> bytes:
    """The JSON body. Thoughts go back only in what `provider` itself said, with the same model.

    `summaries`: whether to ask for the thoughts in words a person can read.
    """
    body: dict[str, Any] = {"model": request.model, "stream": True, "store": False}
    if request.system:
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
                "strict": False,  # strict schemas may have no optional fields, and ours have
            }
            for tool in request.tools
        ]
        body["parallel_tool_calls"] = True
    if request.max_tokens:
        body["max_output_tokens"] = max(request.max_tokens, _LEAST_OUTPUT_TOKENS)
    if thinks(request.model, request.reasoning_effort):
        body["include"] = ["reasoning.encrypted_content"]
        reasoning = _reasoning(request.reasoning_effort, summaries)
        if reasoning:
            body["reasoning"] = reasoning
    if request.session_id:
        # Sends the requests of a conversation to the machine that has its beginning in the cache.
        body["prompt_cache_key"] = request.session_id
    body["input"] = input_items(request.messages, provider, request.model)
    return msgspec.json.encode(body)


def input_items(messages: list[Message], provider: str = "", model: str = "") -> list[Item]:
    """The conversation; thoughts stand before what they led to."""
    items: list[Item] = []
    for message in messages:
        is_theirs = bool(message.provider) and (message.provider, message.model) == (provider, model)
        items += _convert(message, is_theirs)
    return items


def _convert(message: Message, is_theirs: bool) -> list[Item]:
    match message.role:
        case "user":
            return [_message("user", [_piece(piece) for piece in user_pieces(message.parts)])]
        case "assistant":
            return _answer(message, is_theirs)
        case "tool":
            return [_result(part.data) for part in message.parts if isinstance(part, ToolResult)]
        case "system":
            return [_message("system", [_piece(Words(message.text))])]


def _answer(message: Message, is_theirs: bool) -> list[Item]:
    items: list[Item] = []
    for part in message.parts:
        match part:
            case Reasoning():
                item = thoughts_item(part.data) if is_theirs else None
                if item is not None:
                    items.append(item)
            case Text():
                items.append(_message("assistant", [{"type": "output_text", "text": part.data.text}]))
            case ToolCall():
                items.append(_call(part.data))
            case _:
                pass
    while items and items[-1]["type"] == "reasoning":
        items.pop()  # of an answer that was stopped: thoughts that led to nothing are refused
    if is_theirs and has_phases(message.model):
        _label(items)
    return items


def _label(items: list[Item]) -> None:
    """Say which words were the answer and which were said on the way to it: all that others follow."""
    is_last = True
    for item in reversed(items):
        if item["type"] == "message":
            item["phase"] = "final_answer" if is_last else "commentary"
        is_last = is_last and item["type"] == "reasoning"


def _message(role: str, content: list[Item]) -> Item:
    return {"type": "message", "role": role, "content": content}


def _call(call: ToolCallData) -> Item:
    return {
        "type": "function_call",
        "call_id": call_id(call.id, _ID_CHARACTERS),
        "name": tool_name(call.name),
        "arguments": call.input or "{}",
    }


def _result(result: ToolResultData) -> Item:
    words, picture = result_words(result), result_picture(result)
    return {
        "type": "function_call_output",
        "call_id": call_id(result.tool_call_id, _ID_CHARACTERS),
        "output": words if picture is None else [_piece(Words(words)), _piece(picture)],
    }


def _piece(piece: Piece) -> Item:
    if isinstance(piece, Words):
        return {"type": "input_text", "text": piece.text}
    return {"type": "input_image", "image_url": piece.url, "detail": piece.detail or "auto"}


def _reasoning(effort: str, summaries: bool) -> Item:
    return {**({"effort": effort} if effort else {}), **({"summary": "auto"} if summaries else {})}
