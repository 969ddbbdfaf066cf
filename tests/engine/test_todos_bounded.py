"""The list of what is to be done, as a session keeps it."""

from pathlib import Path

from engine_world import EngineWorld, Playing

from windlass import limits
from windlass.wire.execution import Events, RunOutcome
from windlass.wire.run_events import TodosChanged
from windlass.wire.sessions import Todo


async def test_a_list_without_end_is_cut(tmp_path: Path) -> None:
    """A worker's list would be sent to everyone with each change of its session (A38)."""

    async def play(events: Events) -> RunOutcome:
        long = "x" * (limits.TODO_CHARACTERS + 1)
        events.emit(TodosChanged([Todo(long, "pending", long)] * (limits.TODOS + 1)))
        return RunOutcome("completed")

    async with EngineWorld(tmp_path, lambda *_: Playing(play)) as world:
        workspace = await world.open()
        session_id, _ = await world.ran(workspace)
        todos = workspace.sessions.get(session_id).todos
        cut = "x" * limits.TODO_CHARACTERS
        assert (len(todos), todos[0]) == (limits.TODOS, Todo(cut, "pending", cut))
