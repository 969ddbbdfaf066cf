"""Structured logs: one JSON object a line, or coloured lines on a terminal; and in a file, for `windlass logs`."""

import logging
import os
import select
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog

from windlass.log_file import LogFile, log_line

_file: LogFile | None = None  # of this process; loggers are made once and kept, so it is looked up with every line


def configure(level: str = "", shown_level: str = "") -> None:
    """Set up logging for this process. Called once, by the composition root.

    Without a `level`: info into a file or a service's log, and on a terminal only what a person should look at.
    `shown_level`: what goes to standard error, if that is to be less than the file gets.
    """
    terminal = sys.stderr.isatty()
    shown = _number(shown_level or level or ("warning" if terminal else "info"))
    standard_error = _StandardError(sys.stderr)  # one for all loggers: it counts what its reader missed
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _Output(terminal, shown),
        ],
        # What the file is for, a terminal need not show: so no logger leaves out more than the file does.
        wrapper_class=structlog.make_filtering_bound_logger(_number(level or "info")),
        logger_factory=lambda *_: standard_error,
        cache_logger_on_first_use=True,
    )


def keep_in(data_dir: Path) -> None:
    """From now on write everything to the log's file too. The data directory must be ours alone by then."""
    global _file
    _file = LogFile(data_dir)


def close() -> None:
    """File what waits and let the file go. Blocks for a moment: not for a running event loop."""
    global _file
    file, _file = _file, None
    if file is not None:
        file.close()


class _StandardError(structlog.PrintLogger):
    """Writes lines; never raises and never waits, because what is being decided must not end at its log line.

    A reader that sleeps (a pager, a stopped terminal) misses lines, and is told how many as soon as it reads again.
    """

    _missed = 0
    _is_cut = False  # the reader has the beginning of a line that had no room whole

    def msg(self, message: str) -> None:
        try:
            with self._lock:  # the library's: a thread's line must not come between two pieces of another
                self._tell(message)
        except BrokenPipeError:
            # Its reader is gone for good. Left as it is, Python would try once more at its end, and fail.
            with suppress(OSError):  # no descriptor is left: then the next line tries this again
                nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
                os.dup2(nowhere, self._file.fileno())
                os.close(nowhere)
        except (OSError, ValueError):
            pass  # a full disk, a terminal that was closed: the next line may be luckier

    def _tell(self, message: str) -> None:
        if self._missed and self._write(log_line("log lines were dropped: nobody read them", dropped=self._missed)):
            self._missed = 0
        if self._missed or not self._write(message):
            self._missed += 1

    def _write(self, line: str) -> bool:
        """Write a whole line, if there is room for it now."""
        descriptor = self._file.fileno()
        content = ("\n" * self._is_cut + line + "\n").encode(errors="backslashreplace")
        for start in range(0, len(content), select.PIPE_BUF):
            # No more than that at once: so much has room in a pipe that says it has any, and nobody waits.
            if not _is_ready(descriptor):
                self._is_cut = self._is_cut or start > 0
                return False
            os.write(descriptor, content[start : start + select.PIPE_BUF])
        self._is_cut = False
        return True

    log = debug = info = warn = warning = err = error = critical = exception = fatal = failure = msg


def _is_ready(descriptor: int) -> bool:
    """Whether it takes something now. One that is broken is ready too: the write will say in which way."""
    room = select.poll()
    room.register(descriptor, select.POLLOUT)
    return bool(room.poll(0))


class _Output:
    """The last step of a line: into the file, and onto standard error as far as it is for there."""

    def __init__(self, terminal: bool, shown: int) -> None:
        self._terminal = terminal
        self._shown = shown
        self._json = structlog.processors.JSONRenderer()
        # Made only where it is used: it loads what a server in the background never needs.
        colours = not os.environ.get("NO_COLOR")
        self._coloured = structlog.dev.ConsoleRenderer(colors=colours) if terminal else self._json

    def __call__(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> str:
        is_shown = _number(str(event["level"])) >= self._shown
        line = "" if self._terminal and _file is None else str(self._json(logger, method, event))
        if _file is not None:
            _file.write(line)
        if not is_shown:
            raise structlog.DropEvent
        # JSON escapes by itself.
        return str(self._coloured(logger, method, escaped(logger, method, event))) if self._terminal else line


def _number(level: str) -> int:
    # A level that nobody knows shows the usual: a misspelt variable must not keep a server from starting.
    return logging.getLevelNamesMapping().get(level.upper(), logging.INFO)


def escaped(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """No control or invisible character reaches the terminal: a path in a request could move its cursor (A26, A41)."""
    for name, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            keep = "\n" if name == "exception" else ""
            event[name] = "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in value)
    return event
