"""Our conversation as the body of a chat-completions request.

The body is made the same way every time, so that consecutive requests share their whole prefix and the provider's cache
finds it again: what a message becomes depends on it and on what is before it, never on what follows.
"""

import re
from typing import Any

import msgspec

from windlass.models.openai_thoughts import ThoughtsSent, beside_calls
from windlass.models.pieces import (
    Piece,
    Words,
    call_id,
    foreign_call_id,
    result_picture,
    result_words,
    tool_name,
    user_pieces,
)
from windlass.wire.messages import Message, ToolCallData, ToolResult, ToolResultData
from windlass.wire.model import ModelRequest

ChatMessage = dict[str, Any]
_ID_CHARACTERS = 40  # of a call; OpenAI refuses longer ones here
# These refuse words of the user right after the results of calls: the model has to have said something in between.
_ANSWERS_RESULTS_FIRST = re.compile(r"(mis|mix|minis|codes|devs|magis|pix)tral", re.IGNORECASE)
_BETWEEN = "OK."


def encode_request(
    request: ModelRequest, *, provider: str = "", openai_itself: bool = False, usage: bool = True
) -> bytes:
    """The JSON body. Thoughts go back only in what `provider` itself said, with the same model.

    `openai_itself`: its newer models refuse `max_tokens`, which is all that many others know. `usage`: whether to ask
    for it; most send none else, and some refuse to be asked.
    """
    body: dict[str, Any] = {
        "model": request.model,
        "messages": chat_messages(request.system, request.messages, provider, request.model),
        "stream": True,
    }
    if usage:
        body["stream_options"] = {"include_usage": True}
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
    if openai_itself and request.session_id:
        # Sends the requests of a conversation to the machine that has its beginning in the cache.
        body["prompt_cache_key"] = request.session_id
    return msgspec.json.encode(body)


def chat_messages(system: str, messages: list[Message], provider: str = "", model: str = "") -> list[ChatMessage]:
    """The system prompt and the conversation, user messages that follow one another merged into one."""
    chat = _Chat(provider, model)
    if system:
        chat.messages.append({"role": "system", "content": system})
    for message in messages:
        chat.add(message)
    chat.show_pictures()
    return chat.messages


class _Chat:
    """The conversation so far, as chat messages."""

    def __init__(self, provider: str, model: str) -> None:
        self.messages: list[ChatMessage] = []
        self._author = (provider, model)
        self._answers_results_first = _ANSWERS_RESULTS_FIRST.search(model) is not None
        self._thoughts = ThoughtsSent()
        self._ids: dict[str, str] = {}
        self._pictures: list[Piece] = []  # of results; they wait until the last result of their step has been said

    def add(self, message: Message) -> None:
        if message.role != "tool":
            self.show_pictures()
        match message.role:
            case "user":
                self._thoughts.turn_begins()
                self._say_as_user(user_pieces(message.parts))
            case "assistant":
                self.messages.append(self._answer(message))
            case "tool":
                for part in message.parts:
                    if isinstance(part, ToolResult):
                        self._add_result(part.data)
            case "system":
                self.messages.append({"role": "system", "content": message.text})

    def show_pictures(self) -> None:
        """Show the pictures of tool results as if the user had: a tool's message can hold text alone."""
        if self._pictures:
            self._say_as_user(self._pictures)
            self._pictures = []

    def _answer(self, message: Message) -> ChatMessage:
        is_theirs = bool(message.provider) and (message.provider, message.model) == self._author
        chat: ChatMessage = {"role": "assistant", **(self._thoughts.of(message) if is_theirs else {})}
        text, calls = message.text, message.tool_calls
        if text or not calls:
            # Left away when empty beside calls: some servers refuse an empty text, others a null.
            chat["content"] = text
        if calls:
            extra = beside_calls(message) if is_theirs else {}
            is_foreign = bool(message.provider) and message.provider != self._author[0]
            chat["tool_calls"] = [
                self._call(call, is_foreign, extra.get(str(number))) for number, call in enumerate(calls)
            ]
        return chat

    def _call(self, call: ToolCallData, is_foreign: bool, extra: Any) -> ChatMessage:
        id = foreign_call_id(call.id) if is_foreign else call_id(call.id, _ID_CHARACTERS)
        self._ids[call.id] = id
        chat: ChatMessage = {
            "id": id,
            "type": "function",
            "function": {"name": tool_name(call.name), "arguments": call.input or "{}"},
        }
        if extra is not None:
            chat["extra_content"] = extra
        return chat

    def _add_result(self, result: ToolResultData) -> None:
        id = self._ids.get(result.tool_call_id) or call_id(result.tool_call_id, _ID_CHARACTERS)
        self.messages.append({"role": "tool", "tool_call_id": id, "content": result_words(result)})
        picture = result_picture(result)
        if picture is not None:
            self._pictures += [Words(f"The picture that the tool {result.name} gave back (call {id}):"), picture]

    def _say_as_user(self, pieces: list[Piece]) -> None:
        content = _content(pieces)
        if self.messages and self.messages[-1]["role"] == "user":
            # The templates of many local models raise an error when roles do not alternate.
            content = _joined(self.messages.pop()["content"], content)
        elif self._answers_results_first and self.messages and self.messages[-1]["role"] == "tool":
            self.messages.append({"role": "assistant", "content": _BETWEEN})
        self.messages.append({"role": "user", "content": content})


def _content(pieces: list[Piece]) -> str | list[ChatMessage]:
    """A plain string where it can be: not every local server takes a list."""
    if all(isinstance(piece, Words) for piece in pieces):
        return "\n\n".join(piece.text for piece in pieces if isinstance(piece, Words))
    return [_piece(piece) for piece in pieces]


def _piece(piece: Piece) -> ChatMessage:
    if isinstance(piece, Words):
        return {"type": "text", "text": piece.text}
    image = {"url": piece.url, **({"detail": piece.detail} if piece.detail else {})}
    return {"type": "image_url", "image_url": image}


def _joined(first: str | list[ChatMessage], second: str | list[ChatMessage]) -> str | list[ChatMessage]:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return _pieces(first) + _pieces(second)


def _pieces(content: str | list[ChatMessage]) -> list[ChatMessage]:
    return [_piece(Words(content))] if isinstance(content, str) else content
