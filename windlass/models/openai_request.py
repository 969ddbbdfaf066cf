"""Our conversation as the body of a chat-completions request.

The body is made the same way every time, so that consecutive requests share their whole prefix and the provider's cache
finds it again.
"""

import base64
import binascii
from typing import Any

import msgspec

from windlass.wire.messages import (
    Binary,
    Finish,
    ImageUrl,
    Message,
    Part,
    Reasoning,
    ShellCommand,
    Text,
    ToolCall,
    ToolResult,
)
from windlass.wire.model import ModelRequest

ChatMessage = dict[str, Any]


def encode_request(request: ModelRequest, *, openai_itself: bool = False) -> bytes:
    """The JSON body. `openai_itself`: its newer models refuse `max_tokens`, which is all that many others know."""
    body: dict[str, Any] = {
        "model": request.model,
        "messages": chat_messages(request.system, request.messages),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
            }
            for tool in request.tools
        ]
    if request.max_tokens:
        body["max_completion_tokens" if openai_itself else "max_tokens"] = request.max_tokens
    if request.reasoning_effort:
        body["reasoning_effort"] = request.reasoning_effort
    return msgspec.json.encode(body)


def chat_messages(system: str, messages: list[Message]) -> list[ChatMessage]:
    """The system prompt and the conversation, user messages that follow one another merged into one."""
    chat: list[ChatMessage] = [{"role": "system", "content": system}] if system else []
    for message in messages:
        for converted in _convert(message):
            if converted["role"] == "user" and chat and chat[-1]["role"] == "user":
                # The templates of many local models raise an error when roles do not alternate.
                chat[-1] = {"role": "user", "content": _joined(chat[-1]["content"], converted["content"])}
            else:
                chat.append(converted)
    return chat


def _convert(message: Message) -> list[ChatMessage]:
    match message.role:
        case "user":
            return [{"role": "user", "content": _content(message.parts)}]
        case "assistant":
            return [_assistant(message)]
        case "tool":
            return [_result(part) for part in message.parts if isinstance(part, ToolResult)]
        case "system":
            return [{"role": "system", "content": message.text}]


def _assistant(message: Message) -> ChatMessage:
    chat: ChatMessage = {"role": "assistant"}
    # Left away when empty beside calls: some servers refuse an empty text, others a null.
    if message.text or not message.tool_calls:
        chat["content"] = message.text
    if message.tool_calls:
        chat["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.input or "{}"}}
            for call in message.tool_calls
        ]
    return chat


def _result(part: ToolResult) -> ChatMessage:
    content = f"Error: {part.data.content}" if part.data.is_error else part.data.content
    return {"role": "tool", "tool_call_id": part.data.tool_call_id, "content": content}


def _content(parts: list[Part]) -> str | list[ChatMessage]:
    """A plain string where it can be: not every local server takes a list."""
    pieces = [piece for part in parts if (piece := _user_piece(part)) is not None]
    if all(piece["type"] == "text" for piece in pieces):
        return "\n\n".join(piece["text"] for piece in pieces)
    return pieces


def _user_piece(part: Part) -> ChatMessage | None:
    match part:
        case Text():
            return _text_piece(part.data.text)
        case ImageUrl():
            image = {"url": part.data.url, **({"detail": part.data.detail} if part.data.detail else {})}
            return {"type": "image_url", "image_url": image}
        case Binary():
            return _attachment(part)
        case ShellCommand():
            said = f"I ran this command (exit code {part.data.exit_code}):\n{part.data.command}\n\n{part.data.output}"
            return _text_piece(said)
        case Reasoning() | ToolCall() | ToolResult() | Finish():
            return None


def _attachment(part: Binary) -> ChatMessage:
    """An image as a data URL, text as text; of anything else only the name, so that the model knows it is there."""
    data = part.data
    if data.mime_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": f"data:{data.mime_type};base64,{data.data}"}}
    try:
        text = base64.b64decode(data.data, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return _text_piece(f"[Attached file {data.path} ({data.mime_type}): not text and not an image, left out.]")
    return _text_piece(f"Attached file {data.path}:\n{text}")


def _text_piece(text: str) -> ChatMessage:
    return {"type": "text", "text": text}


def _joined(first: str | list[ChatMessage], second: str | list[ChatMessage]) -> str | list[ChatMessage]:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return _pieces(first) + _pieces(second)


def _pieces(content: str | list[ChatMessage]) -> list[ChatMessage]:
    return [_text_piece(content)] if isinstance(content, str) else content
