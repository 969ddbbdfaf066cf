"""Tool calls: understood, approved, run, told."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from agent_recorders import Harness, RecordedEvents, TinyTool, scripted

from windlass import limits
from windlass.agent.arguments import BadArguments, parse_arguments
from windlass.agent.results import shortened
from windlass.wire.execution import RunOutcome, Verdict
from windlass.wire.messages import ToolResultData
from windlass.wire.run_events import Delta, FileWritten, MessageStart, ToolEnded
from windlass.wire.tools import ToolError, ToolOutput, WrittenFile


def echo(**options: Any) -> TinyTool:
    return TinyTool("echo", lambda arguments: arguments.get("text", ""), **options)


async def results_of(
    *steps: dict[str, Any], tools: list[TinyTool], verdict: Verdict = "granted"
) -> list[ToolResultData]:
    harness = Harness(scripted(list(steps), [{"say": "ok"}]), tools, verdict)
    assert await harness.run() == RunOutcome("completed")
    return harness.events.results()


async def test_a_result_is_a_durable_message_of_its_own() -> None:
    """Otherwise a crash right after a tool would lose what it said."""
    harness = Harness(scripted([{"tool": "echo", "input": {"text": "hi"}}], [{"say": "ok"}]), [echo()])
    await harness.run()
    tool_messages = [event for event in harness.events.durable_ones if isinstance(event, MessageStart)]
    assert [(event.role, event.parts[0].data.content) for event in tool_messages] == [("tool", "hi")]


@pytest.mark.parametrize(
    ("verdict", "word"), [("denied", "declined"), ("withdrawn", "Withdrawn"), ("expired", "Expired")]
)
async def test_without_a_grant_nothing_runs_and_the_model_is_told_why(verdict: Verdict, word: str) -> None:
    """Otherwise a no would be a yes, or the model would try again and again (I10)."""
    tool = echo()
    (result,) = await results_of({"tool": "echo"}, tools=[tool], verdict=verdict)
    assert tool.ran == [] and result.is_error and word in result.content


async def test_people_are_asked_with_the_plan() -> None:
    """Otherwise they would approve something else than what is run (I10)."""
    harness = Harness(scripted([{"tool": "echo", "input": {"text": "x"}, "id": "c9"}], [{"say": "ok"}]), [echo()])
    await harness.run()
    assert [(ask.tool_call_id, ask.resource) for ask in harness.events.asks] == [("c9", "{'text': 'x'}")]


@pytest.mark.parametrize("input", ["{nonsense", "[1]", '"text"', '{"a": NaN}', "[" * 100_000])
async def test_arguments_that_make_no_sense_are_told_to_the_model(input: str) -> None:
    """Otherwise a slip of the model would end the run, or bring the server down (A32)."""
    tool = echo()
    (result,) = await results_of({"tool": "echo", "input": input}, tools=[tool])
    assert tool.planned == [] and result.is_error and "arguments" in result.content


async def test_an_unknown_tool_is_answered_with_the_names_of_the_known() -> None:
    """Otherwise the model could not correct itself."""
    (result,) = await results_of({"tool": "ecco"}, tools=[echo()])
    assert result.content == "There is no tool 'ecco'. There are: echo."


async def test_a_tool_that_refuses_its_arguments_tells_the_model() -> None:
    """Otherwise people would be asked to approve nonsense."""
    (result,) = await results_of({"tool": "echo", "input": {"refuse": 1}}, tools=[echo()])
    assert (result.content, result.is_error) == ("Leave `refuse` away.", True)


async def test_a_tool_that_fails_tells_the_model() -> None:
    """Otherwise a missing file would end the run."""

    def fail(_: dict[str, Any]) -> None:
        raise ToolError("There is no such file.")

    (result,) = await results_of({"tool": "fail"}, tools=[TinyTool("fail", fail)])
    assert (result.content, result.is_error) == ("There is no such file.", True)


async def test_calls_that_only_read_run_at_the_same_time() -> None:
    """Otherwise ten searches would take ten times as long."""
    together = asyncio.Barrier(3)
    tool = TinyTool("meet", lambda _: together.wait(), read_only=True)
    results = await results_of(*[{"tool": "meet"}] * 3, tools=[tool])
    assert len(results) == 3


async def test_calls_that_write_run_one_after_the_other_in_order() -> None:
    """Otherwise two edits of one file would overwrite each other."""
    trace: list[str] = []

    async def write(arguments: dict[str, Any]) -> None:
        trace.append(f"begin {arguments['n']}")
        await asyncio.sleep(0.01)
        trace.append(f"end {arguments['n']}")

    await results_of(*({"tool": "write", "input": {"n": n}} for n in (1, 2)), tools=[TinyTool("write", write)])
    assert trace == ["begin 1", "end 1", "begin 2", "end 2"]


async def test_a_read_after_a_write_sees_what_was_written() -> None:
    """Otherwise a model would read the old file and undo its own change."""
    written: list[str] = []

    async def write(_: dict[str, Any]) -> None:
        await asyncio.sleep(0.01)
        written.append("new")

    tools = [TinyTool("write", write), TinyTool("read", lambda _: ",".join(written), read_only=True)]
    results = await results_of({"tool": "read"}, {"tool": "write"}, {"tool": "read"}, tools=tools)
    assert results[-1].content == "new"


async def test_a_bug_in_one_of_several_readers_stops_the_others() -> None:
    """Otherwise tools would go on after the run that started them is over (I19)."""
    stopped = asyncio.Event()

    async def hang(_: dict[str, Any]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def bug(_: dict[str, Any]) -> None:
        raise KeyError("bug")

    tools = [TinyTool("hang", hang, read_only=True), TinyTool("bug", bug, read_only=True)]
    with pytest.raises(KeyError):
        await results_of({"tool": "hang"}, {"tool": "bug"}, tools=tools)
    assert stopped.is_set()


async def test_written_files_are_told_before_the_result() -> None:
    """Otherwise a result could be a fact while the version it speaks of is not."""
    output = ToolOutput("wrote a", written=[WrittenFile("a", "text", None)])
    harness = Harness(scripted([{"tool": "write"}], [{"say": "ok"}]), [TinyTool("write", lambda _: output)])
    await harness.run()
    kinds = [type(event) for event in harness.events.all if isinstance(event, FileWritten | MessageStart)]
    assert kinds == [MessageStart, FileWritten, MessageStart, MessageStart]


class Telling(TinyTool):
    """Shows its output while it works, as a command does."""

    def __init__(self, tell: Callable[[Callable[[str], None]], Any], content: str = "a b c") -> None:
        super().__init__("tell", lambda _: ToolOutput(content))
        self._tell = tell

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> Any:
        plan, tell = super().plan(arguments, tool_call_id), self._tell

        class Streaming:
            ask, streams = plan.ask, True

            async def run(self, show: Callable[[str], None]) -> ToolOutput:
                tell(show)
                return await plan.run()

        return Streaming()


async def told_by(tool: Telling) -> RecordedEvents:
    harness = Harness(scripted([{"tool": "tell", "id": "c1"}], [{"say": "ok"}]), [tool])
    assert await harness.run() == RunOutcome("completed")
    return harness.events


async def test_output_is_shown_while_the_tool_works_and_the_result_takes_its_place() -> None:
    """Otherwise people would look at nothing for the ten minutes that a build takes (I16)."""
    events = await told_by(Telling(lambda show: [show(word) for word in ("a ", "", "b")]))
    (start,) = [event for event in events.of(MessageStart) if event.role == "tool"]
    deltas = [event for event in events.of(Delta) if event.message_id == start.message_id]
    assert start.parts == []
    assert deltas == [
        Delta(start.message_id, 0, "content", "a ", "tool_result", "c1", "tell"),
        Delta(start.message_id, 0, "content", "b"),
    ]
    (ended,) = [event for event in events.durable_ones if isinstance(event, ToolEnded)]
    assert (ended.message_id, ended.result.data.content) == (start.message_id, "a b c")


async def test_a_tool_that_shows_nothing_has_a_plain_result() -> None:
    """Otherwise an empty message would stand there for as long as it works."""
    events = await told_by(Telling(lambda show: None))
    assert [event.parts[0].data.content for event in events.of(MessageStart) if event.role == "tool"] == ["a b c"]


async def test_a_tool_that_fails_after_it_has_shown_something_ends_its_message() -> None:
    """Otherwise a message would stay open for ever (I7)."""

    def fail(show: Callable[[str], None]) -> None:
        show("half")
        raise ToolError("It broke.")

    events = await told_by(Telling(fail))
    assert [(result.content, result.is_error) for result in events.results()] == [("It broke.", True)]


async def test_what_is_shown_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a command that prints for ever would fill the memory of everyone who looks on."""
    monkeypatch.setattr(limits, "SHOWN_OUTPUT_CHARACTERS", 5)
    events = await told_by(Telling(lambda show: [show("abc"), show("def"), show("ghi")]))
    assert [delta.text for delta in events.of(Delta) if delta.field == "content"] == ["abc", "de"]


