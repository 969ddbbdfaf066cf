"""Looking at a journal that a server may have open: nothing is written, and nobody is held up for long."""

import sqlite3
import time
from pathlib import Path

_STEPS = 20_000  # of SQLite's machine between two looks at the clock: a few milliseconds


def damage(path: Path, seconds: float) -> list[str] | None:
    """What is broken in the file, in SQLite's words; [] if nothing is, None if that took longer than this to find out.

    Raises OSError when it cannot be opened at all.
    """
    # SQLite would make the log of a database that nobody has open, and leave it there: so it is told that nobody has.
    alone = not _log(path).exists()
    found = _quick_check(path, seconds, "&immutable=1" if alone else "")
    if found and alone and _log(path).exists():
        return _quick_check(path, seconds, "")  # a server came meanwhile: what we read may have been half of a change
    return found


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _quick_check(path: Path, seconds: float, options: str) -> list[str] | None:
    deadline = time.monotonic() + seconds
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{options}", uri=True, timeout=seconds)
    except sqlite3.Error as error:
        raise OSError(str(error)) from None
    try:
        connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
        found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(10)")]
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            return None
        raise OSError(str(error)) from None
    except sqlite3.DatabaseError as error:
        return [str(error)]
    finally:
        connection.close()
    return [] if found == ["ok"] else found
