"""The bare WebSocket library at the owner's end."""

import contextlib
import json
import time
from collections.abc import AsyncIterator

import aiohttp


@contextlib.asynccontextmanager
async def _connection(port: int) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """A session for each, as a link has."""
    async with aiohttp.ClientSession() as session, session.ws_connect(f"ws://127.0.0.1:{port}/") as socket:
        yield socket


async def flood(port: int, text: str, count: int) -> float:
    """Messages a second, from the first that came to the last."""
    async with _connection(port) as socket:
        await socket.send_json({"what": "flood", "text": text, "count": count})
        await socket.receive_str()
        first_at = time.monotonic()
        for _ in range(count - 1):
            await socket.receive_str()
        return (count - 1) / (time.monotonic() - first_at)


async def trips(port: int, text: str, answer: str, count: int) -> list[float]:
    """Milliseconds that each took, measured at the other end."""
    async with _connection(port) as socket:
        await socket.send_json({"what": "trips", "text": text, "count": count})
        for _ in range(count):
            await socket.receive_str()
            await socket.send_str(answer)
        took: list[float] = json.loads(await socket.receive_str())
        return took


async def first_message(port: int) -> float:
    """Milliseconds from nothing to the answer to a first message, over a connection of its own."""
    began = time.monotonic()
    async with _connection(port) as socket:
        await socket.send_json({"what": "flood", "text": "hello", "count": 1})
        await socket.receive_str()
        return (time.monotonic() - began) * 1000
