"""The Unix socket: its file is the credential, so it must be the owner's alone."""

import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from windlass.server.app import create_app
from windlass.server.door import Door
from windlass.server.listener import Listener, ListenError
from windlass.server.services import Services
from windlass.server.tokens import TokenStore


@asynccontextmanager
async def listening_at(path: Path, data_dir: Path) -> AsyncIterator[None]:
    tokens = TokenStore(data_dir)
    app = create_app(Services(None, tokens, *[None] * 4))  # type: ignore[arg-type]
    listener = Listener(f"unix:{path}", Door(app, tokens, trusted=True))
    await listener.start()
    try:
        yield
    finally:
        await listener.stop(5)


async def test_the_socket_is_the_owners_alone(tmp_path: Path) -> None:
    """Every user of the machine could have the agent run commands (A13)."""
    path = tmp_path / "private" / "windlass.sock"
    async with listening_at(path, tmp_path / "data"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.exists()


async def test_the_socket_needs_no_token_and_takes_any_host(tmp_path: Path) -> None:
    """Existing clients send a made-up Host and no token there; they would be locked out."""
    path = tmp_path / "private" / "windlass.sock"
    async with (
        listening_at(path, tmp_path / "data"),
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path))) as session,
        session.get("http://made-up.example/v1/version") as response,
    ):
        assert response.status == 200


async def test_a_directory_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    """Between making the socket and closing it to others there is a moment (A13)."""
    (tmp_path / "open").mkdir(mode=0o755)
    with pytest.raises(ListenError, match="chmod 700"):
        async with listening_at(tmp_path / "open" / "windlass.sock", tmp_path / "data"):
            pass


@pytest.mark.parametrize("laid", ["link", "file", "dangling link"])
async def test_what_was_laid_there_in_advance_is_refused(laid: str, tmp_path: Path) -> None:
    """The server would listen at a place of somebody else's choosing, or delete a file (A13)."""
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    path = private / "windlass.sock"
    (private / "precious").write_text("mine")
    if laid == "file":
        path.write_text("mine")
    else:
        path.symlink_to("precious" if laid == "link" else "nowhere")
    with pytest.raises(ListenError, match="not a socket"):
        async with listening_at(path, tmp_path / "data"):
            pass
    assert (private / "precious").read_text() == "mine" and not (private / "nowhere").exists()


async def test_a_socket_that_nobody_answers_on_is_replaced(tmp_path: Path) -> None:
    """After a crash the server could not be started again (R46)."""
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(private / "windlass.sock"))
    async with listening_at(private / "windlass.sock", tmp_path / "data"):
        pass


async def test_a_socket_of_a_living_server_is_left_to_it(tmp_path: Path) -> None:
    """A second server would take over the first one's clients (A13 R46)."""
    path = tmp_path / "private" / "windlass.sock"
    async with listening_at(path, tmp_path / "data"):
        with pytest.raises(ListenError, match="Another server"):
            async with listening_at(path, tmp_path / "other-data"):
                pass
        assert path.exists()
