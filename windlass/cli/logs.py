"""`windlass logs`: what the server wrote down. Reads the data directory, so it also works without a server."""

import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from windlass import config, limits
from windlass.cli.options import data_dir_option, json_option
from windlass.cli.safe_text import exact, prose
from windlass.cli.terminal import Terminal, styled
from windlass.cli.times import local_time
from windlass.log_file import LOG_NAME, generations

LEVELS = ("debug", "info", "warning", "error", "critical")
_COLOURS = {"warning": "yellow", "error": "red", "critical": "red"}
_SHOWN_FIRST = ("timestamp", "level", "event", "exception")  # the rest of a line's fields follow these, or stand below


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written from now on, until Ctrl-C.")
@click.option(
    "-n", "--lines", type=click.IntRange(min=0), default=limits.LOG_SHOWN_LINES, show_default=True, help="How many."
)
@click.option("--level", type=click.Choice(LEVELS), default="debug", help="Only these and what is worse.")
@json_option
@data_dir_option
def logs(follow: bool, lines: int, level: str, as_json: bool, data_dir: Path | None) -> None:
    """Show the end of the server's log: requests that changed something, refusals, and what went wrong.

    The last 15 MiB are kept, in windlass.log and two older files in the data directory.

    \b
    Examples:
      windlass logs
      windlass logs -f --level warning
      windlass logs -n 1000 --json | jq 'select(.status >= 500)'
    """
    directory = data_dir or config.default_data_dir()
    terminal = Terminal()
    tail = LogTail(directory)
    try:
        last: deque[bytes] = deque((line for line in tail.new_lines() if is_at_least(line, level)), maxlen=lines)
        if not tail.found and not follow:
            raise click.ClickException(_no_log(directory))
        for line in last:
            _print(terminal, line, as_json)
        while follow:
            time.sleep(limits.LOG_FOLLOW_SECONDS)
            for line in tail.new_lines():
                if is_at_least(line, level):
                    _print(terminal, line, as_json)
    finally:
        tail.close()


def _no_log(directory: Path) -> str:
    from windlass.client.starting import LOG_FILE  # only here: a log should not wait for an HTTP library

    started = f" What one that was started for you printed is in {directory / LOG_FILE}."
    says = f"There is no log at {directory / LOG_NAME} yet: a server writes it once it has started."
    return says + started if (directory / LOG_FILE).exists() else says


class LogTail:
    """The log's lines in their order, each once, also when the file becomes an older one while it is read."""

    def __init__(self, data_dir: Path) -> None:
        self._paths = generations(data_dir)
        self._file: IO[bytes] | None = None
        self._begun = b""  # a line whose end is not written yet

    @property
    def found(self) -> bool:
        return self._file is not None

    def new_lines(self) -> Iterator[bytes]:
        """Whole lines that came since the last time."""
        while True:
            if self._file is not None:
                yield from self._rest()
            later = self._next()
            if later is None:
                return
            self.close()
            self._file, self._begun = later, b""

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _rest(self) -> Iterator[bytes]:
        assert self._file is not None
        while line := self._file.readline(limits.LOG_LINE_CHARACTERS):
            self._begun += line
            if line.endswith(b"\n"):
                yield self._begun.rstrip(b"\n")
            if line.endswith(b"\n") or len(self._begun) > limits.LOG_FILE_BYTES:
                self._begun = b""  # a file of something else, without any line's end, is not collected

    def _next(self) -> IO[bytes] | None:
        """The file behind the one that is read: the next newer one, or the oldest when ours is gone."""
        files = _opened(self._paths)
        own = None if self._file is None else _identity(self._file)
        names = [_identity(file) for file in files]
        first = names.index(own) + 1 if own in names else 0
        for index, file in enumerate(files):
            if index != first:
                file.close()
        return files[first] if first < len(files) else None


def _opened(paths: list[Path]) -> list[IO[bytes]]:
    files: list[IO[bytes]] = []
    for path in paths:
        try:
            # Non-blocking: a pipe laid there would otherwise hold us up for ever.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise click.ClickException(f"{path} cannot be read: {error.strerror}.") from None
        files.append(os.fdopen(descriptor, "rb"))
    return files


def _identity(file: IO[bytes]) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino


def is_at_least(line: bytes, level: str) -> bool:
    """Whether a line is as grave as that. What cannot be judged is shown: it may be what somebody looks for."""
    fields = _fields(line)
    found = str(fields.get("level", "")) if fields else ""
    return found not in LEVELS or LEVELS.index(found) >= LEVELS.index(level)


def _print(terminal: Terminal, line: bytes, as_json: bool) -> None:
    fields = _fields(line)
    if as_json:
        terminal.json(fields if fields else {"event": line.decode(errors="replace")})
        return
    for shown in described(fields) if fields else [exact(line.decode(errors="replace"))]:
        terminal.line(styled(sys.stdout, shown, fg=_COLOURS.get(str(fields.get("level")))) if fields else shown)


def described(fields: dict[str, Any]) -> list[str]:
    """A line for people: when, how grave, what, and the rest as `name=value`; a traceback below it."""
    when = exact(local_time(str(fields.get("timestamp", ""))))
    rest = "  ".join(f"{exact(name)}={_value(value)}" for name, value in fields.items() if name not in _SHOWN_FIRST)
    first = f"{when}  {exact(str(fields.get('level', ''))):<8}  {exact(str(fields.get('event', '')))}  {rest}"
    below = [f"    {line}" for line in prose(str(fields.get("exception", ""))).splitlines()]
    return [first.rstrip(), *below]


def _value(value: Any) -> str:
    return exact(value) if isinstance(value, str) else exact(msgspec.json.encode(value).decode())


def _fields(line: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}
