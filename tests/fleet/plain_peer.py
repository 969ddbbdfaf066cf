"""A plain peer of a worker: it knows the plain frames alone, and any other kind fails the test."""

import asyncio
import json
from typing import Any

import aiohttp

WAIT_SECONDS = 20.0  # the longest a test waits for anything: the machine may be busy with other tests
FIELDS = {
    "event": {"event"},
    "approval_request": {"id", "body"},
    "terminal": {"status", "result", "error", "transcript"},
}
Frame = dict[str, Any]


class PlainPeer:
    """One connection. Frames that came are read with `next`, or up to a run's terminal with `terminal`."""

    def __init__(self, url: str, **options: Any) -> None:
        self._url = url
        self._options = options

    async def __aenter__(self) -> "PlainPeer":
        self._session = aiohttp.ClientSession()
        try:
            self.socket = await self._session.ws_connect(self._url, max_msg_size=0, **self._options)
        except BaseException:
            await self._session.close()
            raise
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.socket.close()
        await self._session.close()

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send_str(json.dumps({"kind": kind, **fields}))

    async def run(self, assignment: str, **fields: Any) -> None:
        await self.send("run", assignment=assignment, **fields)

    async def next(self, seconds: float = WAIT_SECONDS) -> Frame:
        message = await self.socket.receive(seconds)
        assert message.type is aiohttp.WSMsgType.TEXT, f"not a text message: {message}"
        frame: Frame = json.loads(message.data)
        self.check(frame)
        return frame

    def check(self, frame: Frame) -> None:
        kind = frame["kind"]
        assert kind in FIELDS, f"a plain peer does not know {kind}"
        assert set(frame) - {"kind"} <= FIELDS[kind], frame

    async def event(self) -> Frame:
        """The next frame's event."""
        frame = await self.next()
        assert frame["kind"] == "event", frame
        event: Frame = frame["event"]
        return event

    async def terminal(self) -> tuple[list[Frame], Frame]:
        """Everything up to the next terminal, and that."""
        before = []
        while (frame := await self.next())["kind"] != "terminal":
            before.append(frame)
        return before, frame

    async def ask(self, assignment: str) -> tuple[list[Frame], Frame]:
        """Run an assignment to its end."""
        await self.run(assignment)
        return await self.terminal()

    async def closed(self, seconds: float = WAIT_SECONDS) -> int | None:
        """Wait until the worker closes; its close code. Any frame before that fails the test."""
        message = await self.socket.receive(seconds)
        assert message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSING), message
        return self.socket.close_code

    async def silent(self, seconds: float = 0.3) -> None:
        """Nothing comes for a while. The only way to see that something does not happen."""
        try:
            message = await self.socket.receive(seconds)
        except TimeoutError:
            return
        raise AssertionError(f"something came: {message}")


def tokens(frames: list[Frame]) -> list[str]:
    """The contents of the token events."""
    events = [frame["event"] for frame in frames if frame["kind"] == "event"]
    return [event["content"] for event in events if event["type"] == "token"]


async def within(awaitable: Any, seconds: float = WAIT_SECONDS) -> Any:
    return await asyncio.wait_for(awaitable, seconds)
