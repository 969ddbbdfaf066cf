"""The tools of one agent: those that the config allows, by name."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from windlass.wire.model import ToolSpec
from windlass.wire.tools import Tool


class ToolRegistry:
    """The tools whose name fits one of the `allowed` glob patterns. The order is by name, whatever order they came in:
    a model's cache holds only as long as it is told of the same tools in the same order.
    """

    def __init__(self, tools: Sequence[Tool], allowed: Sequence[str] = ("*",)) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in sorted(tools, key=lambda tool: tool.name):
            if tool.name in self._tools:
                # Whoever came second would act under the first one's permissions (A32).
                raise ValueError(f"Two tools are called {tool.name!r}.")
            if any(fnmatchcase(tool.name, pattern) for pattern in allowed):
                self._tools[tool.name] = tool

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def specs(self) -> list[ToolSpec]:
        """What a model is told of them."""
        return [ToolSpec(tool.name, tool.description, tool.schema) for tool in self]
