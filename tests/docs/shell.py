"""The shell in which a page is typed: one bash a page, in a home and a project of its own, with real servers beside it.

`windlass` in it is forked from a stem. What stays (`windlass serve`, `windlass attach`) is started as in a terminal of
its own: the shell goes on when it is ready. docs/README.md has the rules that writers of pages need.
"""

import os
import re
import select
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from tests.docs.home import environment, lay_out
from tests.docs.programs import Program
from windlass.testing.stem import Stem

COMMAND_SECONDS = 40.0  # the longest that one command of a page may take, on a machine that is full
_ID_SECONDS = 10.0  # until there is something that a placeholder can mean: a permission that is being asked for
_SHOWN_SECONDS = 10.0  # until a program in the background has said what the page shows
_TURN_SECONDS = 0.05  # between two looks at what cannot be waited for: a file, a row
_STOP_SECONDS = 0.3  # between two words to a program that is to leave
_PACKET_BYTES = 256 * 1024
# Ids are long and random: a page says what is meant, and the newest of it is taken.
PLACEHOLDERS = {
    "SESSION": "SELECT id FROM sessions WHERE parent = '' ORDER BY updated_at DESC, seq DESC LIMIT 1",
    "RUN": "SELECT id FROM runs ORDER BY place DESC LIMIT 1",
    "ID": "SELECT id FROM permissions UNION ALL SELECT id FROM questions LIMIT 1",
}
_PLACEHOLDER = re.compile(rf"(?<![\w$.-])({'|'.join(PLACEHOLDERS)})(?![\w=-])")
# Each command is read as it is given, runs with nothing on its standard input, and its exit code is told.
_LOOP = """
make() { if [ "$*" = run ]; then DOCS_PROGRAM=.venv/bin/windlass windlass serve; else command make "$@"; fi; }
while IFS= read -r -d '' command <&3; do
  eval "$command" 3<&- 4>&-
  printf '%s\\n' "$?" >&4
done
"""


