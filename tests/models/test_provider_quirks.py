"""What single providers of the chat-completions protocol do in their own way, as their users have seen it."""

import asyncio
from typing import Any

import msgspec
import pytest
from model_requests import collect, message, reasoning_of, request, text_of

from windlass.agent.answer import Answer
from windlass.models.openai_chunks import ChunkReader
from windlass.models.openai_request import encode_request
from windlass.models.refusals import Refusals
from windlass.testing.model_server import ModelServer
from windlass.wire.messages import Message, ToolCall, ToolCallData, ToolResult, ToolResultData
from windlass.wire.model import Chunk, FinishChunk, ModelError, ModelRequest, UsageChunk

REFUSALS = Refusals("google", "https://example.org", "the-key")


def refused(status: int, body: Any, headers: dict[str, str] | None = None) -> ModelError:
    return REFUSALS.from_status(status, headers or {}, msgspec.json.encode(body), "m")


def read(*deltas: dict[str, Any], finish: str = "stop", **more: Any) -> list[Chunk]:
    chunks: list[Chunk] = []
    reader = ChunkReader("google", REFUSALS, chunks.append)
    for delta in deltas:
        reader.read(msgspec.json.encode({"choices": [{"delta": delta}]}))
    reader.read(msgspec.json.encode({"choices": [{"delta": {}, "finish_reason": finish}], **more}))
    reader.finish()
    return chunks


def answer_of(chunks: list[Chunk], provider: str = "google", model: str = "gemini") -> Message:
    """The message as the agent keeps it."""
    answer = Answer("m", lambda delta: None, set())
    for chunk in chunks:
        if not isinstance(chunk, UsageChunk):
            answer.take(chunk)
    return answer.message("s", model, provider)


def sent(*messages: Message, provider: str = "google", model: str = "gemini") -> list[dict[str, Any]]:
    asked = ModelRequest(model, "", list(messages), [])
    return msgspec.json.decode(encode_request(asked, provider=provider))["messages"]  # type: ignore[no-any-return]


def call(id: str, name: str = "ls") -> ToolCall:
    return ToolCall(ToolCallData(id, name, "{}"))


def result(id: str) -> Message:
    return message("tool", ToolResult(ToolResultData(id, "ls", "a.txt", "", False)))


def by(provider: str, *parts: Any) -> Message:
    return msgspec.structs.replace(message("assistant", *parts), provider=provider, model="m")


# -- Google ------------------------------------------------------------------------------------------------------------

SIGNED = {"google": {"thought_signature": "c2ln"}}
CALLS = [
    {"index": 0, "id": "f1", "function": {"name": "ls", "arguments": "{}"}, "extra_content": SIGNED},
    {"index": 1, "id": "f2", "function": {"name": "ls", "arguments": "{}"}},
]


def test_the_signature_beside_a_call_goes_back_beside_it() -> None:
    """Otherwise Gemini 3 would refuse every request after its first tool call: "missing a thought_signature"."""
    answer = answer_of(read({"tool_calls": CALLS}, finish="tool_calls"))
    first, second = sent(message("user", "go"), answer, result("f1"), result("f2"))[1]["tool_calls"]
    assert first["extra_content"] == SIGNED
    assert "extra_content" not in second


@pytest.mark.parametrize("other", [{"provider": "openai"}, {"model": "gemini-older"}])
def test_another_model_does_not_get_the_signature(other: dict[str, str]) -> None:
    """Otherwise it would refuse a field that it does not know, or a signature that is not its own."""
    answer = answer_of(read({"tool_calls": CALLS}, finish="tool_calls"))
    (first, _) = sent(message("user", "go"), answer, result("f1"), result("f2"), **other)[1]["tool_calls"]
    assert "extra_content" not in first


def test_a_quota_of_a_minute_is_not_an_empty_purse() -> None:
    """Otherwise a run would fail at once where half a minute of patience helps."""
    told = "You exceeded your current quota, please check your plan and billing details. " + "See there. " * 60
    error = refused(429, [{"error": {"code": 429, "message": f"{told}Please retry in 43.567890123s."}}])
    assert error.retryable and error.retry_after == pytest.approx(43.567890123)


