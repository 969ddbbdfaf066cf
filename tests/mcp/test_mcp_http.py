"""MCP servers over streamable HTTP, on loopback: a real one, written with the SDK, and some that misbehave."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from mcp_world import HERE, McpWorld, written

from windlass import limits
from windlass.mcp.spec import ServerSpec

pytestmark = pytest.mark.asyncio(loop_scope="module")


@contextmanager
def http_server(directory: Path, port: int = 0) -> Iterator[None]:
    argv = [sys.executable, str(HERE / "a_server.py"), str(directory), f"http={port}", "name=Ada"]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


async def address(directory: Path) -> str:
    port = (await written(directory / "port")).split()[-1]
    return f"http://127.0.0.1:{port}/mcp"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def directory(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    directory = tmp_path_factory.mktemp("http")
    with http_server(directory):
        yield directory


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(directory: Path) -> AsyncIterator[McpWorld]:
    spec = ServerSpec("a", url=await address(directory), headers={"Authorization": "Bearer open-sesame"})
    async with McpWorld(spec) as world:
        await world.call("who")
        yield world


async def test_its_tools_are_listed_and_called(world: McpWorld) -> None:
    """The whole feature."""
    assert {"add", "who"} <= set(await world.names())
    assert (await world.call("add", a=2, b=3)).content == "5"
    assert (await world.call("who")).content == "Ada"


async def test_a_tool_that_fails_is_an_output_that_says_so(world: McpWorld) -> None:
    """A run would fail because a tool did."""
    output = await world.call("add", a="no number")
    assert output.is_error and "valid integer" in output.content


async def test_ten_megabytes_are_shortened(world: McpWorld) -> None:
    """A32: a model's window would be filled by one result."""
    output = await world.call("long", size=10_000_000)
    assert not output.is_error and len(output.content) < limits.TOOL_OUTPUT_CHARACTERS + 100


async def test_a_result_that_is_too_long_fails_its_call_alone(world: McpWorld) -> None:
    """A32: one answer could take all memory, or all other calls with it."""
    output = await world.call("long", size=20_000_000)
    assert output.is_error
    assert (await world.call("who")).content == "Ada"


async def test_a_cancel_reaches_the_server(world: McpWorld, directory: Path) -> None:
    """B18: the run would be over, and what it started would go on changing things."""
    call = asyncio.create_task(world.call("wait"))
    await written(directory / "waiting")
    call.cancel()
    await asyncio.wait({call})
    assert "Cancelled" in await written(directory / "cancelled")


async def test_changed_tools_are_noticed_and_a_server_that_was_started_anew_is_connected_again(tmp_path: Path) -> None:
    """New tools would not be told; and a session is gone with its server: every call would fail from then on."""
    with http_server(tmp_path):
        url = await address(tmp_path)
        world = McpWorld(ServerSpec("a", url=url))
        await world.__aenter__()
        try:
            assert (await world.call("who")).content == "Ada"
            await world.call("grow")  # the server says so on the stream that it was asked to open
            await world.until("connected", after=2)
            assert "grown" in await world.names()
            os.kill(int((tmp_path / "pid").read_text().split()[-1]), signal.SIGKILL)
            (tmp_path / "port").unlink()
            with http_server(tmp_path, int(url.split(":")[2].split("/")[0])):
                await written(tmp_path / "port")
                await world.call("who")  # this one may find that the session is gone
                assert (await world.call("who")).content == "Ada"
        finally:
            await world.__aexit__()


Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def scripted(answer: Answer) -> AsyncIterator[str]:
    """A socket that answers HTTP as the test says."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp?key=in-the-url"


async def failed(url: str, seconds: float = 5.0) -> str:
    """Why a server at this address cannot be used."""
    spec = ServerSpec("a", url=url, headers={"Authorization": "Bearer open-sesame"}, connect_seconds=seconds)
    async with McpWorld(spec) as world:
        assert await world.tools() == []
        return (await world.until("error")).error


def plain_answer(status: str, body: bytes = b"", headers: str = "") -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body)

    return answer


async def test_a_wrong_key_is_told_as_one() -> None:
    """People would look for the mistake everywhere else."""
    async with scripted(plain_answer("401 Unauthorized")) as url:
        assert await failed(url) == "It answered 401: check its headers in the configuration."


async def test_a_wrong_address_is_told_as_one() -> None:
    """People would look for the mistake everywhere else."""
    async with scripted(plain_answer("500 Oh no")) as url:
        assert await failed(url) == "It answered 500: check its url in the configuration."
    assert await failed("http://127.0.0.1:1/mcp?key=in-the-url") == "ConnectError (nobody answers at its url)."


async def test_a_redirect_is_not_followed_to_somebody_else() -> None:
    """A42: the headers with the key would be sent to whoever the server names."""
    keys: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        keys.append(await reader.readuntil(b"\r\n\r\n"))

    async with (
        scripted(listen) as elsewhere,
        scripted(plain_answer("307 Over there", headers=f"Location: {elsewhere}\r\n")) as url,
    ):
        assert "key" not in await failed(url)
    assert keys == []


async def test_an_answer_without_end_is_given_up() -> None:
    """A38: a server could fill our memory with one answer."""
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"')
        while sent < 200 * limits.MIB:
            writer.write(b"x" * limits.MIB)
            sent += limits.MIB
            await writer.drain()

    async with scripted(endless) as url:
        await failed(url)
    assert sent < 100 * limits.MIB


async def test_its_headers_are_sent_and_nothing_compressed_is_asked_for() -> None:
    """A server with a key would refuse everything; and one that compresses would be refused by us."""
    heads: list[str] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())

    async with scripted(listen) as url:
        await failed(url)
    assert "authorization: bearer open-sesame\r\n" in heads[0]
    assert "accept-encoding: identity\r\n" in heads[0] and "gzip" not in heads[0]


async def test_a_compressed_answer_is_refused() -> None:
    """A38: a thousand times as much as was counted could come out of it."""
    async with scripted(plain_answer("200 OK", b"x", "Content-Encoding: gzip\r\n")) as url:
        assert "RemoteProtocolError" in await failed(url)


async def test_a_server_that_says_nothing_delays_a_run_by_no_more_than_its_time() -> None:
    """One server that hangs would make every run of its user hang."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with scripted(silent) as url:
        assert await failed(url, 0.5) == "It was not ready within 0.5 s; a larger connect_timeout may help."


async def test_its_secrets_are_in_no_error_and_in_no_log(capfd: pytest.CaptureFixture[str]) -> None:
    """A39: the key in a header or an address would be in states, in the log, and in what models are told."""
    for status in ("401 No", "404 No", "302 Away"):
        async with scripted(plain_answer(status, headers="Location: /open-sesame?key=in-the-url\r\n")) as url:
            said = await failed(url)
            assert "sesame" not in said and "in-the-url" not in said
    captured = capfd.readouterr()
    assert "sesame" not in captured.out + captured.err and "in-the-url" not in captured.out + captured.err
