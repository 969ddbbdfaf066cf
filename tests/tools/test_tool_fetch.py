"""`fetch`: over real sockets on loopback; who may be reached is decided where the socket is made (A35, A42)."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from windlass import limits
from windlass.tools.fetch import Fetch
from windlass.tools.web import Web
from windlass.wire.tools import ToolError, ToolOutput


class Site:
    """A web server whose answers a test decides, by path. `seen` is every request, head and all."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes] = {}
        self.seen: list[str] = []
        self.asked = asyncio.Event()
        self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.seen.append(head)
            self.asked.set()
            answer = self.answers[head.split(" ")[1]]
            writer.write(answer)
            await writer.drain()
            if not answer:
                await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def page(self, path: str, body: bytes, kind: str = "text/html", status: str = "200 OK", more: str = "") -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
        self.answers[path] = head.encode() + body

    def redirect(self, path: str, location: str) -> None:
        self.page(path, b"", status="302 Found", more=f"Location: {location}\r\nSet-Cookie: a=b\r\n")


@asynccontextmanager
async def serving(host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Site]:
    site = Site()
    server = await asyncio.start_server(site.handle, host, port)
    async with server:
        site.port = server.sockets[0].getsockname()[1]
        yield site


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving() as site:
        yield site


class Names(AbstractResolver):
    """Answers each question with the next address of a list."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        address = self.addresses.pop(0) if len(self.addresses) > 1 else self.addresses[0]
        return [
            ResolveResult(
                hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=socket.AI_NUMERICHOST
            )
        ]

    async def close(self) -> None:
        pass


async def fetched(url: str, web: Web | None = None, **arguments: Any) -> ToolOutput:
    tool = Fetch(True, web or Web(True))
    return await tool.plan({"url": url, **arguments}, "call_1").run()


def judged(resolver: Names, is_allowed: Callable[[str], bool]) -> Web:
    return Web(False, is_allowed, resolver)


async def test_a_page_is_read_as_markdown(site: Site) -> None:
    """The whole feature."""
    site.page("/a", b"<title>T</title><h1>Hello</h1><p>you</p>")
    output = await fetched(f"http://127.0.0.1:{site.port}/a#part")
    assert (output.content, output.is_error) == ("Title: T\n\n# Hello\n\nyou", False)
    assert '"status":200' in output.metadata


async def test_nothing_of_the_user_is_sent(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A39: a cookie, a password of .netrc, or a proxy of the environment would tell others who reads what."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1/")
    site.page("/a", b"x", "text/plain")
    await fetched(f"http://127.0.0.1:{site.port}/a")
    names = {line.partition(":")[0].lower() for line in site.seen[0].split("\r\n")[1:] if line}
    assert names == {"host", "user-agent", "accept", "accept-encoding", "connection"}


async def test_people_are_asked_for_the_exact_url() -> None:
    """I10: a grant would cover another page."""
    ask = Fetch(False).plan({"url": "https://example.org/a?b=c"}, "call_1").ask
    assert (ask.tool_name, ask.action, ask.resource) == ("fetch", "fetch", "https://example.org/a?b=c")
    assert Fetch.read_only


async def test_a_private_address_is_refused_before_anyone_is_asked() -> None:
    """A42: people would be asked for what is not done anyway."""
    with pytest.raises(ToolError, match="allow_private = true"):
        Fetch(False).plan({"url": "http://127.0.0.1:8000/"}, "call_1")


@pytest.mark.parametrize("name", ["localhost", "localhost.", "localtest.example"])
async def test_a_name_that_leads_to_a_private_address_is_refused(site: Site, name: str) -> None:
    """A42: any name can point to this machine."""
    web = Web(False, resolver=Names("127.0.0.1"))
    with pytest.raises(ToolError, match="private network"):
        await fetched(f"http://{name}:{site.port}/a", web)
    assert site.seen == []


async def test_a_name_that_changes_its_address_is_judged_by_the_one_that_is_connected() -> None:
    """A35: a name that is harmless when it is looked up and this machine when it is connected (rebinding)."""
    async with serving("127.0.0.2") as harmless, serving("127.0.0.1", harmless.port) as private:
        harmless.redirect("/a", "/b")
        private.page("/b", b"a secret", "text/plain")
        web = judged(Names("127.0.0.2", "127.0.0.1"), lambda address: address == "127.0.0.2")
        with pytest.raises(ToolError, match="private network"):
            await fetched(f"http://rebinding.example:{harmless.port}/a", web)
        assert (len(harmless.seen), private.seen) == (1, [])


async def test_a_redirect_on_the_same_host_is_followed_without_its_cookies(site: Site) -> None:
    """Half of all pages could not be read."""
    site.redirect("/a", "/b?c=d")
    site.page("/b?c=d", b"there", "text/plain")
    assert (await fetched(f"http://127.0.0.1:{site.port}/a")).content == "there"
    assert "cookie" not in site.seen[1].lower()


@pytest.mark.parametrize("location", ["http://example.org/x", "//example.org/x", "https://example.org:8443/x"])
async def test_a_redirect_to_another_host_is_told_and_not_followed(site: Site, location: str) -> None:
    """I10: what people allowed was this host; the model can ask for the other one."""
    site.redirect("/a", location)
    output = await fetched(f"http://127.0.0.1:{site.port}/a")
    assert "example.org" in output.content and "not fetched" in output.content


async def test_a_redirect_to_another_port_is_told_and_not_followed(site: Site) -> None:
    """A42: with private addresses allowed, a page could lead to every other server of this machine."""
    async with serving() as other:
        site.redirect("/a", f"http://127.0.0.1:{other.port}/secret")
        output = await fetched(f"http://127.0.0.1:{site.port}/a")
        assert "not fetched" in output.content and other.seen == []


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "http://user:x@127.0.0.1/", "http://2130706433/", "ftp://a/"]
)
async def test_a_redirect_to_what_is_no_plain_url_is_refused(site: Site, location: str) -> None:
    """A42: a page could lead where its URL could not."""
    site.redirect("/a", location)
    with pytest.raises(ToolError):
        await fetched(f"http://127.0.0.1:{site.port}/a")


async def test_redirects_in_a_circle_end(site: Site) -> None:
    """A run would go round until its time is over."""
    site.redirect("/a", "/a")
    with pytest.raises(ToolError, match="redirects more than"):
        await fetched(f"http://127.0.0.1:{site.port}/a")
    assert len(site.seen) == limits.FETCH_REDIRECTS + 1


async def test_a_page_that_never_ends_is_cut(site: Site) -> None:
    """A38: a server with a page without end would fill our memory."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    site.answers["/a"] = head + b"x" * (limits.FETCH_BYTES + limits.MIB)
    output = await fetched(f"http://127.0.0.1:{site.port}/a", from_character=limits.FETCH_BYTES - 10)
    assert output.content.startswith("xxxxxxxxxx\n[the page is longer than 5 MiB")