class Shell:
    def __init__(self, directory: Path, stem: Stem) -> None:
        self.home = directory / "home"
        self.project = self.home / "project"
        self.data_dir = self.home / ".local/share/windlass"
        self.port = 0  # instead of 4747, once a server has one
        self._stem = stem
        self._output = directory / "output"
        self._programs: dict[socket.socket, Program] = {}
        self._staying: list[Program] = []  # after the shell was answered
        self._newest: Program | None = None
        self._last_run: str | None = None
        lay_out(directory)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(directory / "socket"))
        self._listener.listen(16)
        self._bash = self._start_bash(directory)

    # -- typing --------------------------------------------------------------------------------------------------------

    def type(self, command: str) -> int:
        """Run one command, as a person would who reads the page; its exit code."""
        self._newest = None
        self._last_run = self.newest("RUN")
        os.write(self._commands, self._meant(command).encode() + b"\0")
        code = self._until(self._told, f"`{command}` has ended")
        if command.rstrip().endswith("&") and "windlass " in command:  # a person looks before typing on
            self._until(lambda: self._has_settled() or None, f"`{command}` has begun")
        return int(code)

    def said(self, since: int = 0) -> str:
        """What was printed after this byte, by the shell and everything in it; the home is called as on the pages."""
        said = self._output.read_bytes()[since:].decode("utf-8", "replace").replace(str(self.home), "/home/me")
        return said.replace(f":{self.port}", ":4747") if self.port else said

    @property
    def server_log(self) -> str:
        return (self.home.parent / "server.log").read_text("utf-8", "replace")

    @property
    def place(self) -> int:
        return self._output.stat().st_size

    def shows(self, missing: Callable[[], list[str]]) -> list[str]:
        """Wait until nothing is missing of what a page shows; what is missing after all."""
        with suppress(AssertionError):
            self._until(lambda: True if not missing() else None, "everything is shown", _SHOWN_SECONDS)
        return missing()

    def _meant(self, command: str) -> str:
        words, comment, rest = command.partition(" # ")
        meant = _PLACEHOLDER.sub(lambda found: self._known(found[1]), words) + comment + rest
        return meant.replace("4747", str(self.port)) if self.port else meant

    def _known(self, placeholder: str) -> str:
        return self._until(lambda: self.newest(placeholder), f"there is a {placeholder}", _ID_SECONDS)

    def newest(self, placeholder: str) -> str | None:
        journal = self.data_dir / "journal.db"
        if not journal.exists():
            return None
        with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as connection:
            row = connection.execute(PLACEHOLDERS[placeholder]).fetchone()
        return str(row[0]) if row else None

    def _has_settled(self) -> bool:
        """Whether what was put into the background has begun: a run, when it waits for people."""
        program = self._newest
        if program is None or program.ended() is not None:
            return program is not None
        if program.name != "run":
            return program.is_ready(self.said(program.since))
        return self.newest("ID") is not None and self.newest("RUN") != self._last_run

    def _told(self) -> str | None:
        if not select.select([self._codes], [], [], 0)[0]:
            return None
        return os.read(self._codes, 64).decode().strip() or "1"

    # -- what the shell starts -----------------------------------------------------------------------------------------

    def _until(self, look: Callable[[], str | bool | None], what: str, seconds: float = COMMAND_SECONDS) -> str:
        """Serve the shell until something is there; what it is."""
        deadline = time.monotonic() + seconds
        while (found := look()) is None:
            assert time.monotonic() < deadline, (
                f"waited in vain until {what}\n{self.said()[-4000:]}\n{self.server_log[-2000:]}"
            )
            assert self._bash.poll() is None, f"the shell is gone\n{self.said()[-4000:]}"
            self._serve()
        return str(found)

    def _serve(self) -> None:
        watched: list[socket.socket | Stem | int] = [self._listener, self._stem, self._codes, *self._programs]
        ready = select.select(watched, [], [], _TURN_SECONDS)[0]
        if self._listener in ready:
            self._accept()
        for link in [link for link in self._programs if link in ready]:
            program = self._programs.pop(link)  # whoever is answered says nothing: the shell has killed it
            program.end()
            self._staying.append(program)
            link.close()
        for link, program in list(self._programs.items()):
            if (answer := program.answer(self.said(program.since))) is not None:
                del self._programs[link]
                with closing(link), suppress(OSError):
                    link.send(str(answer).encode())
                if program.code is None:
                    self._staying.append(program)
                if program.name == "serve" and program.code is None:
                    self.port = program.port()

    def _accept(self) -> None:
        link, _ = self._listener.accept()
        packet, descriptors, _, _ = socket.recv_fds(link, _PACKET_BYTES, 3)
        directory, count, *rest = packet.decode().split("\0")
        arguments, variables = rest[: int(count)], dict(entry.split("=", 1) for entry in rest[int(count) :])
        if arguments[:1] == ["serve"]:
            self.stop_server()  # a page that starts another one has ended the first, in the terminal that it is in
        since = self.place
        self._newest = self._programs[link] = Program.start(
            self._stem, arguments, variables, directory, descriptors, self.home.parent / "ready.json", self.port
        )
        self._newest.since = since
        for descriptor in descriptors:
            os.close(descriptor)

    def stop_server(self) -> None:
        for program in [one for one in self._staying if one.name == "serve"]:
            self._stop(program)

    def _stop(self, program: Program) -> None:
        deadline = time.monotonic() + COMMAND_SECONDS
        while program.ended() is None:
            program.end()  # again and again: the second time a server does not wait for its runs
            if time.monotonic() > deadline:
                program.kill()
            select.select([self._stem], [], [], _STOP_SECONDS)
        self._staying.remove(program)

    # -- the beginning and the end -------------------------------------------------------------------------------------

    def _start_bash(self, directory: Path) -> "subprocess.Popen[bytes]":
        read_commands, self._commands = os.pipe()
        self._codes, write_codes = os.pipe()
        script = f"exec 3<&{read_commands} 4>&{write_codes} {read_commands}<&- {write_codes}>&-\n{_LOOP}"
        with self._output.open("ab") as output:
            process = subprocess.Popen(
                ["bash", "--norc", "-c", script],
                cwd=self.project,
                env=environment(directory),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[read_commands, write_codes],
            )
        os.close(read_commands)
        os.close(write_codes)
        return process

    def close(self) -> None:
        """End everything that the page started; what is still there was left by it."""
        os.close(self._commands)
        for link, program in self._programs.items():
            link.close()
            self._staying.append(program)
        for program in sorted(self._staying, key=lambda one: one.name == "serve"):
            self._stop(program)
        self._bash.wait(COMMAND_SECONDS)
        os.close(self._codes)
        self._listener.close()
