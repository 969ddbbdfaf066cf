"""Fan out: the same task for many things at the same time, and what each answered and cost.

    python examples/fan_out.py "Summarise the file {} in one sentence." README.md setup.py
    python examples/fan_out.py --by-agents "Summarise the file {} in one sentence." README.md setup.py

By itself the program starts one session for each thing. With --by-agents it asks one agent to give each thing to a
sub-agent and to put the answers together; the program only watches them come and go. `{}` stands for the thing.
"""

import argparse
import asyncio
import sys
from contextlib import aclosing

from windlass.client import RunResult, Session, WindlassError, WorkspaceHandle, connect

AT_ONCE = 4  # prompts that are going on at the same time: providers limit how fast one may ask


async def by_sessions(workspace: WorkspaceHandle, task: str, things: list[str]) -> bool:
    """One session for each thing; whether all of them completed."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(thing: str) -> RunResult:
        async with room:
            session = await workspace.create_session(f"fan-out: {thing}")
            run = await workspace.prompt(session.id, task.replace("{}", thing))
            return await run.result()

    results = await asyncio.gather(*(one(thing) for thing in things))
    for thing, result in zip(things, results, strict=True):
        print(f"{thing} ({result.state}, {result.cost:.4f}):\n{result.text or result.error}\n")
    print(f"{len(results)} runs, {sum(result.cost for result in results):.4f} in all")
    return all(result.completed for result in results)


async def by_agents(workspace: WorkspaceHandle, task: str, things: list[str]) -> bool:
    """One agent that hands the work out; its sub-agents are sessions below its own."""
    tasks = "\n".join(f"- {task.replace('{}', thing)}" for thing in things)
    session = await workspace.create_session("fan-out")
    prompt = f"Give each of these tasks to a sub-agent of its own, wait for all, and report their answers:\n{tasks}"
    async with aclosing(workspace.events()) as events:
        await anext(events)  # the hello: from here on nothing is missed
        run = await workspace.prompt(session.id, prompt, allow=["agent"])
        async for event in events:
            if event.kind == "run_complete" and event.payload["run_id"] == run.id:
                break
            child = event.decoded
            if isinstance(child, Session) and child.parent_session_id == session.id:
                print(f"  {child.id} {'works' if child.is_busy else 'rests'}, {child.cost:.4f}", file=sys.stderr)
    result = await run.result()
    children = await workspace.sessions(parent=session.id)
    whole = await workspace.session(session.id)  # what its agents cost is added to its own
    print(f"{result.text or result.error}\n\n{len(children)} sub-agents, {whole.cost:.4f} in all")
    return result.completed


async def main() -> bool:
    parser = argparse.ArgumentParser(description="The same task for many things at the same time.")
    parser.add_argument("--by-agents", action="store_true", help="let one agent hand the work to sub-agents")
    parser.add_argument("-C", "--directory", default=".")
    parser.add_argument("task", help="what to do; {} stands for the thing")
    parser.add_argument("things", nargs="+")
    options = parser.parse_args()
    async with connect() as client:
        workspace = await client.open(options.directory)
        fan_out = by_agents if options.by_agents else by_sessions
        return await fan_out(workspace, options.task, options.things)


if __name__ == "__main__":
    try:
        sys.exit(0 if asyncio.run(main()) else 1)
    except WindlassError as error:
        sys.exit(error.message)
