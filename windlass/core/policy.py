"""The user's standing rules for tools: deny first, then the longest match, and a tie asks.

A pattern is a glob on "tool" or on "tool:argument", where the argument is the exact resource (a path, a command line).
"""

from fnmatch import fnmatchcase
from typing import Literal

import msgspec

Rule = Literal["allow", "ask", "deny"]


class Policy(msgspec.Struct, frozen=True):
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()

    def decide(self, tool: str, resource: str) -> Rule:
        if _longest(self.deny, tool, resource) >= 0:
            return "deny"
        allow = _longest(self.allow, tool, resource)
        return "allow" if allow > _longest(self.ask, tool, resource) else "ask"


def _longest(patterns: tuple[str, ...], tool: str, resource: str) -> int:
    """Length of the longest pattern that matches, -1 if none does."""
    return max((len(p) for p in patterns if _matches(p, tool, resource)), default=-1)


def _matches(pattern: str, tool: str, resource: str) -> bool:
    if ":" in pattern:
        return fnmatchcase(f"{tool}:{resource}", pattern)
    return fnmatchcase(tool, pattern)
