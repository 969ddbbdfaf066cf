"""The demo of a first run: what the scripted model says when nobody gave it a script.

It is honest about what it is, and it uses the real tools, so that a new user sees tools, permissions and cancelling
work before there is any key.
"""

from typing import Any

import msgspec

from windlass.models.script import CallTool, Reply, Say
from windlass.wire.delegation import AgentStatus
from windlass.wire.messages import Message, ToolResult, ToolResultData
from windlass.wire.model import ModelRequest

WORDS_PER_SECOND = 30.0  # fast enough to read along, slow enough to see it stream
_SHOWN_LINES = 20  # of a tool's output that the demo repeats
_HELP = (
    "I am the built-in demo of Windlass: no language model, and no key needed. "
    "I can show you that everything works. Try one of these:\n\n"
    "- `list` shows the files here\n"
    "- `read FILE` reads one\n"
    "- `write FILE TEXT` writes one (you will be asked first)\n"
    "- `run COMMAND` runs a command (you will be asked first)\n"
    "- `delegate TASK` lets a sub-agent do one of these, and waits for it\n\n"
    "To talk to a real model, set `model` and a provider in the config file, or export an API key; "
    "`windlass doctor` says where."
)
_EVERYTHING_HERE = ("", "files", "the files", "all files", "everything", "files here", "the files here", "here")


def demo_reply(request: ModelRequest) -> Reply:
    """What the demo does next: comment a tool's result, follow a command, or explain itself."""
    if not request.messages:
        return _say(_HELP)
    newest = request.messages[-1]
    result = _result_of(newest)
    if result is not None and result.name == "agent" and _is_at_work(result):
        return [CallTool("agent", {"action": "wait"})]
    if result is not None:
        return _say(_comment(result))
    return _follow(newest.text.strip(), request)


def _follow(prompt: str, request: ModelRequest) -> Reply:
    verb, _, rest = prompt.partition(" ")
    rest = rest.strip()
    match verb.lower().rstrip(":,."):
        case "list" | "ls":
            path = "." if rest.lower().rstrip(".!") in _EVERYTHING_HERE else rest
            return _call(request, "ls", {_path_name(request, "ls"): path}, "Let me look.")
        case "read" | "view" | "cat" if rest:
            return _call(request, "view", {_path_name(request, "view"): rest}, f"Reading {rest}.")
        case "write" if " " in rest:
            file, _, text = rest.partition(" ")
            arguments = {_path_name(request, "write"): file, "content": f"{text}\n"}
            return _call(request, "write", arguments, f"Writing {file}. You may be asked to allow it.")
        case "run" | "bash" if rest:
            return _call(request, "bash", {"command": rest}, "Running it. You may be asked to allow it.")
        case "delegate" if rest:
            return _call(request, "agent", {"action": "start", "prompt": rest}, "A sub-agent does it.")
        case _:
            return _say(_HELP)


def _is_at_work(result: ToolResultData) -> bool:
    """Whether one of the agents that the tool tells of has not ended its run."""
    if result.is_error or not result.metadata:
        return False
    agents = msgspec.json.decode(result.metadata, type=list[AgentStatus])
    return any(agent.state in ("accepted", "queued", "running", "waiting") for agent in agents)


def _call(request: ModelRequest, tool: str, arguments: dict[str, Any], words: str) -> Reply:
    if all(spec.name != tool for spec in request.tools):
        return _say(f"That needs the tool `{tool}`, which is not allowed here. Everything else still works.")
    return [*_say(words), CallTool(tool, arguments)]


def _path_name(request: ModelRequest, tool: str) -> str:
    """What the tool calls its path: its schema says, so that the demo follows when a tool is changed."""
    for spec in request.tools:
        if spec.name == tool:
            return next((name for name in spec.schema.get("properties", {}) if "path" in name), "path")
    return "path"


def _comment(result: ToolResultData) -> str:
    if result.is_error:
        return f"That did not work. The tool `{result.name}` says: {_first_line(result.content)}"
    lines = result.content.rstrip("\n").splitlines()
    # Indented, so that it is code where Markdown is shown: lines would run into one another there.
    shown = "\n".join(f"    {line}" for line in lines[:_SHOWN_LINES])
    more = f"\n    (and {len(lines) - _SHOWN_LINES} more)" if len(lines) > _SHOWN_LINES else ""
    return f"The tool `{result.name}` gave back:\n\n{shown}{more}\n\nA real model would now go on from there."


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:200]


def _result_of(message: Message) -> ToolResultData | None:
    results = [part.data for part in message.parts if isinstance(part, ToolResult)]
    return results[-1] if results else None


def _say(text: str) -> Reply:
    return [Say(text, words_per_second=WORDS_PER_SECOND)]
