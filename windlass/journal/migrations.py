"""The schema's versions. A database of an older version is brought up in one transaction; a newer one is refused."""

import sqlite3
from importlib.resources import files

from windlass.errors import WindlassError

SCHEMA_VERSION = 1


class SchemaTooNew(WindlassError):
    """The data directory was written by a newer Windlass."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the database to SCHEMA_VERSION."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise SchemaTooNew(
            f"This data directory has schema {version}, this Windlass knows {SCHEMA_VERSION}. Use a newer Windlass."
        )
    if version == SCHEMA_VERSION:
        return
    schema = files("windlass.journal").joinpath("schema.sql").read_text("utf-8")
    # One script, one transaction: a crash in the middle leaves an empty database, not half of one.
    connection.executescript(f"BEGIN IMMEDIATE;\n{schema}\nPRAGMA user_version = {SCHEMA_VERSION};\nCOMMIT;")
