"""The scripted model: scripts, their mistakes, and the demo."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from model_requests import calls_of, collect, message, reasoning_of, request, text_of, tool_spec

from windlass.models.providers import build_model
from windlass.models.script import parse_script
from windlass.models.scripted import ScriptedModel
from windlass.wire.messages import ToolCall, ToolCallData, ToolResult, ToolResultData
from windlass.wire.model import Chunk, FinishChunk, ModelError, TextChunk, UsageChunk
from windlass.wire.runs import Usage

TOOLS = [
    tool_spec("ls", "path"),
    tool_spec("view", "file_path"),
    tool_spec("write", "file_path", "content"),
    tool_spec("bash", "command"),
]


@pytest.fixture(autouse=True)
def brisk_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo at a pace for tests: at its own the help alone takes seconds."""
    monkeypatch.setattr("windlass.models.demo.WORDS_PER_SECOND", 100_000.0)


def model(*replies: list[dict[str, Any]], match: str = "*", **rule: Any) -> ScriptedModel:
    return ScriptedModel(parse_script({"rules": [{"match": match, "replies": list(replies), **rule}]}))


async def answer(model: ScriptedModel, prompt: str = "hello", **fields: Any) -> list[Chunk]:
    return await collect(model, request(prompt, **fields))


async def test_words_come_one_by_one_and_lose_nothing() -> None:
    """Otherwise a test of streaming would not stream, or see another text than its script."""
    chunks = await answer(model([{"say": "  one two\n\nthree "}]))
    assert text_of(chunks) == "  one two\n\nthree "
    assert sum(isinstance(chunk, TextChunk) for chunk in chunks) == 3


async def test_each_call_since_the_prompt_gets_its_own_reply() -> None:
    """Otherwise a script could not ask for a tool and then speak of its result."""
    scripted = model([{"tool": "ls"}], [{"say": "two files"}])
    first = await answer(scripted)
    second = await answer(scripted, call_number=1)
    assert (calls_of(first), text_of(second)) == ([("call_0_0", "ls", "{}")], "two files")


async def test_calls_are_counted_from_the_conversation_too() -> None:
    """Otherwise an agent that does not count its calls would get the first reply for ever."""
    call = ToolCall(ToolCallData("c", "ls", "{}"))
    result = ToolResult(ToolResultData("c", "ls", "a", "", False))
    messages = [message("user", "go"), message("assistant", call), message("tool", result)]
    assert text_of(await answer(model([{"tool": "ls"}], [{"say": "seen"}]), messages=messages)) == "seen"


async def test_the_last_words_repeat() -> None:
    """Otherwise a prompt sent twice would be answered with nothing."""
    assert text_of(await answer(model([{"say": "hi"}]), call_number=9)) == "hi"


async def test_a_last_tool_call_does_not_repeat_by_itself() -> None:
    """Otherwise every script that ends with a tool would run it until the agent is stopped as stuck."""
    assert text_of(await answer(model([{"tool": "ls"}]), call_number=1)) == "Done."


async def test_a_last_tool_call_repeats_when_the_rule_says_so() -> None:
    """Otherwise an agent that is stuck could not be tested."""
    assert calls_of(await answer(model([{"tool": "ls"}], repeat=True), call_number=5)) == [("call_5_0", "ls", "{}")]


async def test_the_first_rule_that_matches_is_followed() -> None:
    """Otherwise one script could not serve several tests."""
    rules = [{"match": "red", "replies": [[{"say": "R"}]]}, {"match": "*", "replies": [[{"say": "other"}]]}]
    scripted = ScriptedModel(parse_script({"rules": rules}))
    assert [text_of(await answer(scripted, prompt)) for prompt in ("a red one", "blue")] == ["R", "other"]


async def test_thoughts_pauses_and_reasons_are_followed() -> None:
    """Otherwise half of the steps would be decoration."""
    chunks = await answer(
        model([{"think": "hm"}, {"pause_ms": 1}, {"say": "cut"}, {"finish": "max_tokens"}, {"say": "no"}])
    )
    assert (reasoning_of(chunks), text_of(chunks), chunks[-1]) == ("hm", "cut", FinishChunk("max_tokens"))