async def test_nothing_is_shown_after_the_result() -> None:
    """Otherwise a thread that reads on would write into a message that is over (I3)."""
    kept: list[Callable[[str], None]] = []
    events = await told_by(Telling(lambda show: [kept.append(show), show("abc")]))
    kept[0]("late")
    assert [delta.text for delta in events.of(Delta) if delta.field == "content"] == ["abc"]


async def test_a_long_output_is_cut_with_its_end_kept() -> None:
    """Otherwise one command would fill the context window, or the error at its end would be lost."""
    text = "begin" + "x" * limits.TOOL_OUTPUT_CHARACTERS + "the error"
    (result,) = await results_of({"tool": "echo", "input": {"text": text}}, tools=[echo()])
    assert len(result.content) <= limits.TOOL_OUTPUT_CHARACTERS
    assert result.content.startswith("begin") and result.content.endswith("the error") and "left out" in result.content


def test_an_output_within_the_limit_is_left_alone() -> None:
    """Otherwise files would come with holes."""
    text = "x" * limits.TOOL_OUTPUT_CHARACTERS
    assert shortened(text) == text


@pytest.mark.parametrize("text", ["", "  ", "{}"])
def test_no_arguments_are_an_empty_object(text: str) -> None:
    """Otherwise tools without arguments could not be called by providers that send nothing."""
    assert parse_arguments(text) == {}


def test_brackets_in_a_text_are_not_depth() -> None:
    """Otherwise a file full of brackets could not be written."""
    arguments = {"content": '["\\' * 5_000}
    assert parse_arguments(msgspec.json.encode(arguments).decode()) == arguments


def test_arguments_beyond_the_size_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a model could send more than any tool takes (A32)."""
    monkeypatch.setattr(limits, "TOOL_ARGUMENTS_BYTES", 10)
    with pytest.raises(BadArguments, match="larger than 10 bytes"):
        parse_arguments('{"a": "bcdefgh"}')
