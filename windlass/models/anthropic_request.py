"""Our conversation as the body of a Messages request.

Messages stand last in the body and are made the same way every time: consecutive requests share their whole prefix, and
the provider's cache finds it again.
"""

from typing import Any

import msgspec

from windlass import limits
from windlass.models.anthropic_thinking import thinking
from windlass.models.pieces import Piece, Words, result_picture, tool_name, user_pieces
from windlass.wire.messages import Message, Reasoning, Text, ToolCall, ToolCallData, ToolResult, ToolResultData
from windlass.wire.model import ModelRequest

Block = dict[str, Any]

REDACTED = "redacted:"  # before the signature of thoughts that the provider hides; its own signatures have no colon
_IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")  # others are refused, and the request with them
_THOUGHTS = ("thinking", "redacted_thinking")
_EPHEMERAL = {"type": "ephemeral"}
_LOOKBACK_BLOCKS = 20  # so far before a marker the provider looks for what it has cached
_ID_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"


def encode_request(request: ModelRequest, provider: str, *, with_thoughts: bool = True) -> bytes:
    """The JSON body. `provider` is our name of the provider: only its own thoughts are sent back to it."""
    return msgspec.json.encode(mark(body(request, provider, with_thoughts=with_thoughts)))


def body(request: ModelRequest, provider: str, *, with_thoughts: bool = True) -> dict[str, Any]:
    """The request without cache markers. What stands before the newest message never changes between two of them."""
    max_tokens = request.max_tokens or limits.MODEL_ANSWER_TOKENS
    messages = _Conversation(provider if with_thoughts else None, request.model).blocks(request.messages)
    whole: dict[str, Any] = {"model": request.model, "max_tokens": max_tokens, "stream": True}
    whole |= thinking(request.model, request.reasoning_effort, max_tokens, messages)
    if request.tools:
        whole["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in request.tools
        ]
    if request.system.strip():
        whole["system"] = [_text(request.system)]
    whole["messages"] = messages
    return whole


def mark(body: dict[str, Any]) -> dict[str, Any]:
    """The body with what makes the provider cache it. At most three of the four markers that it allows.

    The top-level marker stands for "the last block" and the one on the system prompt (or the last tool) stays where it
    is, so no byte moves. Only after a step of very many calls a third one says where the request before it ended: the
    provider looks back a bounded number of blocks, and would not find it.
    """
    # Before the messages: they are last, so that a request's bytes are the beginning of the next one's.
    marked = {"model": body["model"], "cache_control": _EPHEMERAL, **body}
    for lasting in ("system", "tools"):
        if lasting in body:
            marked[lasting] = [*body[lasting][:-1], _marked(body[lasting][-1])]
            break
    marked["messages"] = _marked_far_back(body["messages"])
    return marked


def _marked_far_back(messages: list[Block]) -> list[Block]:
    """The messages, with a marker where the request before this one ended, if that is out of the provider's sight."""
    if len(messages) < 3 or len(messages[-1]["content"]) + len(messages[-2]["content"]) < _LOOKBACK_BLOCKS:
        return messages
    asked = messages[-3]
    content = [*asked["content"][:-1], _marked(asked["content"][-1])]
    return [*messages[:-3], {**asked, "content": content}, *messages[-2:]]


def _marked(block: Block) -> Block:
    return {**block, "cache_control": _EPHEMERAL}


class _Conversation:
    """Turns messages into the provider's, with roles that alternate. `provider` None: no thoughts at all."""

    def __init__(self, provider: str | None, model: str) -> None:
        self._provider = provider
        self._model = model
        self._ids: dict[str, str] = {}
        self._taken: set[str] = set()

    def blocks(self, messages: list[Message]) -> list[Block]:
        turns: list[Block] = []
        for message in messages:
            role, content = self._converted(message)
            if not content:
                continue
            if turns and turns[-1]["role"] == role:
                turns[-1] = {"role": role, "content": _results_first([*turns[-1]["content"], *content])}
            else:
                turns.append({"role": role, "content": content})
        return turns

    def _converted(self, message: Message) -> tuple[str, list[Block]]:
        match message.role:
            case "assistant":
                return "assistant", self._answer(message)
            case "tool":
                return "user", [self._result(part.data) for part in message.parts if isinstance(part, ToolResult)]
            case "system":
                # Older models know only the one at the top, and that one must not change in mid-conversation.
                return "user", _shown([Words(f"<system>\n{message.text}\n</system>")])
            case "user":
                return "user", _shown(user_pieces(message.parts))

    def _answer(self, message: Message) -> list[Block]:
        is_own = message.provider == self._provider and message.model == self._model
        content: list[Block] = []
        for part in message.parts:
            match part:
                case Text() if part.data.text.strip():
                    content.append(_text(part.data.text))
                case Reasoning() if is_own and part.data.signature:
                    content.append(_thought(part))
                case ToolCall():
                    content.append(self._call(part.data))
                case _:
                    pass
        while content and content[-1]["type"] in _THOUGHTS:
            # An answer that was cut off while it thought: one that ends so is refused.
            content.pop()
        return content

    def _call(self, call: ToolCallData) -> Block:
        return {"type": "tool_use", "id": self._id(call.id), "name": tool_name(call.name), "input": _object(call.input)}

    def _result(self, result: ToolResultData) -> Block:
        block: Block = {"type": "tool_result", "tool_use_id": self._id(result.tool_call_id)}
        content = [_text(result.content)] if result.content.strip() else []
        picture = result_picture(result)
        if result.is_error:
            block["is_error"] = True  # with a picture in it, it would be refused
        elif picture is not None:
            content += _shown([picture])
        if content:
            block["content"] = content
        return block

    def _id(self, id: str) -> str:
        """The id in the characters that the provider allows: a session may have begun with another one."""
        known = self._ids.get(id)
        if known is None:
            plain = "".join(one if one in _ID_CHARACTERS else "_" for one in id) or "_"
            known, number = plain, 1
            while known in self._taken:
                number += 1
                known = f"{plain}_{number}"
            self._ids[id] = known
            self._taken.add(known)
        return known


def _results_first(content: list[Block]) -> list[Block]:
    """The provider wants the results of its calls before anything else is said."""
    results = [block for block in content if block["type"] == "tool_result"]
    return results + [block for block in content if block["type"] != "tool_result"] if results else content


def _shown(pieces: list[Piece]) -> list[Block]:
    blocks: list[Block] = []
    for piece in pieces:
        if not isinstance(piece, Words):
            blocks.append(_image(piece.url))
        elif piece.text.strip():
            blocks.append(_text(piece.text))
    return blocks


def _image(url: str) -> Block:
    if not url.startswith("data:"):
        return {"type": "image", "source": {"type": "url", "url": url}}
    head, _, data = url.partition(",")
    media_type, *parameters = head.removeprefix("data:").split(";")
    if media_type not in _IMAGE_TYPES or "base64" not in parameters:
        return _text(f"[An image of type {media_type or 'unknown'}, which this model cannot see, was left out.]")
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def _thought(part: Reasoning) -> Block:
    signature = part.data.signature
    if signature.startswith(REDACTED):
        return {"type": "redacted_thinking", "data": signature.removeprefix(REDACTED)}
    return {"type": "thinking", "thinking": part.data.thinking, "signature": signature}


def _object(text: str) -> dict[str, Any]:
    """The arguments of a call, which this wire wants as an object; none where they are not one."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}


def _text(text: str) -> Block:
    return {"type": "text", "text": text}
