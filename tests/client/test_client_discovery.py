"""Finding the server: what the user says wins, and no secret that others can read is used."""

import json
import os
from pathlib import Path

import pytest

from windlass.client import ServerNotFound, find_server, read_token


def private(path: Path, content: str, mode: int = 0o600) -> Path:
    path.write_text(content)
    path.chmod(mode)
    return path


def a_server_file(data_dir: Path, mode: int = 0o600, pid: int | None = None) -> Path:
    content = {"url": "http://127.0.0.1:4747", "token": "local-token", "pid": os.getpid() if pid is None else pid}
    return private(data_dir / "server.json", json.dumps(content), mode)


def test_without_anything_the_user_is_told_to_start_a_server(tmp_path: Path) -> None:
    """The first thing a new user does wrong must say what to do."""
    with pytest.raises(ServerNotFound, match="windlass serve"):
        find_server(tmp_path, environment={})


def test_the_local_server_is_found_in_the_data_directory(tmp_path: Path) -> None:
    """Else every command would need an address and a token."""
    a_server_file(tmp_path)
    found = find_server(tmp_path, environment={})
    assert (found.url, found.token) == ("http://127.0.0.1:4747", "local-token")


def test_an_option_wins_over_the_environment(tmp_path: Path) -> None:
    """What is typed is what is meant."""
    token = private(tmp_path / "token", "typed\n")
    environment = {"WINDLASS_URL": "http://127.0.0.1:1", "WINDLASS_TOKEN_FILE": str(tmp_path / "missing")}
    found = find_server(tmp_path, "http://127.0.0.1:2", token, environment)
    assert (found.url, found.token) == ("http://127.0.0.1:2", "typed")


def test_the_environment_wins_over_the_data_directory(tmp_path: Path) -> None:
    """So that a script can point everything at another server."""
    a_server_file(tmp_path)
    token = private(tmp_path / "token", "from the environment".replace(" ", "-"))
    environment = {"WINDLASS_URL": "http://127.0.0.1:1", "WINDLASS_TOKEN_FILE": str(token)}
    found = find_server(tmp_path, environment=environment)
    assert (found.url, found.token) == ("http://127.0.0.1:1", "from-the-environment")


def test_a_server_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """A13: a secret that was readable is none; using it silently would hide that."""
    a_server_file(tmp_path, mode=0o644)
    with pytest.raises(ServerNotFound, match="Others can read"):
        find_server(tmp_path, environment={})


def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """A13, for the file the user named."""
    with pytest.raises(ServerNotFound, match="chmod 600"):
        read_token(private(tmp_path / "token", "secret", 0o640))


def test_the_file_of_a_server_that_is_gone_is_not_used(tmp_path: Path) -> None:
    """After a crash another user may listen on that port: the token must not be sent to them."""
    gone = os.spawnlp(os.P_NOWAIT, "true", "true")
    os.waitpid(gone, 0)
    a_server_file(tmp_path, pid=gone)
    with pytest.raises(ServerNotFound, match="is gone"):
        find_server(tmp_path, environment={})


def test_the_local_servers_token_is_not_sent_to_another_address(tmp_path: Path) -> None:
    """Else `--url` of a stranger would be given the key to this machine."""
    a_server_file(tmp_path)
    with pytest.raises(ServerNotFound, match="--token-file"):
        find_server(tmp_path, "http://127.0.0.1:9", environment={})


def test_the_local_servers_own_address_needs_no_token_file(tmp_path: Path) -> None:
    """Naming what would have been found anyway must not be harder."""
    a_server_file(tmp_path)
    assert find_server(tmp_path, "http://127.0.0.1:4747/", environment={}).token == "local-token"


def test_a_unix_socket_needs_no_token_file(tmp_path: Path) -> None:
    """The socket's mode is the credential."""
    assert find_server(tmp_path, "unix:/run/windlass", environment={}).token is None


def test_a_ready_file_is_a_token_file_too(tmp_path: Path) -> None:
    """Scripts have one at hand."""
    assert read_token(private(tmp_path / "ready", '{"url": "http://x", "token": "abc", "pid": 1}')) == "abc"


@pytest.mark.parametrize("content", ["", "two words", "line\nline", "nul\0", "{", '{"url": "x"}'])
def test_a_file_without_a_token_is_refused(tmp_path: Path, content: str) -> None:
    """Else it would be sent as a header, and the failure would look like a wrong token."""
    with pytest.raises(ServerNotFound):
        read_token(private(tmp_path / "token", content))


def test_a_fifo_of_that_name_does_not_hang(tmp_path: Path) -> None:
    """A22: opening one waits for a writer that never comes."""
    os.mkfifo(tmp_path / "token", 0o600)
    with pytest.raises(ServerNotFound, match="not a regular file"):
        read_token(tmp_path / "token")


def test_an_address_does_not_print_its_token(tmp_path: Path) -> None:
    """A39: a repr ends up in logs."""
    a_server_file(tmp_path)
    assert "local-token" not in repr(find_server(tmp_path, environment={}))
