"""The port between an agent and its tools.

A tool is asked twice: `plan` says what it would do (and raises ToolError when the arguments make no sense), `run` does
exactly that. What people approve is the plan; the plan object itself is handed to `run`, so what was approved is what
is executed (I10).
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import msgspec

from windlass.wire.execution import PermissionAsk


class ToolError(Exception):
    """The tool cannot do it. The message goes to the model, so it says what to do instead."""


class ToolOutput(msgspec.Struct, frozen=True):
    """`metadata` is JSON text for clients; the model sees `content`, and an image if `data` (base64) is one.
    `written`: files to keep a version of. `goes_on`: what it tells of is still at work (a command in the background, an
    agent), so that to ask again and be told the same is waiting, and not going in circles.

    Metadata keys that later runs of the session rely on: `"files": {path below the root: sha256 of the content}` for
    files whose content the model now knows, `"cwd"` for where a shell stands.
    """

    content: str
    is_error: bool = False
    metadata: str = ""
    written: list["WrittenFile"] = []
    data: str = ""
    mime_type: str = ""
    goes_on: bool = False


class WrittenFile(msgspec.Struct, frozen=True):
    """A file that was changed, by its absolute path. `before` is None when there was none.

    An encoding of "" is UTF-8 text; "base64" is for bytes that are not. A digest is the SHA-256 of the bytes, in hex;
    "" is left to whoever keeps them.
    """

    path: str
    content: str
    before: str | None
    encoding: str = ""
    before_encoding: str = ""
    digest: str = ""
    before_digest: str = ""


class ProcessExit(msgspec.Struct, frozen=True):
    """`exit_code` is negative for a signal, as in Python's subprocess. `reason` says who ended it."""

    exit_code: int
    reason: Literal["exited", "killed", "lost"] = "exited"


class Process(Protocol):
    """A process tree the guardian started for us."""

    @property
    def pid(self) -> int: ...

    @property
    def output(self) -> int:
        """Descriptor of the reading end of the pipe that is its standard output and error; the owner closes it."""

    async def wait(self) -> ProcessExit:
        """Return when the main process has ended and everything it left behind is gone."""

    def kill(self) -> None:
        """End the whole tree: first politely, after a grace with force. Safe to call twice and after the end."""


class Fence(msgspec.Struct, frozen=True):
    """What a command is kept from by the kernel: it can neither read nor change these paths (they need not exist), nor
    connect to these TCP ports, nor signal what is not of its own making."""

    paths: tuple[str, ...]
    ports: tuple[int, ...] = ()


class Spawner(Protocol):
    """Starts processes that cannot outlive the server."""

    async def spawn(self, argv: Sequence[str], *, cwd: str, env: dict[str, str], fence: Fence | None = None) -> Process:
        """Raises OSError when it cannot be started; with a `fence`, also when it cannot be confined."""


class FileRoot(Protocol):
    """A workspace's directory, held open. No path that goes through it can leave it, not even by a symlink race."""

    @property
    def path(self) -> str: ...

    def relative(self, path: str) -> str:
        """The path below the root that is meant; raises ToolError for one outside."""

    def read_bytes(self, path: str, limit: int) -> bytes:
        """At most `limit` bytes of a regular file; raises ToolError for anything else."""

    def write_bytes(self, path: str, content: bytes) -> None:
        """Replace or create a regular file, whole or not at all, making missing directories."""

    def replace_bytes(self, path: str, before: bytes | None, content: bytes | None) -> None:
        """Write (None: remove) only if the file still is `before` (None: still does not exist); else ToolError."""

    def list_directory(self, path: str) -> list[tuple[str, str]]:
        """(name, kind) of the entries, sorted; kind is file, dir, link or other."""


class ToolPlan(Protocol):
    """A tool call that was understood and can be carried out. `ask` is what people are shown."""

    @property
    def ask(self) -> PermissionAsk: ...

    async def run(self) -> ToolOutput:
        """Do it. Raises ToolError; a cancel arrives as CancelledError and must leave no process behind."""


class StreamingPlan(ToolPlan, Protocol):
    """A plan that shows what it has to say while it works. Whoever carries it out knows it by `streams`."""

    @property
    def streams(self) -> Literal[True]: ...

    async def run(self, show: Callable[[str], None] | None = None) -> ToolOutput:
        """Do it, and call `show` with each piece of output, in order, at most about ten times a second, bounded in all
        and never after this has returned. What is returned stands for everything that was shown."""


class Tool(Protocol):
    """A tool whose `run` waits for people may say so (`waits_for_people = True`): that time is theirs."""

    name: str
    description: str
    schema: dict[str, Any]
    read_only: bool

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> ToolPlan:
        """Understand the arguments and say what would be done, without doing it. In a thread: it may read."""
