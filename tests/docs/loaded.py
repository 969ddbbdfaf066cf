"""The program with everything loaded that the commands of a page need: a page has a dozen of them."""

import windlass.app
import windlass.cli.attach
import windlass.cli.run
import windlass.cli.runs
import windlass.cli.sessions
import windlass.server.app  # noqa: F401  # with those above: loaded once, for all that are forked
from windlass.testing.watched_program import start

__all__ = ["start"]
