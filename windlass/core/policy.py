"""The user's standing rules for tools: deny first, then the longest match, and a tie asks; as does what no rule covers.

A pattern is a glob on "tool" or on "tool:argument", where the argument is the exact resource (a path, a command line).
For command lines an allow is narrow and a deny wide, as `command_patterns.py` says.
"""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from windlass.core.command_patterns import CommandLine, names_program

Rule = Literal["allow", "ask", "deny"]
_HOST = re.compile(r"[^/]*://[^/]*")
COMMANDS = "bash"  # the tool whose resource is a command line


class Ruling(msgspec.Struct, frozen=True):
    """`pattern` is the rule that decided, "" when none did. `for_run`: it came with the run's prompt."""

    rule: Rule
    pattern: str = ""
    for_run: bool = False


class Policy(msgspec.Struct, frozen=True):
    """`allow_for_run` are rules that came with a prompt, for its run: they are compared as if they stood in `allow`."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    allow_for_run: tuple[str, ...] = ()

    def decide(self, tool: str, resource: str) -> Rule:
        return self.ruling(tool, resource).rule

    def ruling(self, tool: str, resource: str) -> Ruling:
        """What the rules say, and which of them."""
        line = CommandLine(resource)
        deny = _longest(self.deny, tool, line, line.reached)
        if deny is not None:
            return Ruling("deny", deny)
        allow = _longest((*self.allow, *self.allow_for_run), tool, line, line.covered)
        ask = _longest(self.ask, tool, line, line.reached)
        if allow is not None and (ask is None or len(allow) > len(ask)):
            return Ruling("allow", allow, for_run=allow not in self.allow)
        return Ruling("ask", ask or "")


def fits(pattern: str, tool: str, resource: str) -> bool:
    """Whether a pattern that a person typed, for this tool alone, covers this resource."""
    if tool == COMMANDS:
        return names_program(pattern) and CommandLine(resource).covered(pattern)
    return fnmatchcase(resource, pattern) and _is_same_host(pattern, resource)


def _longest(patterns: tuple[str, ...], tool: str, line: CommandLine, compare: Callable[[str], bool]) -> str | None:
    """The longest pattern that matches, and of several the first; None if none does."""
    return max((p for p in patterns if _matches(p, tool, line, compare)), key=len, default=None)


def _matches(pattern: str, tool: str, line: CommandLine, compare: Callable[[str], bool]) -> bool:
    name, colon, argument = pattern.partition(":")
    if not colon:
        return fnmatchcase(tool, pattern)
    if tool != COMMANDS:
        is_wide = compare == line.reached
        return fnmatchcase(f"{tool}:{line.line}", pattern) and (is_wide or _is_same_host(argument, line.line))
    # "bash:*" says everything, whatever the shell makes of it.
    return fnmatchcase(tool, name) and (set(argument) == {"*"} or compare(argument))


def _is_same_host(pattern: str, resource: str) -> bool:
    """Whether what a pattern says of a URL's host is about its host: `https://*.example.org/*` must not allow
    `https://elsewhere.net/.example.org/`. True for all that is not about URLs."""
    wanted, there = _HOST.match(pattern), _HOST.match(resource)
    return wanted is None or there is None or fnmatchcase(there.group(), wanted.group())
