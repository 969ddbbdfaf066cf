"""Conversations as a disk may hold them: cut anywhere by a cancel or a crash, written by several providers."""

import msgspec
from agent_recorders import message
from hypothesis import strategies as st

from windlass.wire.messages import (
    Binary,
    BinaryData,
    Finish,
    FinishData,
    ImageUrl,
    ImageUrlData,
    Message,
    Reasoning,
    ReasoningData,
    ShellCommand,
    ShellCommandData,
    ToolCall,
    ToolCallData,
    ToolResult,
    ToolResultData,
)

# Few ids, so that they collide, and some that one provider makes and another refuses.
ids = st.sampled_from(["", "a", "b", "a_2", "a b", "call|1", "x" * 70])
texts = st.sampled_from(["", " ", "\n\n", "hello", "[]"])
names = st.sampled_from(["ls", "bash", "", "we.ird", "n" * 80])
inputs = st.sampled_from(["", "{}", '{"x": 1}', '{"x', "[]", "null", '{"a": {"b": [1, null]}}'])
reasons = st.sampled_from(["end_turn", "canceled", "error", "tool_use", "max_tokens", "content_filter", "unknown"])
authors = st.sampled_from([("test", "test-model"), ("test", "other-model"), ("other", "test-model"), ("", "")])
signatures = st.sampled_from(
    ["", "c2ln", "redacted:eA", "reasoning_content", '{"encrypted_content": "e"}', '{"is_plain": true}', "{"]
)
images = st.sampled_from(["image/png", "image/webp", "image/svg+xml"])

calls = st.builds(lambda id, name, input: ToolCall(ToolCallData(id, name, input)), ids, names, inputs)
thoughts = st.builds(lambda text, signed: Reasoning(ReasoningData(text, signed)), texts, signatures)
endings = st.builds(lambda reason: Finish(FinishData(reason, 0)), reasons)
ran = st.builds(lambda output: ShellCommand(ShellCommandData("ls", output, 1)), texts)
pictures = st.one_of(
    st.builds(lambda kind: Binary(BinaryData("a.png", kind, "QUJD")), images),
    st.just(Binary(BinaryData("a.txt", "text/plain", "QUJD"))),
    st.just(Binary(BinaryData("a.bin", "application/octet-stream", "//8="))),
    st.just(ImageUrl(ImageUrlData("https://example.org/a.png"))),
)
results = st.builds(
    lambda id, text, failed, kind: ToolResult(
        ToolResultData(id, "ls", text, "", failed, data="QUJD" if kind else "", mime_type=kind or "")
    ),
    ids,
    texts,
    st.booleans(),
    st.one_of(st.none(), images),
)


def _written(role: str, parts: list[object], author: tuple[str, str], is_summary: bool = False) -> Message:
    made = message(role, *parts)  # type: ignore[arg-type]
    return msgspec.structs.replace(made, provider=author[0], model=author[1], is_summary_message=is_summary)


users = st.builds(_written, st.just("user"), st.lists(st.one_of(texts, pictures, ran), max_size=3), st.just(("", "")))
answers = st.builds(
    _written, st.just("assistant"), st.lists(st.one_of(texts, thoughts, calls, calls, endings), max_size=6), authors
)
summaries = st.builds(
    _written,
    st.just("assistant"),
    st.builds(lambda text, picture, end: [text, picture, end], texts, pictures, endings),
    authors,
    st.just(True),
)
shells = st.builds(_written, st.just("assistant"), st.builds(lambda part, end: [part, end], ran, endings), authors)
tools = st.builds(_written, st.just("tool"), st.lists(results, max_size=2), st.just(("", "")))
systems = st.builds(_written, st.just("system"), st.lists(texts, max_size=1), st.just(("", "")))

conversations = st.lists(
    st.one_of(users, users, answers, answers, answers, tools, tools, summaries, shells, systems), max_size=14
)
