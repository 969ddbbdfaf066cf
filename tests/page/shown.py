"""A session with something of everything in it: for looking at all of the page at once, by tests and for pictures."""

from typing import NamedTuple

from tests.e2e.shared_world import Client
from tests.page.page_world import PageWorld

ANSWER = """The pause doubles with every attempt, and **nothing bounds it**:

| attempt | pause |
|---|---|
| 6 | 32 s |
| 12 | 34 min |

> A client that waits for half an hour looks as if it hung: see [the notes](https://example.org/retry).

I would do two things:

1. wait at most thirty seconds,
2. say so while it waits.

```python
def pause(attempt: int) -> float:
    return min(30.0, 0.5 * 2**attempt)  # a provider that is down stays down for minutes
```
"""
OLD = "def pause(attempt):\n    return 0.5 * 2**attempt\n"
NEW = "def pause(attempt: int) -> float:\n    return min(30.0, 0.5 * 2**attempt)\n"
TODOS = [
    {"content": "Read retry.py", "status": "completed", "active_form": "Reading"},
    {"content": "Bound the pause", "status": "in_progress", "active_form": "Bounding"},
    {"content": "Run the tests", "status": "pending", "active_form": "Testing"},
]
USAGE = {"prompt_tokens": 5210, "completion_tokens": 388, "total_tokens": 5598}


class Shown(NamedTuple):
    session_id: str
    first_run: str
    waiting_run: str


async def everything(world: PageWorld, client: Client) -> Shown:
    """Thinking, Markdown, code, a list to do, tools that worked and failed, a diff; at the end a permission waits."""
    (world.directory / "retry.py").write_text(OLD)
    session_id = await client.new_session("Bound the retries")
    first = await client.prompt(session_id, "Why does the client hang when the provider is down? Look at `retry.py`.")
    call = await world.call()
    await call.think("The pause grows without a bound.\nFirst look at the file.")
    await call.tool("view", {"file_path": "retry.py"})
    await call.tool("view", {"file_path": "no-such-file.py"}, id="second")
    await call.end(usage=USAGE)
    await world.answer(ANSWER)
    await client.run_over(first["run_id"])
    second = await client.prompt(session_id, "Do it, and run the tests.")
    await world.use("todos", {"todos": TODOS})
    await world.use("edit", {"file_path": "retry.py", "old_string": OLD, "new_string": NEW})
    return Shown(session_id, str(first["run_id"]), str(second["run_id"]))
