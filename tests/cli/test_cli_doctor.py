"""What `windlass doctor` finds: each thing a user could get wrong, and what it says to do about it."""

import json
import os
import socket
import sqlite3
from pathlib import Path

import pytest
from command_line import on_files

from windlass import config
from windlass.cli import place_checks
from windlass.cli.checks import check_data_dir
from windlass.cli.place_checks import (
    check_clock,
    check_git,
    check_journal,
    check_mcp,
    check_ripgrep,
    check_secrets,
)
from windlass.cli.server_checks import check_port, check_reach
from windlass.journal.inspection import damage
from windlass.testing.canary import KEY


def a_journal(data_dir: Path, rows: int = 1000) -> Path:
    path = data_dir / "journal.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=WAL")  # as the real one
        connection.execute("CREATE TABLE facts (id INTEGER PRIMARY KEY, body TEXT)")
        connection.executemany("INSERT INTO facts (body) VALUES (?)", [("x" * 200,)] * rows)
        connection.execute("CREATE INDEX by_body ON facts (body)")
    connection.close()
    return path


@pytest.mark.parametrize("name", ["token", "tokens.json", "server.json"])
def test_a_secret_that_others_can_read_must_be_mended(name: str, tmp_path: Path) -> None:
    """A13: whoever reads it is in."""
    assert check_secrets(tmp_path).level == "OK"
    (tmp_path / name).touch(mode=0o600)
    assert check_secrets(tmp_path).level == "OK"
    (tmp_path / name).chmod(0o640)
    finding = check_secrets(tmp_path)
    assert finding.level == "FAIL" and f"chmod 600 {tmp_path / name}" in finding.says


def test_a_secret_that_is_a_link_must_be_mended(tmp_path: Path) -> None:
    """A13: what it points to is somebody else's."""
    (tmp_path / "token").symlink_to("/etc/passwd")
    assert check_secrets(tmp_path).level == "FAIL"


def test_a_journal_is_looked_at_while_it_is_written(tmp_path: Path) -> None:
    """The doctor is asked while the server runs."""
    assert check_journal(tmp_path).level == "OK"
    path = a_journal(tmp_path)
    writer = sqlite3.connect(path)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM facts WHERE id = 1")
    try:
        assert check_journal(tmp_path).level == "OK"
    finally:
        writer.close()


def test_a_damaged_journal_must_be_mended(tmp_path: Path) -> None:
    """It would be found out when an old session is opened, after the last good backup was thrown away."""
    path = a_journal(tmp_path)
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(os.urandom(4096))
    finding = check_journal(tmp_path)
    assert finding.level == "FAIL" and "windlass restore BACKUP" in finding.says


def test_a_file_that_is_no_database_is_damage(tmp_path: Path) -> None:
    """It would end in a traceback."""
    path = tmp_path / "journal.db"
    path.write_bytes(b"no database at all" * 1000)
    assert damage(path, 5.0)


def test_a_journal_that_is_too_large_is_not_looked_at_for_ever(tmp_path: Path) -> None:
    """A doctor that takes an hour is not asked again."""
    assert damage(a_journal(tmp_path, rows=50_000), seconds=0.0) is None


def test_looking_at_a_journal_changes_nothing(tmp_path: Path) -> None:
    """A check that repairs, or leaves files, is no check."""
    path = a_journal(tmp_path)
    before = (path.read_bytes(), sorted(os.listdir(tmp_path)))
    check_journal(tmp_path)
    assert (path.read_bytes(), sorted(os.listdir(tmp_path))) == before


def test_a_data_directory_is_found_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was said not to exist."""
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir(mode=0o700)
    assert "is writable and yours alone" in check_data_dir(Path("data")).says


def test_programs_that_are_missing_are_named_with_what_they_are_for() -> None:
    """Nobody installs git for a server without knowing why."""
    assert check_git(None).level == "WARN" and "worktree" in check_git(None).says
    assert check_ripgrep(None).level == "OK"  # everything works without
    assert (check_git("/usr/bin/git").level, check_ripgrep("/usr/bin/rg").level) == ("OK", "OK")


def test_a_clock_of_another_decade_must_be_mended() -> None:
    """TLS fails with words that nobody connects with a clock."""
    assert check_clock(86400.0).level == "FAIL" and "1970-01-02" in check_clock(86400.0).says


def test_mcp_servers_are_named_without_their_secrets() -> None:
    """A39: an address or an argument may hold a key."""
    servers = {
        "a": config.McpServerConfig(command=("no-such-program", KEY)),
        "b": config.McpServerConfig(url=f"https://example.invalid/{KEY}"),
        "c": config.McpServerConfig(command=("sh",), disabled=True),
        "d": config.McpServerConfig(command=("sh",)),
    }
    found = check_mcp(config.Config(mcp=servers))
    assert [finding.level for finding in found] == ["WARN", "OK", "OK", "OK"]
    assert "no-such-program was not found" in found[0].says and KEY not in str(found)


def test_a_port_that_is_taken_is_said_with_another_way() -> None:
    """`windlass serve` would end with an error, and nobody knows who has the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert check_port(port).level == "WARN" and "127.0.0.1:0" in check_port(port).says
    assert check_port(port).level == "OK"


@pytest.mark.parametrize(
    ("url", "level"),
    [
        ("http://127.0.0.1:4747", "OK"),
        ("unix:/x", "OK"),
        ("https://ship.example", "OK"),
        ("http://192.168.1.5:4747", "WARN"),
    ],
)
def test_a_server_on_the_network_without_tls_is_a_warning(url: str, level: str) -> None:
    """A2: the token goes over the network in the clear."""
    assert check_reach(url).level == level


def test_what_the_kernel_cannot_do_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """A36: people should know how far commands are kept in."""
    from windlass.guardian import calls
    from windlass.tools import beneath

    monkeypatch.setattr(calls, "call_filter", lambda: None)
    monkeypatch.setattr(beneath, "openat2_works", lambda: False)
    assert (place_checks.check_calls().level, place_checks.check_paths().level) == ("WARN", "WARN")


def test_the_doctor_asks_providers_only_when_told_to(tmp_path: Path) -> None:
    """No network at run time beyond what the user asked for."""
    file = tmp_path / "config.toml"
    file.write_text(
        f'model = "p/m"\n[providers.p]\ntype = "openai"\nbase_url = "http://127.0.0.1:1/v1"\napi_key = "{KEY}"\n'
    )
    options = ["--config", str(file), "--data-dir", str(tmp_path / "data"), "--json"]
    offline = on_files(tmp_path, "doctor", *options)
    online = on_files(tmp_path, "doctor", "--online", *options)
    assert (offline.returncode, online.returncode) == (0, 1)
    levels = {finding["what"]: finding["level"] for finding in json.loads(online.stdout)}
    assert levels["Provider p"] == "FAIL" and "Provider p" not in offline.stdout
