"""The server's log as a file, filed by a thread of its own.

JSON lines in `windlass.log`, readable by its owner alone. A file that is full becomes `windlass.log.1`, that one
`windlass.log.2`, and what was that is gone. `windlass logs` reads them.
"""

import json
import os
import sys
from pathlib import Path

from windlass import limits
from windlass.log_queue import LogQueue, log_line

LOG_NAME = "windlass.log"


def generations(data_dir: Path) -> list[Path]:
    """The files of the log, the oldest first, whether they are there or not."""
    older = [data_dir / f"{LOG_NAME}.{number}" for number in range(limits.LOG_FILES - 1, 0, -1)]
    return [*older, data_dir / LOG_NAME]


class LogFile:
    """Takes lines at once and files them soon. What a slow disk makes it drop is counted, and said in the log."""

    def __init__(self, data_dir: Path, queue_characters: int = limits.LOG_QUEUE_CHARACTERS) -> None:
        self._files = generations(data_dir)
        self._complained = False
        self._queue = LogQueue(self._append, _told, "log file", queue_characters)

    def write(self, line: str) -> None:
        """File a line (without its end), soon. Never waits: a disk that hangs must not stop every stream."""
        self._queue.put(line if len(line) <= limits.LOG_LINE_CHARACTERS else _cut(line))

    def close(self) -> None:
        """File what waits, as far as that takes no longer than a moment."""
        self._queue.close()

    # -- in the queue's thread --

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


def _told(dropped: int) -> str:
    return log_line("log lines were dropped: the disk did not keep up", dropped=dropped)
