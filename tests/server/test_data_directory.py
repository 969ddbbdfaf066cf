"""What a start leaves on disk: a token where there was none, readable by the owner only, and never through a link."""

import asyncio
import stat
import sys
from pathlib import Path

import pytest
from door_client import DoorClient
from world import Starter, scripted_config

from windlass.server.tokens import TokenStore
from windlass.testing.server_process import Api, ServerProcess, until

pytestmark = pytest.mark.asyncio(loop_scope="session")


def mode(path: Path) -> str:
    return oct(stat.S_IMODE(path.lstat().st_mode))


async def test_a_first_start_mints_a_token_for_the_owner_alone(server: ServerProcess) -> None:
    """A server without a token would be open, or its token everyone's (A2)."""
    token = server.data_dir / "token"
    assert (mode(server.data_dir), mode(token)) == ("0o700", "0o600")
    assert token.read_text().strip() == server.token


@pytest.mark.parametrize("name", ["token", "tokens.json", "tokens.lock", "server.json", "lock", "journal.db"])
async def test_every_file_is_the_owners_alone(name: str, server: ServerProcess) -> None:
    """Other users of the machine could read conversations and keys, should the directory ever be opened (A13)."""
    assert mode(server.data_dir / name) == "0o600"


async def test_the_ready_file_is_the_owners_alone(server: ServerProcess) -> None:
    """It holds a token, and often lies in a directory that others may read (A13)."""
    assert mode(server.directory / "ready.json") == "0o600"


@pytest.mark.parametrize("address", ["127.0.0.1:0", "0.0.0.0:0"])
async def test_there_is_no_open_mode(address: str, start_server: Starter) -> None:
    """A server that trusts its network is one café away from strangers (A2)."""
    server = await start_server(listen=address)
    server.url = server.url.replace("0.0.0.0", "127.0.0.1")
    async with DoorClient(server) as door:
        assert (await door.send("GET", "/v1/workspaces")).status == 401
        assert (await door.send("GET", "/v1/workspaces", token=server.token)).status == 200


@pytest.mark.parametrize("name", ["token", "tokens.json", "server.json", "ready.json", "lock", "journal.db"])
async def test_a_link_laid_in_advance_is_not_followed(name: str, tmp_path: Path) -> None:
    """Who can lay a link could have any file of the owner's overwritten or read as a token (A13)."""
    victim = tmp_path / "precious.txt"
    # An empty file is what a database would take for its own.
    victim.write_text(content := "" if name == "journal.db" else "mine")
    victim.chmod(0o600)
    server = ServerProcess(tmp_path / "own", "--drain", "0", config=scripted_config(tmp_path))
    server.data_dir.mkdir(mode=0o700)
    link = (server.directory if name == "ready.json" else server.data_dir) / name
    link.symlink_to(victim)
    status = await started(server, tmp_path / "own" / "ready.json")
    assert victim.read_text() == content
    assert status != "ran" or not link.is_symlink()
    assert "Traceback" not in server.log()


async def started(server: ServerProcess, ready: Path) -> str:
    """Start it the way people do, and stop it again; whether it ran or refused."""
    arguments = ["--data-dir", str(server.data_dir), "--config", str(server.config_file), "--ready-file", str(ready)]
    with server.log_file.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "windlass", "serve", "--listen", "127.0.0.1:0", *arguments), stdout=log, stderr=log
        )
    is_up = lambda: "is ready at" in server.log() or process.returncode is not None  # noqa: E731
    await until(is_up, "the server is up or has refused")
    if process.returncode is not None:
        assert process.returncode == 1, server.log()
        return "refused"
    process.terminate()
    await asyncio.wait_for(process.wait(), 20)
    return "ran"


async def test_a_second_server_on_the_same_data_is_refused(server: ServerProcess) -> None:
    """Two writers would corrupt each other's log (A14 I18)."""
    head = (server.data_dir / "server.json").read_bytes()
    second = ServerProcess(server.directory / "second", config="")
    second.data_dir = server.data_dir
    with pytest.raises(AssertionError, match="Another server"):
        await second.start()
    assert (server.data_dir / "server.json").read_bytes() == head


async def test_a_token_revoked_on_the_command_line_is_worthless_at_once(server: ServerProcess, tmp_path: Path) -> None:
    """A lost device would go on working until the next restart (A10)."""
    secret = TokenStore(server.data_dir).create("lost-phone", "operate")
    (tmp_path / "project").mkdir()
    async with Api(server, token=secret) as api, Api(server) as owner:
        await owner.open(tmp_path / "project")
        await api.open(tmp_path / "project")
        async with api.stream() as tap, owner.stream() as kept:
            command = ["-m", "windlass", "token", "revoke", "lost-phone", "--data-dir", str(server.data_dir)]
            revoke = await asyncio.create_subprocess_exec(sys.executable, *command, stderr=asyncio.subprocess.DEVNULL)
            assert await revoke.wait() == 0
            assert (await api.call("GET", "/v1/version"))[0] == 401
            await until(lambda: tap.over, "the stream of the revoked token ends", seconds=2)
            assert not kept.over


async def test_a_rotated_token_ends_the_streams_of_the_old_one(server: ServerProcess, tmp_path: Path) -> None:
    """Who got hold of the old secret would keep listening under the new one's name (A10)."""
    store = TokenStore(server.data_dir)
    secret = store.create("rotated", "operate")
    (tmp_path / "project").mkdir()
    async with Api(server, token=secret) as api:
        await api.open(tmp_path / "project")
        async with api.stream() as tap:
            store.revoke("rotated")
            store.create("rotated", "operate")
            assert (await api.call("GET", "/v1/version"))[0] == 401
            await until(lambda: tap.over, "the stream of the old token ends", seconds=2)