async def test_a_long_page_is_read_in_stretches(site: Site) -> None:
    """A model could never see the second half of a page."""
    site.page("/a", b"a" * limits.FETCH_CHARACTERS + b"b" * 10, "text/plain")
    url = f"http://127.0.0.1:{site.port}/a"
    assert (await fetched(url)).content.endswith(
        f"[10 more characters: fetch it with from_character={limits.FETCH_CHARACTERS} to go on]"
    )
    assert (await fetched(url, from_character=limits.FETCH_CHARACTERS)).content == "b" * 10


async def test_a_compressed_page_is_refused(site: Site) -> None:
    """A38: a thousand times as much as was counted could come out of it."""
    site.page("/a", b"x", more="Content-Encoding: gzip\r\n")
    with pytest.raises(ToolError, match="compressed"):
        await fetched(f"http://127.0.0.1:{site.port}/a")


async def test_a_server_that_says_nothing_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run would wait for it for ever."""
    monkeypatch.setattr(limits, "FETCH_SECONDS", 0.2)
    site.answers["/a"] = b""
    with pytest.raises(ToolError, match=r"did not answer within 0\.2 s"):
        await fetched(f"http://127.0.0.1:{site.port}/a")


async def test_what_is_not_there_is_told_with_what_the_server_said(site: Site) -> None:
    """A model would take an error page for the page."""
    site.page("/a", b"no such page", "text/plain", "404 Not Found")
    output = await fetched(f"http://127.0.0.1:{site.port}/a")
    assert (
        output.is_error and output.content.startswith("[404 from http://127.0.0.1") and "no such page" in output.content
    )


@pytest.mark.parametrize(
    "answer", [b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", b"\x16\x03\x01"]
)
async def test_nonsense_is_told_as_such(site: Site, answer: bytes) -> None:
    """A run would fail with a traceback."""
    site.answers["/a"] = answer
    with pytest.raises(ToolError, match="cannot be fetched"):
        await fetched(f"http://127.0.0.1:{site.port}/a")


async def test_a_host_where_nobody_listens_is_told() -> None:
    """A run would fail with a traceback."""
    with pytest.raises(ToolError, match="nobody answers there"):
        await fetched("http://127.0.0.1:1025/a")


async def test_a_cancel_drops_the_connection(site: Site) -> None:
    """B18: a run that was cancelled would wait for a slow page."""
    site.answers["/a"] = b""
    work = asyncio.create_task(fetched(f"http://127.0.0.1:{site.port}/a"))
    await asyncio.wait_for(site.asked.wait(), 10)
    work.cancel()
    await asyncio.wait({work}, timeout=2)
    assert work.cancelled()
