"""`todos`: the agent's list of what is to be done, for itself and for the people who look on."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from windlass import limits
from windlass.tools.arguments import read_arguments, schema_of
from windlass.wire.execution import PermissionAsk
from windlass.wire.run_events import RunEvent, TodosChanged
from windlass.wire.sessions import Todo
from windlass.wire.tools import ToolOutput

Text = Annotated[str, Meta(max_length=limits.TODO_CHARACTERS)]


class OneTodo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    content: Annotated[Text, Meta(min_length=1, description='What is to be done: "Run the tests"')]
    status: Annotated[Literal["pending", "in_progress", "completed"], Meta(description="Where it stands")]
    active_form: Annotated[Text, Meta(description='The same while it is being done: "Running the tests"')] = ""


class TodosArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    todos: Annotated[list[OneTodo], Meta(max_length=limits.TODOS, description="The whole list; it replaces the last")]


class Todos:
    name = "todos"
    description = (
        "Keep a list of what is to be done, which the user sees. Use it for work of several steps: write the list when "
        "you begin, have one item in_progress at a time, and mark each completed as soon as it is. Every call gives "
        "the whole list. An empty list removes it."
    )
    schema = schema_of(TodosArguments)
    read_only = True

    def __init__(self, emit: Callable[[RunEvent], None]) -> None:
        self._emit = emit

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> "TodosPlan":
        wanted = read_arguments(arguments, TodosArguments)
        todos = [Todo(one.content, one.status, one.active_form) for one in wanted.todos]
        ask = PermissionAsk(
            tool_call_id=tool_call_id,
            tool_name=self.name,
            action="update",
            description=f"Update the list of what is to be done ({len(todos)} items)",
            path="",
            resource="update",
            params={"todos": msgspec.to_builtins(todos)},
            confined=True,
        )
        return TodosPlan(ask, todos, self._emit)


@dataclass(frozen=True, slots=True)
class TodosPlan:
    ask: PermissionAsk
    todos: list[Todo]
    emit: Callable[[RunEvent], None]

    async def run(self) -> ToolOutput:
        self.emit(TodosChanged(self.todos))
        if not self.todos:
            return ToolOutput("The list is empty now.")
        counted = Counter(todo.status for todo in self.todos)
        states = ", ".join(f"{counted[status]} {status}" for status in ("completed", "in_progress", "pending"))
        return ToolOutput(f"The list has {len(self.todos)} items: {states}.")
