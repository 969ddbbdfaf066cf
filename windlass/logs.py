"""Structured logs on standard error: one JSON object a line, or coloured lines on a terminal."""

import logging
import os
import sys
from typing import Any

import structlog


def configure(level: str = "info") -> None:
    """Set up logging for this process. Called once, by the composition root."""
    terminal = sys.stderr.isatty()
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
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
