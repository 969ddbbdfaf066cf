"""The schema's versions. A database of an older version is brought up in one transaction; a newer one is refused."""

import sqlite3
from importlib.resources import files

from windlass.errors import WindlassError

SCHEMA_VERSION = 4
# What brings a database from each older version to the next. A new one is made from schema.sql, which is the newest.
_STEPS = {
    1: "CREATE TABLE questions (workspace TEXT NOT NULL, id TEXT NOT NULL, session TEXT NOT NULL, run TEXT NOT NULL,"
    " body BLOB NOT NULL, PRIMARY KEY (workspace, id));",
    # The facts of versions stay as long as they do: each can be told from its own which run it is of, and when it came.
    2: "ALTER TABLE files ADD COLUMN run TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE files ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE files ADD COLUMN digest TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE files ADD COLUMN before TEXT NOT NULL DEFAULT '';"
    "CREATE INDEX files_run ON files (workspace, run);"
    "UPDATE files SET seq = coalesce((SELECT max(seq) FROM facts WHERE facts.workspace = files.workspace"
    " AND kind = 'file' AND key = files.id AND key <> ''), 0);"
    "UPDATE files SET run = coalesce((SELECT run FROM facts WHERE facts.workspace = files.workspace"
    " AND facts.seq = files.seq), '');",
    # A key of a table cannot be changed, only made anew.
    3: "ALTER TABLE grants RENAME TO exact_grants;"
    "CREATE TABLE grants (workspace TEXT NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL, action TEXT NOT NULL,"
    " resource TEXT NOT NULL, pattern TEXT NOT NULL DEFAULT '',"
    " PRIMARY KEY (workspace, session, tool, action, resource, pattern));"
    "INSERT INTO grants (workspace, session, tool, action, resource)"
    " SELECT workspace, session, tool, action, resource FROM exact_grants ORDER BY rowid;"
    "DROP TABLE exact_grants;",
}


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
    if version == 0:
        steps = files("windlass.journal").joinpath("schema.sql").read_text("utf-8")
    else:
        steps = "\n".join(_STEPS[older] for older in range(version, SCHEMA_VERSION))
    # One script, one transaction: a crash in the middle leaves the database as it was, not half of another.
    connection.executescript(f"BEGIN IMMEDIATE;\n{steps}\nPRAGMA user_version = {SCHEMA_VERSION};\nCOMMIT;")
