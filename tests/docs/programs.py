"""A `windlass`, or a program of the page's own, that its shell has started, and when the shell may go on."""

import json
import os
import signal
from pathlib import Path

from windlass.testing.stem import Forked, Stem

_STAYING = ("serve", "attach")  # as in a terminal of their own


class Program:
    """One process. The shell is answered when it has ended, or, if it stays, when it is ready."""

    def __init__(self, name: str, process: Forked, ready_file: Path | None = None, input: int | None = None) -> None:
        self.name = name
        self.code: int | None = None
        self.since = 0  # where its output begins
        self._process = process
        self._ready_file = ready_file
        self._input = input  # kept open, so that who reads lines from it waits

    @classmethod
    def start(
        cls,
        stem: Stem,
        arguments: list[str],
        environment: dict[str, str],
        directory: str,
        descriptors: list[int],
        ready_file: Path,
        port: int,
    ) -> "Program":
        program = environment.pop("DOCS_PROGRAM", "windlass")
        if program == "python3":
            process = stem.fork(
                arguments, environment, descriptors[1], descriptors[2], descriptors[0], directory, is_script=True
            )
            return cls(program, process)
        name = arguments[0] if arguments and "--help" not in arguments else "help"
        if name == "serve":
            ready_file.unlink(missing_ok=True)
            arguments = [*_on_a_free_port(arguments, port), "--ready-file", str(ready_file)]
        theirs, ours = os.pipe() if name == "attach" else (descriptors[0], None)
        with ready_file.with_name("server.log").open("ab") as log:
            # A server on a terminal shows its warnings alone; here they are kept, to be looked at in the end.
            errors = log.fileno() if name == "serve" else descriptors[2]
            process = stem.fork([program, *arguments], environment, descriptors[1], errors, theirs, directory)
        if ours is not None:
            os.close(theirs)
        return cls(name, process, _ready_file(arguments, directory), ours)

    def answer(self, said: str) -> int | None:
        """The exit code that the shell is to be told, once there is one."""
        code = self.ended()
        if code is None and self.name in _STAYING and self.is_ready(said):
            return 0
        return code

    def ended(self) -> int | None:
        if self.code is None:
            self.code = self._process.poll()
            if self.code is not None:
                self._close_input()
        return self.code

    def is_ready(self, said: str) -> bool:
        """Whether it has begun with what it is for."""
        match self.name:
            case "serve" | "worker" if self._ready_file is not None:
                return self._ready_file.exists()
            case "attach":
                return "Attached to " in said
            case "worker":
                return "ws://" in said
            case _:
                return True

    def port(self) -> int:
        assert self._ready_file is not None
        url = str(json.loads(self._ready_file.read_bytes())["url"])
        return int(url.rpartition(":")[2].rstrip("/")) if not url.startswith("unix:") else 0

    def end(self) -> None:
        """Ask it to leave, as the end of its terminal would."""
        self._close_input()
        if self.name != "attach":
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self._process.kill()

    def _close_input(self) -> None:
        if self._input is not None:
            os.close(self._input)
            self._input = None


def _ready_file(arguments: list[str], directory: str) -> Path | None:
    if "--ready-file" not in arguments:
        return None
    return Path(directory) / arguments[arguments.index("--ready-file") + 1]


def _on_a_free_port(arguments: list[str], port: int) -> list[str]:
    """Pages say 4747, and a server of the reader may have it: the first one gets a free port, later ones the same."""
    if "--listen" not in arguments:
        return [*arguments, "--listen", f"127.0.0.1:{port}"]
    return [argument.replace(":4747", f":{port}") for argument in arguments]
