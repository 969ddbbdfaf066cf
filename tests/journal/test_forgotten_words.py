"""Deleted words are gone from the files at once, also from the write-ahead log: not only when the server stops."""

from pathlib import Path

from tests.journal.facts import message_fact, session_fact
from windlass.journal.log import Log

CANARY = "zzcanaryzz"


def bytes_on_disk(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob("journal.db*"))}


async def test_the_words_of_a_deleted_session_are_in_no_file_when_its_deletion_is_durable(
    log: Log, tmp_path: Path
) -> None:
    """B45: a server that runs for months would keep in its write-ahead log what people deleted weeks ago."""
    await log.durable(log.append([session_fact(title=CANARY), message_fact(text=CANARY, done=True)]))
    assert any(CANARY.encode() in content for content in bytes_on_disk(tmp_path).values())
    await log.durable(log.append([session_fact(change="deleted")]))
    files = bytes_on_disk(tmp_path)
    assert "journal.db-wal" in files  # it is there, and was looked into
    assert [name for name, content in files.items() if CANARY.encode() in content] == []
