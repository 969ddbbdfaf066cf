"""Starts that cannot work: one line that says why, a non-zero exit code, no traceback, nothing harmed."""

import os
import socket
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import Starter

from windlass.testing.server_process import Api, ServerProcess, until

REFUSAL_SECONDS = 20.0  # a start that neither works nor says why is no answer either


class Refusal(NamedTuple):
    code: int
    output: str
    lines: list[str]


async def start_in_vain(root: Path, *arguments: str, config: str = "", data_dir: Path | None = None) -> Refusal:
    """Run `windlass serve` until it gives up; what it said."""
    (root / "config.toml").write_text(config)
    argv = ["windlass", "serve", "--data-dir", str(data_dir or root / "data"), "--config", str(root / "config.toml")]
    argv += ["--ready-file", str(root / "ready.json"), *arguments]
    with tempfile.TemporaryFile() as said:
        assert ServerProcess.stem is not None
        process = ServerProcess.stem.fork(argv, dict(os.environ), said.fileno())
        try:
            await until(lambda: process.poll() is not None, "the server gives up", REFUSAL_SECONDS)
        finally:
            process.kill()
        said.seek(0)
        text = said.read().decode()
    assert not (root / "ready.json").exists()
    assert process.returncode is not None
    return Refusal(process.returncode, text, text.strip().splitlines())


def said_on_one_line(refusal: Refusal, *words: str) -> None:
    assert refusal.code != 0
    assert "Traceback" not in refusal.output
    assert len(refusal.lines) == 1, refusal.output
    for word in words:
        assert word in refusal.output


async def test_a_second_server_on_the_same_data_directory_refuses(start_server: Starter, tmp_path: Path) -> None:
    """I18 A14: else two servers write one log and corrupt each other's."""
    server = await start_server()
    refusal = await start_in_vain(tmp_path, "--listen", "127.0.0.1:0", data_dir=server.data_dir)
    said_on_one_line(refusal, str(server.data_dir))
    assert refusal.code == 1


async def test_the_first_server_goes_on_when_a_second_was_refused(
    start_server: Starter, tmp_path: Path, directory: Path
) -> None:
    """I18 A14: else a mistaken second start harms the one that works."""
    server = await start_server()
    async with Api(server) as api:
        await api.open(directory)
        async with api.stream() as tap:
            await start_in_vain(tmp_path, "--listen", "127.0.0.1:0", data_dir=server.data_dir)
            assert (server.data_dir / "server.json").exists()
            await api.new_session("still here")
            await tap.wait_for("session")


async def test_a_server_that_was_killed_does_not_lock_the_next_one_out(start_server: Starter, directory: Path) -> None:
    """I18 R46: else a crash needs a person to remove a lock."""
    server = await start_server()
    await server.kill()
    await server.start()
    async with Api(server) as api:
        await api.open(directory)


BROKEN_CONFIGS = {
    "not TOML": ("model = ", "TOML"),
    "an unknown field": ("[agent]\nallowed_tool = []", "allowed_tool"),
    "a wrong type": ('[journal]\nretention_days = "many"', "retention_days"),
    "a model without its provider": ('model = "nowhere/some-model"', "nowhere"),
    "a model without a name": ('model = "some-model"', "provider/model"),
    "a provider without its address": ('[providers.local]\ntype = "openai"', "base_url"),
    "not a duration": ('[permissions]\nunattended_timeout = "soon"', "soon"),
    "an unknown kind of provider": ('[providers.local]\ntype = "telepathy"', "type"),
}


@pytest.mark.parametrize(("config", "word"), BROKEN_CONFIGS.values(), ids=BROKEN_CONFIGS.keys())
async def test_a_broken_config_is_refused_with_what_is_wrong_in_it(tmp_path: Path, config: str, word: str) -> None:
    """Else a typo in the config is a traceback, or is silently ignored."""
    said_on_one_line(await start_in_vain(tmp_path, "--listen", "127.0.0.1:0", config=config), word)


async def test_a_config_file_that_was_named_and_is_missing_is_refused(tmp_path: Path) -> None:
    """Else a server starts without the rules its owner wrote for it."""
    missing = str(tmp_path / "missing.toml")
    said_on_one_line(await start_in_vain(tmp_path, "--listen", "127.0.0.1:0", "--config", missing), missing)


async def test_a_port_that_is_in_use_is_said(tmp_path: Path) -> None:
    """Else the most common failure of a start is a traceback."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        said_on_one_line(await start_in_vain(tmp_path, "--listen", address), address, "in use")


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:70000", ":4747", "unix:"])
async def test_an_address_that_is_none_is_refused(tmp_path: Path, address: str) -> None:
    """Else a typo in an option is a traceback, or a server nobody finds."""
    said_on_one_line(await start_in_vain(tmp_path, "--listen", address), address)


async def test_a_second_address_that_cannot_be_used_ends_the_start(tmp_path: Path) -> None:
    """Else a server runs that only some of its clients can reach."""
    refusal = await start_in_vain(tmp_path, "--listen", "127.0.0.1:0", "--listen", "nonsense")
    said_on_one_line(refusal, "nonsense")


async def test_a_certificate_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    """Else a wrong path to a key is a traceback, or worse: a server without TLS."""
    missing = str(tmp_path / "cert.pem")
    refusal = await start_in_vain(tmp_path, "--listen", "127.0.0.1:0", "--tls-cert", missing, "--tls-key", missing)
    said_on_one_line(refusal, "certificate")


async def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    """Else a server that was to speak TLS starts without it."""
    refusal = await start_in_vain(tmp_path, "--listen", "127.0.0.1:0", "--tls-cert", "cert.pem")
    assert refusal.code != 0
    assert "Traceback" not in refusal.output
    assert "--tls-key" in refusal.lines[-1]


async def test_a_data_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """Else a mistyped path is a traceback."""
    file = tmp_path / "file"
    file.write_text("precious")
    said_on_one_line(await start_in_vain(tmp_path, "--listen", "127.0.0.1:0", data_dir=file), str(file))
    assert file.read_text() == "precious"


async def test_a_journal_that_is_not_a_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """I18: else a damaged file is a traceback, or is overwritten."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "journal.db").write_bytes(b"this was a database once " * 1000)
    said_on_one_line(await start_in_vain(tmp_path, "--listen", "127.0.0.1:0"), "journal.db")
    assert (data / "journal.db").read_bytes().startswith(b"this was a database once")
