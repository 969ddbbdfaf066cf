"""A connection to a worker that ends in the moment in which it begins."""

import asyncio

import pytest

from windlass.fleet.worker.connection import Connection, Peer
from windlass.fleet.worker.handshake import Request


def judge(request: Request) -> str:
    raise AssertionError("a connection that was ended must not be asked what it wants")


def opened(connection: Connection) -> Peer:
    raise AssertionError("a connection that was ended must not get a peer")


async def test_a_worker_may_leave_between_accepting_a_connection_and_having_it() -> None:
    """It would fail instead, and leave with 1: its parent would take a worker that was idle for one that broke (B50).

    The loop asks for a protocol first and hands it its connection later; the worker ends all it knows in between.
    """
    gone = asyncio.Event()

    def ended_at_once() -> Connection:
        connection = Connection(judge, opened, lambda _: gone.set())
        connection.abort()
        return connection

    loop = asyncio.get_running_loop()
    server = await loop.create_server(ended_at_once, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(reader.readexactly(1), 5)
        await asyncio.wait_for(gone.wait(), 5)
        writer.close()
