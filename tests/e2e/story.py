"""What happened in a session, told in plain lines from its events: the same for every provider."""

import json
import re
from pathlib import Path
from typing import Any

from windlass.testing.server_process import Event

_SECONDS = re.compile(r"\b\d+\.\d+s\b")  # how long the tests of the project took
_RESULT_LINES = 12


class Story:
    """Reads facts in their order; what is told of them is in `lines`."""

    def __init__(self, project: Path) -> None:
        self.lines: list[str] = []
        self._project = str(project)
        self._finished: set[str] = set()
        self._asked: dict[str, str] = {}
        self._results: list[dict[str, Any]] = []  # of one step, in the order they came

    def tell(self, events: list[Event]) -> str:
        for event in events:
            body = event.body
            if event.kind != "message" or body["role"] != "tool":
                self._tell_results()
            match event.kind:
                case "message":
                    self._message(body)
                case "permission_request":
                    self._asked[body["id"]] = body["tool_name"]
                    self._permission(body)
                case "permission_notification" if body["id"] in self._asked and body["outcome"] != "asked":
                    self._say(f"  {body['outcome']} by {body['by']['name']}")
                case "run_complete":
                    self._say("= cancelled" if body.get("cancelled") else f"= {body.get('error') or 'done'}", "")
        return "\n".join(self.lines).rstrip() + "\n"

    def _message(self, body: dict[str, Any]) -> None:
        finished = body["role"] != "assistant" or any(part["type"] == "finish" for part in body["parts"])
        # A result that streams is whole when it has its verdict; a message is told once.
        if body["id"] in self._finished or not finished or not body["parts"]:
            return
        self._finished.add(body["id"])
        for part in body["parts"]:
            self._part(body["role"], part["type"], part["data"])

    def _part(self, role: str, kind: str, data: dict[str, Any]) -> None:
        match kind:
            case "text" if role == "user":
                self._say(f"> {data['text']}")
            case "text":
                self._say(f"agent: {data['text']}")
            case "reasoning" if data["thinking"]:
                self._say(f"  ({data['thinking']})")
            case "tool_call":
                self._say(f"agent: {data['name']} {_short(json.loads(data['input']))}")
            case "tool_result":
                self._results.append(data)
            case "finish" if data["reason"] == "canceled":
                self._say("  (stopped here)")

    def _tell_results(self) -> None:
        """Calls that only read run at the same time, and either may be the first to come back."""
        for data in sorted(self._results, key=lambda data: str(data["tool_call_id"])):
            lines = data["content"].splitlines()
            shown = lines[:_RESULT_LINES] + (["..."] if len(lines) > _RESULT_LINES else [])
            self._say(*(f"  | {line}".rstrip() for line in shown))
        self._results.clear()

    def _permission(self, body: dict[str, Any]) -> None:
        what = body["params"].get("command") or body["params"].get("file_path") or body["path"]
        self._say(f"? may the agent {body['action']} with {body['tool_name']}: {what}")
        self._say(*(f"  {line}".rstrip() for line in body["params"].get("diff", "").splitlines()))

    def _say(self, *lines: str) -> None:
        self.lines += [_SECONDS.sub("0.000s", line.replace(self._project, "/project")) for line in lines]


def _short(arguments: dict[str, Any]) -> str:
    told = {name: value for name, value in arguments.items() if name in ("command", "file_path", "path", "pattern")}
    return " ".join(str(value) for value in told.values())
