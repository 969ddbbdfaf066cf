"""The server's log as a file: whoever writes a line never waits for the disk; one thread does.

JSON lines in `windlass.log`, readable by its owner alone. A file that is full becomes `windlass.log.1`, that one
`windlass.log.2`, and what was that is gone. `windlass logs` reads them.
"""

import json
import os
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

from windlass import limits

LOG_NAME = "windlass.log"


def generations(data_dir: Path) -> list[Path]:
    """The files of the log, the oldest first, whether they are there or not."""
    older = [data_dir / f"{LOG_NAME}.{number}" for number in range(limits.LOG_FILES - 1, 0, -1)]
    return [*older, data_dir / LOG_NAME]


class LogFile:
    """Takes lines at once and files them soon. What a slow disk makes it drop is counted, and said in the log."""

    def __init__(self, data_dir: Path, queue_lines: int = limits.LOG_QUEUE_LINES) -> None:
        self._files = generations(data_dir)
        self._queue_lines = queue_lines
        self._waiting: list[str] = []
        self._dropped = 0
        self._leaving = False
        self._complained = False
        # Held for the moment of a list's append or swap, never while the disk is at work.
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._file_lines, name="log file", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """File a line (without its end), soon. Never waits: a disk that hangs must not stop every stream."""
        with self._changed:
            if len(self._waiting) >= self._queue_lines:
                self._dropped += 1
                return
            self._waiting.append(line if len(line) <= limits.LOG_LINE_CHARACTERS else _cut(line))
            self._changed.notify()

    def close(self, seconds: float = limits.LOG_CLOSE_SECONDS) -> None:
        """File what waits, as far as that takes no longer than this. The thread of a disk that hangs is left behind."""
        with self._changed:
            self._leaving = True
            self._changed.notify()
        self._thread.join(seconds)

    # -- in the thread --

    def _file_lines(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._leaving)
                lines, self._waiting = self._waiting, []
                dropped, self._dropped = self._dropped, 0
                leaving = self._leaving
            if dropped:
                lines.append(log_line("log lines were dropped: the disk did not keep up", dropped=dropped))
            if lines and not self._append("".join(f"{line}\n" for line in lines).encode()):
                with self._changed:
                    self._dropped += dropped + len(lines) - bool(dropped)
            if leaving:
                return

    def _append(self, content: bytes) -> bool:
        """Opened for each batch: a file that somebody moved or removed is simply there again."""
        path = self._files[-1]
        try:
            if path.exists() and path.stat().st_size + len(content) > limits.LOG_FILE_BYTES:
                self._rotate()
            # O_NOFOLLOW: a link that was laid there is refused; what it points to is not ours to write.
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(path, flags, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
        except OSError as error:
            self._complain(f"{path} cannot be written: {error.strerror}")
            return False
        return True

    def _rotate(self) -> None:
        for older, newer in zip(self._files, self._files[1:], strict=False):
            if newer.exists():
                os.replace(newer, older)

    def _complain(self, what: str) -> None:
        """Once: what cannot be logged has to be said somewhere, but not with every line."""
        if not self._complained:
            self._complained = True
            print(f"windlass: {what}. Lines of the log are dropped until it can.", file=sys.stderr, flush=True)


def _cut(line: str) -> str:
    """A line that is too long, shortened. It stays a JSON object, with what a reader looks for first."""
    try:
        fields = json.loads(line)
    except ValueError:
        fields = {}
    names = ("level", "timestamp")
    kept = {name: fields[name] for name in names if isinstance(fields.get(name), str)}
    event = str(fields.get("event", ""))[: limits.LOG_EVENT_CHARACTERS]
    return json.dumps({"event": event, **kept, "left_out": f"a line of {len(line)} characters"})


def log_line(event: str, **fields: int) -> str:
    """What the log says of itself, as one of its lines."""
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return json.dumps({"event": event, **fields, "level": "warning", "timestamp": now})
