"""What the model says in the crash suite: it does what the prompt asks for, and looks at what it is sent."""

import re
from typing import Any

from .told import Told

# A prompt names what the model is to do, and a label that makes its traces recognisable.
_WISH = re.compile(r"\b(say|echo|ask|sleep|fail|two)\b #([\w-]+)")


class Model:
    """The reply function for `ModelServer.auto`."""

    def __init__(self, told: Told, marker: str) -> None:
        self._told = told
        self._marker = marker

    def reply(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        messages = request["messages"]
        self._told.counts["model calls"] += 1
        self._told.problems += [f"I7: the model was sent {problem}" for problem in problems_of(messages)]
        if messages[-1]["role"] == "tool":
            return [{"say": "That is done. ", "delay_ms": 5}]
        wishes = _WISH.findall(str(messages[-1]["content"]))
        wish, label = wishes[-1] if wishes else ("say", "?")
        match wish:
            case "echo":
                return [{"say": "Let me see. "}, {"tool": "bash", "input": {"command": f"echo {label}"}}]
            case "two":
                return [{"tool": "ls", "input": {"path": "."}}, {"tool": "bash", "input": {"command": f"echo {label}"}}]
            case "ask":
                return [{"tool": "bash", "input": {"command": f"touch asked-{label}"}}]
            case "sleep":
                command = f"(exec -a {self._marker} sleep 100) & exec -a {self._marker} sleep 100"
                return [{"tool": "bash", "input": {"command": command, "timeout_seconds": 1}}]
            case "fail":
                return [{"error": "The provider says no."}]
            case _:
                return [{"say": f"One two three four five {label} ", "delay_ms": 15}]


def problems_of(messages: list[dict[str, Any]]) -> list[str]:
    """What a strict provider would refuse: calls without results, results without calls, ids that repeat."""
    problems = []
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                problems.append("a result without its call")
            waiting.discard(message["tool_call_id"])
            continue
        if waiting:
            problems.append(f"a {message['role']} message before the results of {len(waiting)} calls")
            waiting.clear()
        for call in message.get("tool_calls") or ():
            if call["id"] in waiting:
                problems.append("a call id twice")
            waiting.add(call["id"])
        if not message.get("content") and not message.get("tool_calls"):
            problems.append(f"an empty {message['role']} message")
    if waiting:
        problems.append("calls without results at the end")
    return problems
