"""Structured logs on standard error: one JSON object a line, or coloured lines on a terminal."""

import logging
import os
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog


def configure(level: str = "") -> None:
    """Set up logging for this process. Called once, by the composition root.

    Without a `level`: info into a file or a service's log, and on a terminal only what a person should look at.
    """
    terminal = sys.stderr.isatty()
    level = level or ("warning" if terminal else "info")
    renderer: Any = (
        structlog.dev.ConsoleRenderer(colors=terminal and "NO_COLOR" not in os.environ)
        if terminal
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            *([escaped] if terminal else []),  # JSON escapes by itself
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def escaped(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """No control or invisible character reaches the terminal: a path in a request could move its cursor (A26, A41)."""
    for name, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            keep = "\n" if name == "exception" else ""
            event[name] = "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in value)
    return event
