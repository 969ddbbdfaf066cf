"""Structured logs: one JSON object a line, or coloured lines on a terminal; and in a file, for `windlass logs`."""

import atexit
import logging
import os
import select
import stat
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog

from windlass.log_file import LogFile
from windlass.log_queue import LogQueue, log_line

_standard_error: "_File | _Readers | None" = None
_file: LogFile | None = None  # of this process; loggers are made once and kept, so it is looked up with every line


def configure(level: str = "", shown_level: str = "") -> None:
    """Set up logging for this process. Called once, by the composition root.

    Without a `level`: info into a file or a service's log, and on a terminal only what a person should look at.
    `shown_level`: what goes to standard error, if that is to be less than the file gets.
    """
    terminal = sys.stderr.isatty()
    shown = _number(shown_level or level or ("warning" if terminal else "info"))
    global _standard_error
    _standard_error = _opened(terminal)
    atexit.register(close)
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
        logger_factory=lambda *_: _standard_error,
        cache_logger_on_first_use=True,
    )


def keep_in(data_dir: Path) -> None:
    """From now on write everything to the log's file too. The data directory must be ours alone by then."""
    global _file
    _file = LogFile(data_dir)


def _opened(terminal: bool) -> "_File | _Readers":
    try:
        descriptor = sys.stderr.fileno()
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
    except (OSError, ValueError):
        is_file = True  # it has no descriptor: a text in memory, which takes lines as a file does
    if is_file:
        # At once, and not soon: what a crash leaves there is then all that was said before it.
        return _File(sys.stderr)
    return _Readers(descriptor, terminal)


def close() -> None:
    """Write what waits, and no more after it. Blocks for a moment: not for a running event loop."""
    global _file
    file, _file = _file, None
    if file is not None:
        file.close()
    if isinstance(_standard_error, _Readers):
        _standard_error.close()


class _File(structlog.PrintLogger):
    """Writes lines into a file and never raises: what is being decided must not end at its log line."""

    def msg(self, message: str) -> None:
        try:
            super().msg(message)
        except (OSError, ValueError):
            pass  # a full disk: the next line may be luckier

    log = debug = info = warn = warning = err = error = critical = exception = fatal = failure = msg


class _Readers:
    """Hands lines to whoever reads standard error, and waits for nobody: a pager may sleep, a terminal stand still."""

    def __init__(self, descriptor: int, terminal: bool) -> None:
        self._descriptor = descriptor
        told = "log lines were dropped: they were not read in time"
        self._queue = LogQueue(
            self._append,
            lambda dropped: f"windlass: {dropped} {told}" if terminal else log_line(told, dropped=dropped),
            "standard error",
        )

    def msg(self, message: str) -> None:
        self._queue.put(message)

    def close(self) -> None:
        """Give them a moment for what waits."""
        self._queue.close()

    def _append(self, content: bytes) -> bool:
        """In the queue's thread, which may wait for as long as they like."""
        left = memoryview(content)
        try:
            while left:
                left = left[self._write(left) :]
        except BrokenPipeError:
            # Its reader is gone for good. Left as it is, Python would try once more at its end, and fail.
            with suppress(OSError):  # no descriptor is left: then the next line tries this again
                nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
                os.dup2(nowhere, self._descriptor)
                os.close(nowhere)
        except OSError:
            return False  # a terminal that was closed
        return True

    def _write(self, content: memoryview) -> int:
        try:
            return os.write(self._descriptor, content)
        except BlockingIOError:  # somebody who shares it wants never to wait
            room = select.poll()
            room.register(self._descriptor, select.POLLOUT)
            room.poll()
            return 0

    log = debug = info = warn = warning = err = error = critical = exception = fatal = failure = msg


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
