"""Scripts for the scripted model: what it says and does, and when, as a JSON file.

    {"rules": [{"match": "substring of the prompt, or *",
                "replies": [[{"tool": "ls", "input": {"path": "."}}], [{"say": "Two files."}]]}]}

The first rule that matches the newest user message is followed; the k-th model call since that message uses
`replies[k]`. After the last reply it is given again if it is only words; if it asks for a tool the model says "Done."
(`"repeat": true` on the rule makes it ask again, for tests of an agent that is stuck).
"""

from pathlib import Path
from typing import Any, Literal

import msgspec

from windlass.wire.messages import FinishReason


class Say(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words of the answer, streamed one by one; a pace is given as words a second or as milliseconds before each."""

    say: str
    words_per_second: float = 0.0
    delay_ms: float = 0.0


class Think(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words of reasoning."""

    think: str
    words_per_second: float = 0.0
    delay_ms: float = 0.0


class CallTool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call. An `input` that is a text is sent as it is, also when it is not JSON."""

    tool: str
    input: dict[str, Any] | str = {}
    id: str = ""


class Pause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pause_ms: float


class Fail(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Break off as a provider would."""

    error: str
    retryable: bool = False
    retry_after: float | None = None


class End(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """End the answer here with this reason. Without one it ends with tool_use or end_turn, as fits."""

    finish: FinishReason


class Hang(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Say nothing more until cancelled."""

    hang: Literal[True]


Step = Say | Think | CallTool | Pause | Fail | End | Hang
Reply = list[Step]
_KINDS: dict[str, type[Step]] = {
    "say": Say,
    "think": Think,
    "tool": CallTool,
    "pause_ms": Pause,
    "error": Fail,
    "finish": End,
    "hang": Hang,
}
DONE: Reply = [Say("Done.")]


class Rule(msgspec.Struct, frozen=True):
    match: str
    replies: list[Reply]
    repeat: bool = False

    def matches(self, prompt: str) -> bool:
        return self.match == "*" or self.match in prompt

    def reply(self, call_number: int) -> Reply:
        if call_number < len(self.replies):
            return self.replies[call_number]
        last = self.replies[-1]
        asks = any(isinstance(step, CallTool) for step in last)
        # Asking for the same tool for ever is what a script's author almost never means.
        return DONE if asks and not self.repeat else last


class Script(msgspec.Struct, frozen=True):
    rules: list[Rule]

    def reply(self, prompt: str, call_number: int) -> Reply:
        for rule in self.rules:
            if rule.matches(prompt):
                return rule.reply(call_number)
        return [Say("The script has no rule that matches this message.")]


def load_script(path: str | Path) -> Script:
    """Read a script file. ValueError names the file, the place in it and what is expected there."""
    try:
        raw = msgspec.json.decode(Path(path).read_bytes())
    except OSError as error:
        raise ValueError(f"The script {path} cannot be read: {error.strerror}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"The script {path} is not valid JSON: {error}.") from None
    try:
        return parse_script(raw)
    except ValueError as error:
        raise ValueError(f"The script {path}: {error}") from None


def parse_script(raw: Any) -> Script:
    rules = _field(raw, "rules", "the script")
    return Script([_rule(rule, f"rules[{number}]") for number, rule in enumerate(_list(rules, "rules"))])


def parse_reply(raw: Any, place: str = "reply") -> Reply:
    """The steps of one reply from their JSON form."""
    return [_step(step, f"{place}[{number}]") for number, step in enumerate(_list(raw, place))]


def _rule(raw: Any, place: str) -> Rule:
    match, replies = _field(raw, "match", place), _list(_field(raw, "replies", place), f"{place}.replies")
    repeat = raw.get("repeat", False)
    if not isinstance(match, str) or not match:
        raise ValueError(f'{place}.match is {match!r}; write a part of the prompt, or "*".')
    if not replies:
        raise ValueError(f"{place}.replies is empty; write at least one list of steps.")
    if not isinstance(repeat, bool):
        raise ValueError(f"{place}.repeat is {repeat!r}; write true or false.")
    return Rule(match, [parse_reply(reply, f"{place}.replies[{k}]") for k, reply in enumerate(replies)], repeat)


def _step(raw: Any, place: str) -> Step:
    kinds = [kind for kind in _KINDS if isinstance(raw, dict) and kind in raw]
    if len(kinds) != 1:
        raise ValueError(f"{place} is {raw!r}; a step has exactly one of: {', '.join(_KINDS)}.")
    try:
        step: Step = msgspec.convert(raw, _KINDS[kinds[0]])
    except msgspec.ValidationError as error:
        raise ValueError(f"{place}: {error}.") from None
    return step


def _field(raw: Any, name: str, place: str) -> Any:
    if not isinstance(raw, dict) or name not in raw:
        raise ValueError(f'{place} needs to be an object with "{name}".')
    return raw[name]


def _list(raw: Any, place: str) -> list[Any]:
    if not isinstance(raw, list):
        raise ValueError(f"{place} is {raw!r}; write a list.")
    return raw
