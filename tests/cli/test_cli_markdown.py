"""A session as Markdown: nothing that anybody wrote can break out of its place."""

import pytest
from markdown_it import MarkdownIt

from windlass.cli.exported import SessionExport
from windlass.cli.markdown import as_markdown, closed
from windlass.client import FileVersion, Message, Run, Session
from windlass.wire.messages import (
    Finish,
    FinishData,
    Part,
    Text,
    TextData,
    ToolCall,
    ToolCallData,
    ToolResult,
    ToolResultData,
)
from windlass.wire.runs import Usage


def message(id: str, role: str, *parts: Part) -> Message:
    return Message(id, role, "ses_1", list(parts), "m", "p", 1, 1)  # type: ignore[arg-type]


def export(*messages: Message, title: str = "Knots", **fields: object) -> SessionExport:
    return SessionExport(1, Session("ses_1", title=title), list(messages), [], **fields)  # type: ignore[arg-type]


def headings(text: str) -> list[str]:
    tokens = MarkdownIt().parse(text)
    return [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]


@pytest.mark.parametrize(
    "text", ["```\ncode", "~~~~py\ncode\n```", "```\na\n```\n```b", "   ```\nx", "````\n```\n````\n```js"]
)
def test_a_fence_that_is_left_open_is_closed(text: str) -> None:
    """A model that is cut off in the middle of code would make code of everything after it."""
    assert headings(f"{closed(text)}\n\n# After") == ["After"]


@pytest.mark.parametrize("text", ["", "plain", "```\na\n```", "``` a`b", "~~~\n~~~", "    ```\nindented code"])
def test_a_text_without_an_open_fence_is_left_as_it_is(text: str) -> None:
    """It is what somebody said."""
    assert closed(text) == text


@pytest.mark.parametrize("fence", ["```", "````", "```\n````", "~~~"])
def test_output_of_a_tool_cannot_end_its_fence(fence: str) -> None:
    """A41: a file with backticks in it would become headings, links and HTML of the export."""
    call = ToolCall(ToolCallData("c1", "view", '{"file_path": "a<b>.md"}'))
    evil = f"{fence}\n</details>\n# Not a heading\n<script>alert(1)</script>"
    result = ToolResult(ToolResultData("c1", "view", evil, "", False))
    text = as_markdown(export(message("m1", "assistant", call), message("m2", "tool", result)))
    assert headings(text)[0] == "Knots" and not [h for h in headings(text) if h == "Not a heading"]
    assert "<summary>view: a&lt;b&gt;.md</summary>" in text
    html = [token.content for token in MarkdownIt().parse(text) if token.type == "html_block"]
    assert html and "script" not in "".join(html)


def test_a_title_is_a_title_whatever_is_in_it() -> None:
    """A41: models and other people write titles."""
    assert headings(as_markdown(export(title="a\n# b `c` [d](e) <img src=x>"))) != []
    assert "\n# b" not in as_markdown(export(title="a\n# b"))
    assert "<img" not in as_markdown(export(title="<img src=x>")).replace("\\<img", "")


def test_a_result_without_its_call_is_not_lost() -> None:
    """After a summary its call may be gone."""
    result = ToolResult(ToolResultData("c9", "bash", "all of it", "", False))
    assert "all of it" in as_markdown(export(message("m1", "tool", result)))


def test_how_a_run_ended_and_what_it_cost_stands_below_it() -> None:
    """An answer that was cut off looks like any other."""
    run = Run(
        id="run_1",
        session_id="ses_1",
        state="failed",
        cancel_requested=False,
        prompt="go",
        disposition="started",
        message_ids=("m1",),
        usage=Usage(1000, 20),
        cost=0.0123,
        created_at="2026-01-01T00:00:00Z",
        started_at="2026-01-01T00:00:01Z",
        ended_at="2026-01-01T00:01:06Z",
        error="It *broke*.",
    )
    ended = Finish(FinishData("error", 1, "no more"))
    one = export(message("m1", "assistant", Text(TextData("Half an ans")), ended))
    one.runs.append(run)
    text = as_markdown(one)
    assert "*Run `run_1`: failed, took 1 min 5 s, 1,000 tokens in, 20 out, cost 0.0123. It \\*broke\\*.*" in text
    assert "*Ended: error: no more*" in text


def test_files_that_were_written_are_named() -> None:
    """It is what is left of a session."""
    file = FileVersion("f1", "ses_1", "a`b.py", "", 1, 1, 1)
    assert "Files written: `` a`b.py ``" in as_markdown(export(files=[file]))
