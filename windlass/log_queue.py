"""The lines of a log on their way: whoever says one never waits for its disk or its reader; one thread does."""

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime

from windlass import limits


class LogQueue:
    """Takes lines at once and has them written soon, in their order. What it must drop is counted, and said."""

    def __init__(
        self,
        append: Callable[[bytes], bool],
        told: Callable[[int], str],
        name: str,
        characters: int = limits.LOG_QUEUE_CHARACTERS,
    ) -> None:
        """`append` may block, and says whether it wrote all; `told` is the line that says how many were dropped."""
        self._append = append
        self._told = told
        self._room = characters
        self._waiting: list[str] = []
        self._dropped = 0
        self._is_full = False  # until it is emptied: a short line that still fits would come before those dropped
        self._leaving = False
        # Held for the moment of a list's append or swap, never while something is written.
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._write, name=name, daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        """Write a line (without its end), soon. Never waits: who reads it must not stop every stream."""
        with self._changed:
            # A line that is longer than the whole queue is taken by an empty one: there is no other way to say it.
            if self._waiting and len(line) > self._room:
                self._is_full = True
            if self._is_full:
                self._dropped += 1
                return
            self._room -= len(line)
            self._waiting.append(line)
            self._changed.notify()

    def close(self, seconds: float = limits.LOG_CLOSE_SECONDS) -> None:
        """Write what waits, as far as that takes no longer than this. A thread that hangs is left behind."""
        with self._changed:
            self._leaving = True
            self._changed.notify()
        self._thread.join(seconds)

    # -- in the thread --

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._leaving)
                lines, self._waiting, self._is_full = self._waiting, [], False
                self._room += sum(map(len, lines))
                dropped, self._dropped = self._dropped, 0
                leaving = self._leaving
            said = [*lines, self._told(dropped)] if dropped else lines
            if said and not self._append("".join(f"{line}\n" for line in said).encode(errors="backslashreplace")):
                with self._changed:
                    self._dropped += dropped + len(lines)
            if leaving:
                return


def log_line(event: str, **fields: int) -> str:
    """What the log says of itself, as one of its lines."""
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return json.dumps({"event": event, **fields, "level": "warning", "timestamp": now})
