"""The HTTP side of a provider: send one JSON request, hand on the data of its server-sent events.

Everything that goes wrong leaves here as a ModelError. There is no proxy, no redirect, no cookie and no compression:
nobody but the configured address may see prompts and keys, and compressed words would come in bursts.
"""

import asyncio
import encodings.idna  # noqa: F401  # else the first request loads it, on the loop
import functools
import ssl
from urllib.parse import urlsplit

from windlass import __version__, limits
from windlass.models.exchange import Answer, Broken, Exchange, TakeEvent
from windlass.models.refusals import Refusals
from windlass.models.rounds import Rounds
from windlass.models.sse import DONE, LineTooLong
from windlass.wire.model import ModelError


class EventStreams:
    """One pool of connections to one provider."""

    def __init__(
        self,
        provider: str,
        base_url: str,
        headers: dict[str, str],
        refusals: Refusals,
        *,
        connect_seconds: float,
        silence_seconds: float,
    ) -> None:
        self._provider = provider
        self._base_url = base_url
        self._headers = headers
        self._refusals = refusals
        self._connect_seconds = connect_seconds
        self._silence_seconds = silence_seconds
        self._rounds = Rounds()
        self._tls: ssl.SSLContext | None = None
        self._idle: list[Exchange] = []
        self._places = asyncio.Semaphore(limits.MODEL_CONNECTIONS)

    async def aclose(self) -> None:
        self._rounds.close()
        for exchange in self._idle:
            exchange.close()

    async def post(self, path: str, body: bytes, model: str, take: TakeEvent) -> None:
        """Send and call `take` with each event's data. Cancelling the caller drops the connection at once."""
        request = self._request(path, body)
        async with self._places:
            try:
                answer = await self._exchange(request, take)
            except (Broken, ConnectionError) as error:
                reason = self._refusals.wash(str(error)) or type(error).__name__
                raise ModelError(f"The connection to {self._provider} broke off ({reason}).", retryable=True) from None
            except LineTooLong as error:
                raise ModelError(f"{self._provider} sent {error}; the answer was dropped.") from None
            except TimeoutError:
                raise ModelError(
                    f"{self._provider} sent nothing for {self._silence_seconds:g} s; the request was given up.",
                    retryable=True,
                ) from None
        if not answer.head.is_events:
            self._judge(answer, model, take)

    async def _exchange(self, request: bytes, take: TakeEvent) -> Answer:
        used_before = self._take_idle()
        exchange = used_before or await self._connect()
        try:
            answer = await exchange.send(request, take)
        except Broken as error:
            if used_before is None or not error.silent:
                raise
            # A connection that was kept open for us may be closed by the other side just as we write to it.
            exchange = await self._connect()
            answer = await exchange.send(request, take)
        if exchange.is_open:
            self._idle = [*(kept for kept in self._idle if kept.is_open), exchange]
        return answer

    def _take_idle(self) -> Exchange | None:
        while self._idle:
            exchange = self._idle.pop()
            if exchange.is_open:
                return exchange
        return None

    def _judge(self, answer: Answer, model: str, take: TakeEvent) -> None:
        """What was answered in place of events."""
        head, body = answer.head, bytes(answer.body)
        if head.status != 200:
            raise self._refusals.from_status(head.status, head.headers, body, model)
        if "html" in head.headers["content-type"].lower():
            raise ModelError(
                f"{self._base_url} answers with a web page. Check providers.{self._provider}.base_url.",
                kind="refused",
            )
        # A server that ignores `stream`: its whole answer is one event.
        take(body)
        take(DONE)

    # -- connecting ---------------------------------------------------------------------------------------------------

    async def _connect(self) -> Exchange:
        scheme, host, port = self._address
        if scheme == "https" and self._tls is None:
            # In a thread: reading the system's certificates takes tens of milliseconds.
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_seconds):
                _, exchange = await loop.create_connection(
                    lambda: Exchange(self._rounds, self._silence_seconds),
                    host,
                    port,
                    ssl=self._tls,
                )
        except TimeoutError:
            raise ModelError(
                f"{self._provider} did not answer at {self._base_url} within {self._connect_seconds:g} s. Check that "
                f"the server runs and that providers.{self._provider}.base_url is right.",
                retryable=True,
                kind="unreachable",
            ) from None
        except OSError as error:
            raise ModelError(
                f"{self._provider} cannot be reached at {self._base_url} ({error.strerror or error}). "
                f"Check that the server runs and that providers.{self._provider}.base_url is right.",
                retryable=True,
                kind="unreachable",
            ) from None
        return exchange

    @functools.cached_property
    def _address(self) -> tuple[str, str, int]:
        try:
            parts = urlsplit(self._base_url)
            host = (parts.hostname or "").encode("idna").decode()
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            host = ""
        if not host or parts.scheme not in ("http", "https"):
            raise ModelError(
                f"{self._base_url!r} is not an address. Correct providers.{self._provider}.base_url.",
                kind="unreachable",
            )
        if "@" in parts.netloc or parts.query or parts.fragment or " " in parts.path:
            # Not shown: what stands before an @ is a password.
            raise ModelError(
                f"The address of {self._provider} may have a host, a port and a path, nothing else. Correct "
                f"providers.{self._provider}.base_url, and put a key into providers.{self._provider}.api_key.",
                kind="unreachable",
            )
        return parts.scheme, host, port

    def _request(self, path: str, body: bytes) -> bytes:
        scheme, host, port = self._address
        bracketed = f"[{host}]" if ":" in host else host
        usual = port == (443 if scheme == "https" else 80)
        lines = {
            "Host": bracketed if usual else f"{bracketed}:{port}",
            **self._headers,
            # Without one, some providers' gates take us for a robot and refuse.
            "User-Agent": f"windlass/{__version__}",
            "Accept": "text/event-stream",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        }
        target = urlsplit(self._base_url).path.rstrip("/") + path
        if not all(text.isascii() and text.isprintable() for text in (target, *lines.values())):
            # A line break in a key or an address would begin a header, or a request, of its own.
            raise ModelError(
                f"The key or the address of {self._provider} has characters that cannot be sent. "
                f"Check providers.{self._provider} in the config.",
                kind="refused",
            )
        head = f"POST {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return head.encode() + b"\r\n" + body
