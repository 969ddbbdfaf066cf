"""The watched program with a server's modules loaded: what a stem forks servers from (`stem.py`)."""

import windlass.app
import windlass.cli.serve
import windlass.server.app  # noqa: F401  # with the line above: loaded once, for every server that is forked
from windlass.testing.watched_program import start

__all__ = ["start"]