def test_an_empty_purse_is_one() -> None:
    """Otherwise it would be asked again and again for what cannot be."""
    told = "You exceeded your current quota, please check your plan and billing details."
    assert not refused(429, {"error": {"message": told, "code": "insufficient_quota"}}, {"retry-after": "1"}).retryable
    assert not refused(429, {"error": {"message": told}}).retryable


# -- OpenRouter --------------------------------------------------------------------------------------------------------

DETAILS = [
    {"type": "reasoning.text", "text": "Let me ", "index": 0, "format": "anthropic-claude-v1"},
    {"type": "reasoning.text", "text": "look.", "index": 0, "format": "anthropic-claude-v1"},
    {"type": "reasoning.text", "signature": "c2ln", "index": 0, "format": "anthropic-claude-v1"},
    {"type": "reasoning.encrypted", "data": "eHh4", "id": "f1", "index": 1, "format": "google-gemini-v1"},
    {"type": "reasoning.encrypted", "data": "eXl5", "id": "f2", "index": 1, "format": "google-gemini-v1"},
]
ONE_CALL = {"tool_calls": [{"index": 0, "id": "f1", "function": {"name": "ls", "arguments": "{}"}}]}


def test_signed_details_of_thoughts_go_back_whole() -> None:
    """Otherwise Gemini behind OpenRouter refuses to go on, and Claude forgets between two calls what it thought."""
    pieces = [{"reasoning": one.get("text"), "reasoning_details": [one]} for one in DETAILS]
    answer = answer_of(read(*pieces, ONE_CALL, finish="tool_calls"))
    again = sent(message("user", "go"), answer, result("f1"))[1]
    assert again["reasoning_details"] == [
        {
            "type": "reasoning.text",
            "text": "Let me look.",
            "signature": "c2ln",
            "index": 0,
            "format": "anthropic-claude-v1",
        },
        *DETAILS[3:],
    ]
    assert "reasoning" not in again


def test_details_that_are_only_words_go_back_as_words() -> None:
    """Otherwise every thought would be kept twice."""
    piece = {"reasoning": "Hm.", "reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "index": 0}]}
    again = sent(message("user", "go"), answer_of(read(piece, ONE_CALL, finish="tool_calls")), result("f1"))[1]
    assert again["reasoning"] == "Hm." and "reasoning_details" not in again


def test_what_the_provider_behind_the_router_said_is_said() -> None:
    """Otherwise people would read "Provider returned error", and a conversation that is too long would stay so."""
    raw = msgspec.json.encode({"error": {"message": "prompt is too long: 3 tokens > 2 maximum"}}).decode()
    body = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}}
    error = refused(400, body)
    assert error.kind == "overflow" and "3 tokens > 2 maximum" in error.message
    down = {"error": {"message": "x", "metadata": {"raw": "Upstream is down"}}}
    assert "Upstream is down" in refused(502, down).message


# -- Mistral -----------------------------------------------------------------------------------------------------------

STRICT = {
    "object": "error",
    "message": {
        "detail": [
            {
                "type": "extra_forbidden",
                "loc": ["body", "stream_options", "include_usage"],
                "msg": "Extra inputs are not permitted",
                "input": True,
            }
        ]
    },
    "type": "invalid_request_error",
}


async def test_who_refuses_to_be_asked_for_usage_is_not_asked_again(server: ModelServer, open_model) -> None:
    """Otherwise no run with Mistral would ever get an answer."""
    model = open_model(server.url)
    answering = asyncio.ensure_future(collect(model, request()))
    call = await server.next_call()
    assert call.request["stream_options"] == {"include_usage": True}
    await call.fail(422, STRICT)
    for attempt in range(2):
        call = await server.next_call()
        assert "stream_options" not in call.request
        await call.say("Hello.")
        await call.end()
        assert text_of(await answering) == "Hello."
        if not attempt:
            answering = asyncio.ensure_future(collect(model, request()))


