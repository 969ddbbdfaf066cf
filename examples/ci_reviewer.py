"""A reviewer for a pipeline: reads a change, says what is wrong with it, and decides by its exit code.

    git diff main | python examples/ci_reviewer.py --max-cost 0.50
    python examples/ci_reviewer.py --since main

The agent may read the project and nothing else: its session is in plan mode, and whatever would wait for a person is
denied. Exit code 0: approved. 1: changes are wanted. 2: there is no verdict (the run failed, took too long, cost too
much, or the model did not say). The review is on standard output, its cost on standard error.
"""

import argparse
import asyncio
import subprocess
import sys

from windlass.client import Action, PermissionRequest, RunResult, WindlassError, connect

APPROVED, CHANGES, NO_VERDICT = 0, 1, 2
MAX_DIFF_CHARACTERS = 200_000  # more does not fit into a model's context beside the files it has to read
READ_ONLY = ["view", "ls", "glob", "grep"]
TASK = """\
Review the change below. Read the files around it where that helps. Name the file and the line of each problem, worst \
first. End with a line that is exactly `VERDICT: approve` or `VERDICT: changes`.

```diff
{diff}
```"""


async def review(diff: str, directory: str, max_cost: float, timeout: float) -> RunResult:
    async with connect() as client:
        workspace = await client.open(directory)
        session = await workspace.create_session("review")
        await workspace.set_plan(session.id, True)

        def deny(request: PermissionRequest) -> Action | None:
            return "deny" if request.root_session_id == session.id else None

        nobody_is_there = asyncio.create_task(workspace.answer_permissions(deny))
        try:
            prompt = TASK.format(diff=diff)
            run = await workspace.prompt(session.id, prompt, allow=READ_ONLY, max_cost=max_cost)
            try:
                return await run.result(timeout)
            except TimeoutError:
                await run.cancel()
                return await run.result()
        finally:
            nobody_is_there.cancel()
            await asyncio.gather(nobody_is_there, return_exceptions=True)


def verdict(result: RunResult) -> int:
    """The exit code: only a clear word of a run that completed counts."""
    last = result.text.strip().splitlines()[-1:] if result.completed else []
    return {"VERDICT: approve": APPROVED, "VERDICT: changes": CHANGES}.get("".join(last).strip(), NO_VERDICT)


def main() -> int:
    parser = argparse.ArgumentParser(description="Review a change; the diff comes on standard input or from git.")
    parser.add_argument("--since", help="review what `git diff SINCE` says, instead of standard input")
    parser.add_argument("-C", "--directory", default=".", help="the project")
    parser.add_argument("--max-cost", type=float, default=1.0, help="end the run when it has cost this much")
    parser.add_argument("--timeout", type=float, default=600.0, metavar="SECONDS")
    options = parser.parse_args()
    if options.since:
        command = ["git", "-C", options.directory, "diff", options.since, "--"]
        diff = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    else:
        diff = sys.stdin.read(MAX_DIFF_CHARACTERS + 1)
    if not diff.strip() or len(diff) > MAX_DIFF_CHARACTERS:
        print("There is nothing to review." if not diff.strip() else "The change is too large.", file=sys.stderr)
        return NO_VERDICT
    try:
        result = asyncio.run(review(diff, options.directory, options.max_cost, options.timeout))
    except WindlassError as error:
        print(error.message, file=sys.stderr)
        return NO_VERDICT
    print(result.text)
    print(f"{result.state}, {result.cost:.4f} {result.error}".rstrip(), file=sys.stderr)
    return verdict(result)


if __name__ == "__main__":
    sys.exit(main())
