"""Where a server listens: a Unix socket that needs no token, several addresses at once, and TLS."""

import asyncio
import os
import shutil
import ssl
import stat
import subprocess
import uuid
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
from conftest import Starter

from windlass.client import Client, ServerUnreachable, find_server
from windlass.testing.server_process import Api, ServerProcess


@pytest.fixture
def socket_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s") / "run" / "windlass.sock"  # short: the kernel takes 107 characters


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    return _made(tmp_path / "cert.pem", tmp_path / "key.pem")


def _made(cert: Path, key: Path) -> tuple[Path, Path]:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=windlass", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


def over(path: Path) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path)))


async def test_a_unix_socket_needs_no_token_and_takes_any_host(
    start_server: Starter, socket_path: Path, directory: Path
) -> None:
    """Existing clients send a made-up Host over the socket, and no token: else they are locked out."""
    await start_server("--listen", f"unix:{socket_path}")
    async with over(socket_path) as client:
        body = {"path": str(directory), "client_id": str(uuid.uuid4())}
        async with client.post("http://made-up.example/v1/workspaces", json=body) as answer:
            assert answer.status == 200
            assert (await answer.json())["path"] == str(directory)


async def test_the_socket_and_its_directory_are_its_owners_alone(start_server: Starter, socket_path: Path) -> None:
    """A13: the mode is the only lock on this door."""
    await start_server("--listen", f"unix:{socket_path}")
    assert mode(socket_path) == 0o600
    assert mode(socket_path.parent) == 0o700


async def test_a_directory_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    """A13: else others could put their own socket in its place."""
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    server = ServerProcess(tmp_path / "server", listen=f"unix:{shared / 'windlass.sock'}")
    with pytest.raises(AssertionError, match="chmod 700"):
        await server.start()
    assert list(shared.iterdir()) == []


async def test_two_addresses_serve_the_same_workspaces_at_once(
    start_server: Starter, socket_path: Path, directory: Path
) -> None:
    """Else what a client does over one door is not seen through the other."""
    server = await start_server("--listen", f"unix:{socket_path}")
    async with Api(server) as api, over(socket_path) as client:
        await api.open(directory)
        async with api.stream() as tap:
            where = f"http://any/v1/workspaces/{api.workspace_id}/sessions"
            async with client.post(where, json={"title": "by the other door"}) as answer:
                assert 200 <= answer.status < 300
            event = await tap.wait_for("session")
            assert event.body["title"] == "by the other door"
            assert event.by["name"] == "unix-socket"


async def test_the_tcp_address_still_wants_its_token_beside_a_socket(start_server: Starter, socket_path: Path) -> None:
    """A1: else opening the socket opens the other door too."""
    server = await start_server("--listen", f"unix:{socket_path}")
    async with Api(server, token="wrong") as api:
        assert (await api.call("GET", "/v1/workspaces"))[0] == 401


async def test_the_socket_is_gone_after_a_stop_and_a_stale_one_is_replaced(
    start_server: Starter, socket_path: Path
) -> None:
    """R46 I19: else a crash leaves a file that keeps the next server from starting."""
    server = await start_server("--listen", f"unix:{socket_path}")
    await server.kill()
    assert socket_path.name in os.listdir(socket_path.parent)
    await server.start()
    async with over(socket_path) as client, client.get("http://any/v1/version") as answer:
        assert answer.status == 200
    await server.stop()
    assert os.listdir(socket_path.parent) == []


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
async def test_tls_serves_https_with_the_given_certificate(
    start_server: Starter, certificate: tuple[Path, Path], directory: Path, stack: AsyncExitStack
) -> None:
    """Else tokens and code cross the network for everyone to read."""
    cert, key = certificate
    server = await start_server("--tls-cert", str(cert), "--tls-key", str(key))
    assert server.url.startswith("https://127.0.0.1:")
    trusted = ssl.create_default_context(cafile=str(cert))
    client = await stack.enter_async_context(aiohttp.ClientSession(headers={"Authorization": f"Bearer {server.token}"}))
    body = {"path": str(directory), "client_id": str(uuid.uuid4())}
    async with client.post(f"{server.url}/v1/workspaces", json=body, ssl=trusted) as answer:
        assert answer.status == 200
    with pytest.raises(aiohttp.ClientError):
        await client.get(server.url.replace("https:", "http:") + "/v1/version")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
async def test_clients_of_the_same_user_know_the_certificate_and_no_other(
    start_server: Starter, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    """Else `windlass pair` could not reach the server that the phone is to reach, or would give its token to anyone
    who has a certificate."""
    cert, key = certificate
    server = await start_server("--tls-cert", str(cert), "--tls-key", str(key))
    found = await asyncio.to_thread(find_server, server.data_dir)
    async with Client(found.url, found.token, certificate=found.certificate) as client:
        assert (await client.ticket()).urls
    other, _ = _made(tmp_path / "other.pem", tmp_path / "other_key.pem")
    for wrong in ("", other.read_text()):
        async with Client(found.url, found.token, retries=0, certificate=wrong) as client:
            with pytest.raises(ServerUnreachable, match=r"(?i)certificate"):
                await client.version()
