"""What a client that asked for deltas has on its screen: messages as it put them together from what it was sent."""

import copy
from typing import Any

from windlass.testing.server_process import Event

_NEW_PART = {"text": {"text": ""}, "reasoning": {"thinking": ""}, "tool_call": {"input": ""}}


class Screen:
    """Messages by id. A delta that does not fit exactly at the end of what is there is an error, not a guess."""

    def __init__(self) -> None:
        self.messages: dict[str, dict[str, Any]] = {}
        self.deltas = 0

    def show(self, event: Event) -> None:
        if event.kind == "message":
            self.messages[event.body["id"]] = copy.deepcopy(event.body)
        elif event.kind == "message_delta":
            self._apply(event.body)

    def show_all(self, events: list[Event]) -> None:
        for event in events:
            self.show(event)

    def _apply(self, delta: dict[str, Any]) -> None:
        self.deltas += 1
        parts = self.messages[delta["message_id"]]["parts"]
        if delta["part"] == len(parts):
            named = {key: delta[key] for key in ("id", "name") if key in delta}
            parts.append({"type": delta["type"], "data": {**_NEW_PART[delta["type"]], **named}})
        data = parts[delta["part"]]["data"]
        text = data[delta["field"]]
        # Python counts code points, as the wire does.
        assert delta["at"] == len(text), f"a delta at {delta['at']} for a text of {len(text)}"
        data[delta["field"]] = text + delta["text"]

    def streamed(self, message_id: str) -> list[tuple[str, str]]:
        """Type and text of each part that streams."""
        return streamed_parts(self.messages[message_id])


def streamed_parts(message: dict[str, Any]) -> list[tuple[str, str]]:
    fields = {"text": "text", "reasoning": "thinking", "tool_call": "input"}
    return [(part["type"], part["data"][fields[part["type"]]]) for part in message["parts"] if part["type"] in fields]
