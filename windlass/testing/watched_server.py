"""The watched program with everything loaded that its commands need: what a stem forks programs from (`stem.py`)."""

import importlib

import uvloop  # noqa: F401

import windlass.app
import windlass.client
import windlass.fleet.worker.echo
import windlass.server.app
import windlass.worker_app  # with the lines above: loaded once, for every program that is forked
from windlass.cli.main import COMMANDS
from windlass.models import demo
from windlass.testing.watched_program import start

for _where, _ in COMMANDS.values():
    importlib.import_module(_where.partition(":")[0])
demo.WORDS_PER_SECOND = 1000.0  # nobody reads along: every page of the documents that prompts it would wait for seconds
windlass.server.app.routes()  # kept: half of what a server's start costs that has its modules already

__all__ = ["start"]
