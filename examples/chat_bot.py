"""A chat on the terminal: one session, answers as they are written.

    python examples/chat_bot.py [DIRECTORY]

Type a line and read the answer; /quit or the end of input leaves, and Ctrl-C leaves at once. What the agent wants to do
and may not do without a person is asked for right here. The conversation stays on the server: any other client can open
it and go on.
"""

import asyncio
import json
import signal
import sys

from windlass.client import Action, PermissionRequest, RunHandle, WindlassError, WorkspaceHandle, connect


async def main(directory: str) -> None:
    typed = Typed()
    async with connect() as client:
        workspace = await client.open(directory)
        session = await workspace.create_session("chat")
        print(f"Session {session.id} in {workspace.path}. /quit leaves.")
        while (line := await typed.line("> ")) and line.strip() != "/quit":
            if line.strip():
                await answer(workspace, await workspace.prompt(session.id, line.strip()), typed)


async def answer(workspace: WorkspaceHandle, run: RunHandle, typed: "Typed") -> None:
    """Print what the run says while it says it, and ask for what it asks."""

    async def decide(request: PermissionRequest) -> Action | None:
        if request.root_session_id != run.session_id:
            return None  # another session of this workspace: not this chat's business
        # As JSON: what a model wrote must not move the cursor or hide a part of itself.
        wish = f"{request.tool_name} {json.dumps(request.params)}"
        return "allow" if (await typed.line(f"\nMay it use {wish}? [y/N] ")).strip() == "y" else "deny"

    approving = asyncio.create_task(workspace.answer_permissions(decide))
    try:
        async for text in run.text():
            print(text, end="", flush=True)
    finally:
        approving.cancel()
        await asyncio.gather(approving, return_exceptions=True)
    result = await run.result()
    print("" if result.completed else f"\n({result.state}: {result.error})")


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


if __name__ == "__main__":
    # A thread that waits for a line would hold up the end of the program. The run is the server's, and goes on.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "."))
    except WindlassError as error:
        sys.exit(error.message)
