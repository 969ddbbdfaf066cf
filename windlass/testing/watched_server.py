"""The watched program with a server's modules loaded: what a stem forks servers from (`stem.py`)."""

import windlass.app
import windlass.cli.serve
import windlass.client
import windlass.server.app  # noqa: F401  # with the lines above: loaded once, for every program that is forked
from windlass.testing.watched_program import start

__all__ = ["start"]
