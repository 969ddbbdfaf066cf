"""The text of unfinished messages as one stream showed it: pieces that fit, and make what the last fact says (I16)."""

from typing import Any

_FIELDS = {"text": "text", "reasoning": "thinking", "tool_call": "input", "tool_result": "content"}


class TextViolation(Exception):
    """A piece of text that fits nowhere, or a message that is not what its pieces made."""


class ShownText:
    """What a client of one stream would show of each message."""

    def __init__(self, deltas: bool) -> None:
        self._deltas = deltas
        self._texts: dict[str, list[str]] = {}

    def forget(self) -> None:
        self._texts.clear()

    def fact(self, message: dict[str, Any], catching_up: bool) -> None:
        """A numbered message replaces everything. At the head it holds exactly what the pieces before it made."""
        new, known = texts(message), self._texts.get(message["id"])
        is_reset = not message["parts"]  # it starts again: a connection broke, or a result is not what was shown of it
        if known is not None and not catching_up and not is_reset:
            same = new[: len(known)] == known if self._deltas else grew(known, new)
            if not same:
                raise TextViolation(f"{message['id']} was shown as {known} and is {new}")
        self._texts[message["id"]] = new

    def whole(self, message: dict[str, Any], joined: bool) -> None:
        """An unfinished message without a number: only ever more of what was shown."""
        new, known = texts(message), self._texts.get(message["id"])
        if not joined and not self._deltas and known is None:
            raise TextViolation(f"{message['id']} was shown before the fact that made it")
        if known is not None and not grew(known, new):
            raise TextViolation(f"{message['id']} was shown as {known} and then as {new}")
        self._texts[message["id"]] = new

    def delta(self, delta: dict[str, Any]) -> None:
        known = self._texts.get(delta["message_id"])
        part = delta["part"]
        if not self._deltas or known is None or part > len(known):
            raise TextViolation(f"a piece for a message that is not there: {delta}")
        if part == len(known):
            known.append("")
        if delta["at"] != len(known[part]):
            raise TextViolation(f"a hole or a repeat: {delta} after {known[part]!r}")
        known[part] += delta["text"]


def grew(before: list[str], after: list[str]) -> bool:
    return len(after) >= len(before) and all(new.startswith(old) for old, new in zip(before, after, strict=False))


def texts(message: dict[str, Any]) -> list[str]:
    return [part["data"].get(_FIELDS.get(part["type"], ""), "") for part in message["parts"]]
