"""Approve from elsewhere: watch a workspace from another process, and answer what its agents may do.

    python examples/approve_elsewhere.py DIRECTORY --allow write --allow edit --deny bash

A tool that is allowed or denied here is answered at once, in every session of the workspace, also for sub-agents. For
the rest a person is asked if this is a terminal; otherwise it is left to others. Each request is decided once, whoever
is first counts, and what somebody else settles vanishes here too. It runs until it is interrupted.
"""

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Collection

from windlass.client import Action, PermissionRequest, WindlassError, connect


async def watch(directory: str, allowed: Collection[str], denied: Collection[str]) -> None:
    typed = Typed()

    async def decide(request: PermissionRequest) -> Action | None:
        # As JSON: what a model wrote must not move the cursor or hide a part of itself.
        wish = f"{request.tool_name} {json.dumps(request.params)}"
        action: Action | None = None
        if request.tool_name in denied:
            action = "deny"
        elif request.tool_name in allowed:
            action = "allow"
        elif sys.stdin.isatty():
            action = "allow" if (await typed.line(f"{wish}\nAllow? [y/N] ")).strip() == "y" else "deny"
        print(f"{action or 'left to others'}: {wish}", flush=True)
        return action

    async with connect() as client:
        workspace = await client.open(directory)
        print(f"Watching {workspace.path}.", flush=True)
        await workspace.answer_permissions(decide)


class Typed:
    """What a person types, one line for one question."""

    def __init__(self) -> None:
        self._reading: asyncio.Future[str] | None = None

    async def line(self, question: str) -> str:
        """One line, with its end; "" when there will be no more."""
        print(question, end="", flush=True)
        if self._reading is not None:
            # Begun for a question that is gone. Taken for this one, that line could allow what nobody has seen.
            await asyncio.shield(self._reading)
            print(f"(That question is gone.) {question}", end="", flush=True)
        self._reading = asyncio.ensure_future(asyncio.to_thread(sys.stdin.readline))
        line = await asyncio.shield(self._reading)
        self._reading = None
        return line


def main() -> None:
    parser = argparse.ArgumentParser(description="Answer the permissions of a workspace.")
    parser.add_argument("directory", nargs="?", default=".")
    parser.add_argument("--allow", action="append", default=[], metavar="TOOL")
    parser.add_argument("--deny", action="append", default=[], metavar="TOOL", help="wins over --allow")
    options = parser.parse_args()
    # A thread that waits for a line would hold up the end of the program.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        asyncio.run(watch(options.directory, options.allow, options.deny))
    except WindlassError as error:
        sys.exit(error.message)


if __name__ == "__main__":
    main()
