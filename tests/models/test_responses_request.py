"""Our conversation as items of the Responses protocol."""

import msgspec
import pytest
from model_requests import message, request, tool_spec

from windlass.models.responses_request import encode_request, input_items
from windlass.models.responses_thoughts import signature_of
from windlass.wire.messages import (
    Binary,
    BinaryData,
    ImageUrl,
    ImageUrlData,
    Message,
    Part,
    Reasoning,
    ReasoningData,
    ToolCall,
    ToolCallData,
    ToolResult,
    ToolResultData,
)
from windlass.wire.model import ModelRequest

PROVIDER, MODEL = "openai", "gpt-5.1"
SIGNATURE = signature_of("rs_1", "secret", is_plain=False)


def answer(*parts: Part | str, provider: str = PROVIDER, model: str = MODEL) -> Message:
    return msgspec.structs.replace(message("assistant", *parts), provider=provider, model=model)


def thought(text: str = "hm", signature: str = SIGNATURE) -> Reasoning:
    return Reasoning(ReasoningData(text, signature))


def call(id: str = "c1", name: str = "ls", input: str = '{"path":"."}') -> ToolCall:
    return ToolCall(ToolCallData(id, name, input, finished=True))


def result(id: str = "c1", content: str = "a.txt", is_error: bool = False, **fields: str) -> ToolResult:
    return ToolResult(ToolResultData(id, "ls", content, "", is_error, **fields))


def items(*messages: Message) -> list[dict]:
    return input_items(list(messages), PROVIDER, MODEL)


def body(request: ModelRequest, **options) -> dict:
    return msgspec.json.decode(encode_request(request, provider=PROVIDER, **options))


def test_a_step_with_a_tool_becomes_thoughts_words_call_and_output() -> None:
    """Otherwise the provider would refuse the next step of every run that used a tool (I7)."""
    sent = items(message("user", "go"), answer(thought(), "Looking.", call()), message("tool", result()))
    assert sent == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "secret"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]},
        {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": '{"path":"."}'},
        {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
    ]


def test_thoughts_that_are_hidden_go_back_without_words() -> None:
    """Otherwise a model whose thoughts nobody may read would forget them at every step."""
    assert items(answer(thought(""), call()))[0] == {"type": "reasoning", "summary": [], "encrypted_content": "secret"}


def test_thoughts_that_are_not_encrypted_go_back_as_text() -> None:
    """Otherwise open models behind this protocol would forget their thoughts at every step."""
    plain = thought("aloud", signature_of("rs_2", "", is_plain=True))
    assert items(answer(plain, call()))[0] == {
        "type": "reasoning",
        "id": "rs_2",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "aloud"}],
    }


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(answer(thought(), call(), provider="other"), id="another provider"),
        pytest.param(answer(thought(), call(), model="gpt-5.2"), id="another model"),
        pytest.param(answer(thought(), call(), provider="", model=""), id="nobody knows who"),
        pytest.param(answer(thought(signature="reasoning_content"), call()), id="chat completions"),
        pytest.param(answer(thought(signature="EqQBCkYIBxgCKkD="), call()), id="Anthropic"),
        pytest.param(answer(thought(signature=""), call()), id="cut off"),
        pytest.param(answer(thought(signature="[1]"), call()), id="other JSON"),
    ],
)
def test_only_its_own_complete_thoughts_go_back_to_a_model(said: Message) -> None:
    """Otherwise a session could not go on after a change of the model: what it cannot decrypt, a provider refuses."""
    assert [item["type"] for item in items(said)] == ["function_call"]


def test_thoughts_that_led_to_nothing_are_left_out() -> None:
    """Otherwise the provider would refuse every request after an answer that was stopped while it thought."""
    assert [item["type"] for item in items(answer("Well.", thought()))] == ["message"]


def test_images_go_along_as_data_and_by_address() -> None:
    """Otherwise a screenshot would not reach the model."""
    image, address = Binary(BinaryData("a.png", "image/png", "QUJD")), ImageUrl(ImageUrlData("https://e.org/b", "low"))
    assert items(message("user", "look", image, address))[0]["content"][1:] == [
        {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "auto"},
        {"type": "input_image", "image_url": "https://e.org/b", "detail": "low"},
    ]


def test_an_image_of_a_tool_is_in_its_output() -> None:
    """Otherwise a model that looks at a picture would see only its name."""
    (sent,) = items(message("tool", result(content="a.png", data="QUJD", mime_type="image/png")))
    assert sent["output"] == [
        {"type": "input_text", "text": "a.png"},
        {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "auto"},
    ]


