"""What a server says when it starts: how to open the page, and no key where it could be kept."""

import asyncio
import os
import pty
import re
import sys
from pathlib import Path

import pytest
from door_client import raw_to

from windlass.server.greeting import asked_with_curl
from windlass.testing.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_server_that_writes_into_a_file_shows_no_ticket(server: ServerProcess) -> None:
    """A key to the server would lie in a log (A39)."""
    said = server.log()
    assert "ticket=" not in said
    assert re.search(r"^Open the page in a browser:\n  \S+ pair", said, re.MULTILINE)


async def test_a_server_in_a_terminal_shows_a_link_that_opens_the_page(tmp_path: Path) -> None:
    """The first thing a new user does would need a second terminal, and a command that they do not know yet."""
    leader, follower = pty.openpty()
    arguments = ["--listen", "127.0.0.1:0", "--drain", "0", "--data-dir", str(tmp_path / "data")]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "windlass", "serve", *arguments, stdout=follower, stderr=asyncio.subprocess.DEVNULL
    )
    os.close(follower)
    try:
        said = await _read_until(leader, "Ctrl-C stops the server")
        link = re.search(r"http://127\.0\.0\.1:(\d+)(/\?ticket=[\w-]+)", said)
        assert link is not None, said
        request = f"GET {link[2]} HTTP/1.1\r\nHost: 127.0.0.1:{link[1]}\r\nConnection: close\r\n\r\n"
        answer = await raw_to("127.0.0.1", int(link[1]), request.encode())
        assert answer.status == 303 and "set-cookie: windlass=" in answer.head
    finally:
        process.terminate()
        await process.wait()
        os.close(leader)


async def _read_until(descriptor: int, last: str) -> str:
    loop = asyncio.get_running_loop()
    said = ""
    changed: asyncio.Queue[str] = asyncio.Queue()
    os.set_blocking(descriptor, False)
    loop.add_reader(descriptor, lambda: changed.put_nowait(os.read(descriptor, 65536).decode()))
    try:
        async with asyncio.timeout(30):
            while last not in said:
                said += await changed.get()
    finally:
        loop.remove_reader(descriptor)
    return said


@pytest.mark.parametrize(
    ("listening", "certificate", "told"),
    [
        (["http://127.0.0.1:4747"], None, "http://127.0.0.1:4747"),
        (["http://0.0.0.0:4747"], None, "http://127.0.0.1:4747"),
        (["unix:/run/windlass", "https://[::]:4747"], "my cert.pem", "--cacert 'my cert.pem' https://[::1]:4747"),
        (["unix:/run/windlass"], None, ""),
    ],
)
async def test_the_request_that_is_shown_goes_where_the_door_answers(
    listening: list[str], certificate: str | None, told: str
) -> None:
    """The first request somebody pastes would be refused: for its Host, or for a certificate curl does not know."""
    assert asked_with_curl(listening, ["laptop.lan"], certificate) == told