async def test_a_pace_is_kept() -> None:
    """Otherwise a cancel in the middle of an answer could not be tested."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await answer(model([{"say": "one two three", "delay_ms": 20}]))
    assert loop.time() - began >= 0.055


async def test_an_error_is_raised_as_a_provider_would() -> None:
    """Otherwise retries could not be tested."""
    with pytest.raises(ModelError, match="overloaded") as caught:
        await answer(model([{"say": "x"}, {"error": "overloaded", "retryable": True, "retry_after": 2}]))
    assert (caught.value.retryable, caught.value.retry_after) == (True, 2)


async def test_a_hang_ends_with_a_cancel_only() -> None:
    """Otherwise a cancel while a model is silent could not be tested (B05)."""
    hanging = asyncio.ensure_future(answer(model([{"hang": True}])))
    done, _ = await asyncio.wait({hanging}, timeout=0.05)
    assert not done
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging


async def test_usage_counts_words() -> None:
    """Otherwise token counts could not be checked by hand."""
    chunks = await answer(model([{"say": "one two"}]), "three words here")
    assert [chunk for chunk in chunks if isinstance(chunk, UsageChunk)] == [UsageChunk(Usage(3, 2))]


@pytest.mark.parametrize(
    ("script", "place"),
    [
        ({}, 'the script needs to be an object with "rules"'),
        ({"rules": [{"match": "", "replies": [[]]}]}, r"rules\[0\]\.match"),
        ({"rules": [{"match": "*", "replies": []}]}, r"rules\[0\]\.replies is empty"),
        (
            {"rules": [{"match": "*", "replies": [[], [{"say": "a"}, {"shout": "b"}]]}]},
            r"rules\[0\]\.replies\[1\]\[1\]",
        ),
        ({"rules": [{"match": "*", "replies": [[{"say": 7}]]}]}, r"rules\[0\]\.replies\[0\]\[0\]: Expected `str`"),
        ({"rules": [{"match": "*", "replies": [[{"say": "a", "pace": 3}]]}]}, "unknown field `pace`"),
    ],
)
def test_a_mistake_in_a_script_is_named_with_its_place(tmp_path: Path, script: Any, place: str) -> None:
    """Otherwise somebody would search a long script for a typo, or it would be ignored."""
    file = tmp_path / "script.json"
    file.write_bytes(msgspec.json.encode(script))
    with pytest.raises(ValueError, match=place):
        ScriptedModel(file)


@pytest.mark.parametrize("content", [None, b"{nonsense", b"\xff"])
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: bytes | None) -> None:
    """Otherwise a wrong path in the config would be a traceback."""
    file = tmp_path / "script.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ValueError, match=r"script\.json"):
        build_model("scripted", "scripted", script=str(file))


async def test_the_demo_says_what_it_is_and_needs_no_key() -> None:
    """Otherwise a new user would take it for a very poor model."""
    text = text_of(await answer(ScriptedModel()))
    assert "built-in demo" in text and "no key" in text


@pytest.mark.parametrize(
    ("prompt", "tool", "arguments"),
    [
        ("list", "ls", {"path": "."}),
        ("list the files", "ls", {"path": "."}),
        ("ls src", "ls", {"path": "src"}),
        ("read README.md", "view", {"file_path": "README.md"}),
        ("write a.txt hello world", "write", {"file_path": "a.txt", "content": "hello world\n"}),
        ("Run echo hi", "bash", {"command": "echo hi"}),
    ],
)
async def test_the_demo_does_what_it_is_told_with_the_real_tools(prompt: str, tool: str, arguments: dict) -> None:
    """Otherwise a first run would show neither tools nor permissions."""
    ((_, name, text),) = calls_of(await answer(ScriptedModel(), prompt, tools=TOOLS))
    assert (name, msgspec.json.decode(text)) == (tool, arguments)


async def test_the_demo_comments_a_result_and_ends() -> None:
    """Otherwise it would call its tool again and again."""
    result = ToolResult(ToolResultData("c", "ls", "a\nb", "", False))
    chunks = await answer(ScriptedModel(), messages=[message("user", "list"), message("tool", result)], tools=TOOLS)
    assert "`ls` gave back:" in text_of(chunks) and not calls_of(chunks)


@pytest.mark.parametrize(("state", "waits"), [("running", True), ("waiting", True), ("completed", False)])
async def test_the_demo_waits_for_an_agent_that_it_started(state: str, waits: bool) -> None:
    """Otherwise a first look at sub-agents would show one that is started and never heard of again."""
    agents = msgspec.json.encode([{"id": "ses_1", "role": "general", "state": state}]).decode()
    result = ToolResult(ToolResultData("c", "agent", f"ses_1 (general): {state}", agents, False))
    called = calls_of(await answer(ScriptedModel(), messages=[message("tool", result)], tools=TOOLS))
    assert [(name, msgspec.json.decode(text)) for _, name, text in called] == [("agent", {"action": "wait"})] * waits


async def test_the_demo_tells_of_a_declined_call() -> None:
    """Otherwise a user who says no would be told that it was done."""
    result = ToolResult(ToolResultData("c", "bash", "Denied: the user declined.", "", True))
    assert "Denied" in text_of(await answer(ScriptedModel(), messages=[message("tool", result)], tools=TOOLS))


async def test_the_demo_asks_for_no_tool_that_is_not_allowed() -> None:
    """Otherwise a config that forbids tools would be answered with errors."""
    chunks = await answer(ScriptedModel(), "run ls", tools=[])
    assert not calls_of(chunks) and "not allowed" in text_of(chunks)


def test_a_type_that_is_not_spoken_is_said_so_with_those_that_are() -> None:
    """Otherwise the first prompt would fail with something obscure."""
    with pytest.raises(ValueError, match=r"providers\.mine has the unknown type 'telepathy'.*openai-responses"):
        build_model("mine", "telepathy", base_url="https://example.org/v1")


def test_an_address_without_a_scheme_is_refused_at_once() -> None:
    """Otherwise `localhost:11434` would be found wrong only at the first prompt."""
    with pytest.raises(ValueError, match="begin with http"):
        build_model("mine", "openai", base_url="localhost:11434/v1")
