"""From options to the agents' store below the data directory, and from its refusals to one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windlass import config
from windlass.cli.connection import refusals_on_one_line

if TYPE_CHECKING:
    from windlass.fleet.store.store import Store


@contextmanager
def agent_store(data_dir: Path | None) -> Iterator["Store"]:
    """The store of a data directory. It needs no server, and one that runs does not mind."""
    # Here, not at the top: `windlass mailbox --help` needs nothing of it.
    from windlass.fleet.store.store import Store

    directory = (data_dir or config.default_data_dir()) / "agents"
    try:
        with refusals_on_one_line():
            yield Store(directory)
    except OSError as error:
        raise click.ClickException(f"The agents' files in {directory} cannot be used: {error.strerror}.") from error