def test_a_failed_tool_is_told_as_a_failure() -> None:
    """Otherwise the model would take an error's text for the content it asked for."""
    assert items(message("tool", result(content="no such file", is_error=True)))[0]["output"] == "Error: no such file"


def test_a_request_stores_nothing_and_names_its_session() -> None:
    """Otherwise conversations would be kept at the provider, or its cache would not be found again."""
    sent = body(request(session_id="s1", max_tokens=100, tools=[tool_spec("ls", "path")]))
    assert (sent["store"], sent["stream"], sent["prompt_cache_key"]) == (False, True, "s1")
    assert (sent["instructions"], sent["max_output_tokens"], sent["parallel_tool_calls"]) == ("Be brief.", 100, True)
    assert sent["tools"] == [
        {
            "type": "function",
            "name": "ls",
            "description": "The tool ls.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
            "strict": False,
        }
    ]


@pytest.mark.parametrize("model", ["o3", "o4-mini", "gpt-5", "gpt-5.1-codex", "gpt-6", "openai/gpt-5.4", "codex-mini"])
def test_a_model_that_thinks_is_asked_for_its_thoughts(model: str) -> None:
    """Otherwise nobody would see that it thinks, and it would forget its thoughts at every step."""
    sent = body(request(model=model))
    assert (sent["include"], sent["reasoning"]) == (["reasoning.encrypted_content"], {"summary": "auto"})


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-4o-mini", "openai/gpt-4o", "gpt-5-chat-latest", "chatgpt-4o-latest"])
def test_a_model_that_does_not_think_is_not_asked_to(model: str) -> None:
    """Otherwise it would refuse every request, because an effort was set for another model."""
    sent = body(request(model=model, reasoning_effort="high"))
    assert "reasoning" not in sent and "include" not in sent


def test_an_unknown_model_thinks_when_it_is_told_how_hard() -> None:
    """Otherwise a new model could never be asked to think, or a plain local one would refuse us."""
    assert body(request(reasoning_effort="low"))["reasoning"] == {"effort": "low", "summary": "auto"}
    assert "reasoning" not in body(request()) and "include" not in body(request())


def test_without_summaries_thoughts_are_still_wanted_back() -> None:
    """Otherwise an organisation that is not verified would get a model that forgets."""
    sent = body(request(model="gpt-5"), summaries=False)
    assert sent["include"] and "reasoning" not in sent


def test_a_limit_below_the_smallest_is_raised_to_it() -> None:
    """Otherwise a short title would be refused."""
    assert body(request(max_tokens=5))["max_output_tokens"] == 16


def test_words_on_the_way_and_the_answer_are_labelled_for_models_that_label_them() -> None:
    """Otherwise these models would take what they said before a call for their answer, and stop early."""
    steps = [answer("Looking.", call(), model="gpt-5.4"), answer("Found.", thought(), "Two.", model="gpt-5.4")]
    sent = input_items(steps, PROVIDER, "gpt-5.4")
    assert [item.get("phase") for item in sent if item["type"] == "message"] == [
        "commentary",
        "commentary",
        "final_answer",
    ]
    assert all("phase" not in item for item in items(answer("Looking.", call())))


def test_names_and_ids_that_would_be_refused_are_made_to_fit() -> None:
    """Otherwise one name that a model made up, or another provider's long id, would end the session for good."""
    sent = items(answer(call("i" * 100, "no such.tool")), message("tool", result("i" * 100)))
    assert sent[0]["name"] == "no_such_tool"
    assert sent[0]["call_id"] == sent[1]["call_id"] and len(sent[0]["call_id"]) <= 64


def test_consecutive_requests_share_every_byte_before_the_newest_message() -> None:
    """Otherwise the provider's cache would never find our prefix again, and every step would cost in full."""
    step = [answer(thought(), "Looking.", call()), message("tool", result(data="QUJD", mime_type="image/png"))]
    first = request(model=MODEL, messages=[message("user", "go"), *step], tools=[tool_spec("ls")], session_id="s")
    second = msgspec.structs.replace(first, messages=[*first.messages, *step, message("user", "more")])
    earlier, later = encode_request(first, provider=PROVIDER), encode_request(second, provider=PROVIDER)
    assert later.startswith(earlier.removesuffix(b"]}"))