def test_ids_of_another_provider_are_made_nine_letters_and_digits() -> None:
    """Otherwise a session that began elsewhere could not go on with Mistral: "must be ... with a length of 9"."""
    _, answer, first, second = sent(
        message("user", "go"),
        by("openai", call("call_" + "x" * 24), call("b")),
        result("call_" + "x" * 24),
        result("b"),
    )
    ids = [one["id"] for one in answer["tool_calls"]]
    assert [first["tool_call_id"], second["tool_call_id"]] == ids
    assert len(set(ids)) == 2 and all(len(id) == 9 and id.isalnum() and id.isascii() for id in ids)


def test_a_provider_s_own_ids_stay_as_they_are() -> None:
    """Otherwise each answer would be told with other ids than the ones the provider gave it."""
    _, answer, told = sent(message("user", "go"), by("google", call("call_1")), result("call_1"))
    assert answer["tool_calls"][0]["id"] == told["tool_call_id"] == "call_1"


@pytest.mark.parametrize(
    ("model", "roles"),
    [
        ("devstral-2512", ["user", "assistant", "tool", "assistant", "user"]),
        ("mistralai/Mistral-Large", ["user", "assistant", "tool", "assistant", "user"]),
        ("gpt-5", ["user", "assistant", "tool", "user"]),
    ],
)
def test_between_a_result_and_a_person_some_models_must_have_said_something(model: str, roles: list[str]) -> None:
    """Otherwise steering a run with Mistral would end it: "Unexpected role 'user' after role 'tool'" (B14)."""
    steered = [message("user", "go"), by("google", call("a")), result("a"), message("user", "rather this")]
    assert [one["role"] for one in sent(*steered, model=model)] == roles


def test_thoughts_among_the_parts_of_a_content_are_shown_as_thoughts() -> None:
    """Otherwise what a model of Mistral thinks for minutes would be seen by nobody."""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm, "}, {"type": "text", "text": "so."}]}
    chunks = read({"content": [thinking]}, {"content": [{"type": "text", "text": "Yes."}]}, {"content": " Good."})
    assert (reasoning_of(chunks), text_of(chunks)) == ("Hm, so.", "Yes. Good.")


# -- others ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["error", "insufficient_system_resource"])
def test_an_answer_that_ends_with_a_failure_is_asked_for_again(reason: str) -> None:
    """Otherwise half an answer of DeepSeek or Mistral would pass for a whole one, and the run for completed."""
    with pytest.raises(ModelError) as caught:
        read({"content": "Half an"}, finish=reason)
    assert caught.value.retryable


@pytest.mark.parametrize(
    "said",
    [
        "The input token count (314175) exceeds the maximum number of tokens allowed (131072).",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)",
        "Prompt exceeds max length",
        "Range of input length should be [1, 129024]",
        "Input is too long for requested model.",
        "Please reduce the length of the messages or completion.",
        "number of input tokens (204703) has exceeded max_prompt_tokens (202752) limit.",
        "the request exceeds the available context size, try increasing it",
        "The number of tokens to keep from the initial prompt is greater than the context length (4096).",
    ],
)
def test_each_provider_s_words_for_too_long_are_understood(said: str) -> None:
    """Otherwise a long session would fail for ever instead of being summed up (B16)."""
    assert refused(400, {"error": {"message": said}}).kind == "overflow"


def test_a_request_that_is_larger_than_a_minute_s_tokens_is_too_long() -> None:
    """Otherwise it would be sent again and again, and never be small enough."""
    said = "Request too large for gpt-5 in organization org-x on tokens per min (TPM): Limit 30000, Requested 40000."
    error = refused(429, {"error": {"message": said, "type": "tokens", "code": "rate_limit_exceeded"}})
    assert (error.kind, error.retryable) == ("overflow", False)


@pytest.mark.parametrize("said", ["max_tokens is too large: 99999", "Invalid prompt: it was flagged", "Unknown tool"])
def test_other_refusals_are_not_taken_for_too_long(said: str) -> None:
    """Otherwise a conversation would be summed up for nothing."""
    assert refused(400, {"error": {"message": said}}).kind == "refused"


def test_an_end_without_a_failure_is_an_end() -> None:
    """Otherwise a new word for the end would fail whole answers."""
    assert read({"content": "Hello"}, finish="eos")[-1] == FinishChunk("end_turn")
