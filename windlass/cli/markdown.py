"""A session as Markdown: what was asked, what was answered, and folded away, how it came about.

Text of people and models is Markdown already and stays as it is; what is left open in it (a code fence) is closed, so
that it ends where it ends. Everything else stands in fences that are longer than any in it, or is escaped.
"""

import html
import re
from collections.abc import Iterator
from datetime import datetime

import msgspec

from windlass.cli.exported import SessionExport
from windlass.cli.times import duration, local_time
from windlass.cli.used import used
from windlass.client import Message, Run
from windlass.wire.messages import (
    Binary,
    Finish,
    ImageUrl,
    Part,
    Reasoning,
    ShellCommand,
    Text,
    ToolCall,
    ToolCallData,
    ToolResult,
    ToolResultData,
)

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_BACKTICKS = re.compile(r"`+")
_SUMMARY_CHARACTERS = 120
# What a call is about is said by the first of these that it has.
_TELLING = ("file_path", "path", "command", "pattern", "url", "query", "prompt", "description")


def as_markdown(export: SessionExport, level: int = 1) -> str:
    """The whole text, with one line end at its end. Sub-agents follow their session, one heading deeper."""
    blocks = [*_head(export, level), *_conversation(export, level + 1)]
    for agent in export.agents:
        blocks.append(as_markdown(agent, level + 1).rstrip("\n"))
    return "\n\n".join(blocks) + "\n"


def _head(export: SessionExport, level: int) -> Iterator[str]:
    session = export.session
    name = f"Sub-agent ({session.role}): {session.title}" if session.role else session.title
    yield f"{_heading(level)} {_inline(name) or 'A session without a title'}"
    models = sorted({f"{m.provider}/{m.model}" for m in export.messages if m.model})
    facts = [
        f"- Session: `{session.id}`",
        f"- Created: {local_time(session.created_at)}, last changed: {local_time(session.updated_at)}",
        f"- Used: {used(session.prompt_tokens, session.completion_tokens, session.cache_read_tokens, session.cost)}",
    ]
    if models:
        facts.append(f"- Model: {', '.join(f'`{model}`' for model in models)}")
    if files := sorted({file.path for file in export.files if file.origin == "after"}):
        facts.append(f"- Files written: {', '.join(_code(path) for path in files)}")
    yield "\n".join(facts)


def _conversation(export: SessionExport, level: int) -> Iterator[str]:
    results = {part.data.tool_call_id: part.data for message in export.messages for part in _results(message)}
    calls = {call.id for message in export.messages for call in message.tool_calls}
    last = {run.message_ids[-1]: run for run in export.runs if run.message_ids}
    for message in export.messages:
        body = list(_body(message, results, calls))
        if body or message.role != "tool":
            yield from [f"{_heading(level)} {_title(message)}"] if message.role != "tool" else []
            yield from body
        if message.id in last:
            yield _ending(last[message.id])


def _results(message: Message) -> list[ToolResult]:
    return [part for part in message.parts if isinstance(part, ToolResult)]


def _title(message: Message) -> str:
    names = {"user": "Prompt", "assistant": "Answer", "system": "System", "tool": "Tool"}
    name = "Summary of what was before" if message.is_summary_message else names[message.role]
    return f"{name} ({local_time(message.created_at)})"


def _body(message: Message, results: dict[str, ToolResultData], calls: set[str]) -> Iterator[str]:
    for part in message.parts:
        text = _part(part, results, calls)
        if text:
            yield text


def _part(part: Part, results: dict[str, ToolResultData], calls: set[str]) -> str:
    match part:
        case Text():
            return closed(part.data.text.strip("\n"))
        case Reasoning():
            return _folded("Thinking", _fenced(part.data.thinking)) if part.data.thinking else ""
        case ToolCall():
            return _call(part.data, results.get(part.data.id))
        case ToolResult():
            # One whose call is there is shown with it; another would be lost.
            return "" if part.data.tool_call_id in calls else _folded(part.data.name, _fenced(part.data.content))
        case ShellCommand():
            said = _fenced(part.data.output.rstrip("\n"))
            return f"{_fenced('$ ' + part.data.command)}\n\n{said}\n\nExit code {part.data.exit_code}."
        case Binary():
            return f"Attached: {_code(part.data.path)} ({_inline(part.data.mime_type)})"
        case ImageUrl():
            return f"Picture: {_code(part.data.url[:_SUMMARY_CHARACTERS])}"
        case Finish():
            plain = part.data.reason in ("end_turn", "tool_use")
            why = f": {_inline(part.data.message)}" if part.data.message else ""
            return "" if plain else f"*Ended: {part.data.reason}{why}*"


def _call(call: ToolCallData, result: ToolResultData | None) -> str:
    """The call, with what came of it. A change of a file is shown as its diff, which says more than the input."""
    diff = _diff(result)
    pieces = [_fenced(diff, "diff")] if diff else [_fenced(_pretty(call.input), "json")]
    if result is not None and result.content and not diff:
        pieces.append(_fenced(result.content))
    failed = " (failed)" if result is not None and result.is_error else ""
    telling = _telling(call.input)
    return _folded(f"{call.name}{': ' + telling if telling else ''}{failed}", "\n\n".join(pieces))


class _Changed(msgspec.Struct):
    """The one key of a result's metadata that is of interest here."""

    diff: str = ""


def _diff(result: ToolResultData | None) -> str:
    try:
        return msgspec.json.decode(result.metadata, type=_Changed).diff if result is not None else ""
    except msgspec.MsgspecError:
        return ""  # tools of others write metadata too


def _pretty(text: str) -> str:
    try:
        return msgspec.json.format(text, indent=2)
    except msgspec.MsgspecError:
        return text


def _telling(text: str) -> str:
    """What a call is about, in a few words: the path, the command."""
    try:
        arguments = msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return ""
    found = (arguments.get(name) for name in _TELLING) if isinstance(arguments, dict) else ()
    return next((str(value).replace("\n", " ")[:_SUMMARY_CHARACTERS] for value in found if value), "")


def _ending(run: Run) -> str:
    pieces: list[str] = [run.state]
    if run.started_at and run.ended_at:
        pieces.append(f"took {duration(_seconds(run.started_at, run.ended_at))}")
    pieces.append(used(run.usage.prompt_tokens, run.usage.completion_tokens, run.usage.cache_read_tokens, run.cost))
    error = f". {_inline(run.error)}" if run.error else ""
    return f"*Run `{run.id}`: {', '.join(pieces)}{error}*"


def _seconds(start: str, end: str) -> float:
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except ValueError:
        return 0.0


def closed(text: str) -> str:
    """The text, with the code fence closed that it leaves open: it would swallow everything after it."""
    fence = ""
    for match in _FENCE.finditer(text):
        mark, info = match.groups()
        if not fence:
            fence = mark if mark[0] == "~" or "`" not in info else ""
        elif mark[0] == fence[0] and len(mark) >= len(fence) and not info.strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _fenced(text: str, language: str = "") -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def _folded(summary: str, body: str) -> str:
    # The blank lines make what is inside Markdown again.
    return f"<details><summary>{_escaped(summary)}</summary>\n\n{body}\n\n</details>"


def _escaped(text: str) -> str:
    return html.escape(" ".join(text.split()))


def _inline(text: str) -> str:
    """Text of others on one line, none of it markup."""
    return re.sub(r"([\\`*_\[\]<>#|~])", r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{' '.join(text.split())}{pad}{fence}"


def _heading(level: int) -> str:
    return "#" * min(level, 6)
