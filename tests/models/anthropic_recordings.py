"""Answers as the Messages API sends them, byte by byte: event names, pings, cut-up arguments and all."""

from typing import Any

import msgspec


def event(type: str, **fields: Any) -> bytes:
    return f"event: {type}\ndata: ".encode() + msgspec.json.encode({"type": type, **fields}) + b"\n\n"


def start(**usage: int) -> bytes:
    message = {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 1, **usage},
    }
    return event("message_start", message=message)


def block(index: int, begun: dict[str, Any], *deltas: dict[str, Any]) -> bytes:
    pieces = [event("content_block_start", index=index, content_block=begun)]
    pieces += [event("content_block_delta", index=index, delta=delta) for delta in deltas]
    return b"".join([*pieces, event("content_block_stop", index=index)])


def text_block(index: int, *texts: str) -> bytes:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": text} for text in texts))


def thinking_block(index: int, signature: str, *texts: str) -> bytes:
    deltas = [{"type": "thinking_delta", "thinking": text} for text in texts]
    begun = {"type": "thinking", "thinking": "", "signature": ""}
    return block(index, begun, *deltas, {"type": "signature_delta", "signature": signature})


def call_block(index: int, id: str, name: str, *pieces: str) -> bytes:
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
    return block(index, {"type": "tool_use", "id": id, "name": name, "input": {}}, *deltas)


def stop(reason: str, **usage: int) -> bytes:
    ending = event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
    return ending + event("message_stop")


EVERYTHING = b"".join(
    [
        start(input_tokens=7, cache_read_input_tokens=100, cache_creation_input_tokens=20),
        event("ping"),
        thinking_block(0, "RXJzdGU=", "Let me ", "look. \U0001f914"),
        block(1, {"type": "redacted_thinking", "data": "c2VjcmV0"}),
        text_block(2, "Gr\u00fc", "\u00dfe, ", "I look."),
        call_block(3, "toolu_1", "ls", "", '{"pa', 'th": "a/\u00fc"}'),
        thinking_block(4, "WndlaXRl"),
        call_block(5, "toolu_2", "view", "", '{"file": "b"}'),
        stop("tool_use", output_tokens=42),
    ]
)
