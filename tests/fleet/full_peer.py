"""A windlass.1 peer of a worker, in plain JSON: it checks what the dialect promises of every frame."""

import json
from typing import Any

from tests.fleet.plain_peer import WAIT_SECONDS, Frame, PlainPeer

KINDS = {
    *(
        "hello",
        "error",
        "event",
        "approval_request",
        "approval_withdrawn",
        "agents_request",
        "agents_withdrawn",
        "undelivered",
        "terminal",
    ),
}


class FullPeer(PlainPeer):
    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, protocols=["windlass.1"], **options)
        self._seqs: dict[tuple[str, int], int] = {}

    async def __aenter__(self) -> "FullPeer":
        await super().__aenter__()
        assert self.socket.protocol == "windlass.1"
        return self

    async def greet(self) -> "FullPeer":
        await self.send("hello", version=1, capabilities=[])
        hello = await self.next()
        assert hello == {"kind": "hello", "version": 1, "capabilities": []}
        return self

    async def run(self, assignment: str, run_id: str = "run_1", attempt: int = 1, **fields: Any) -> None:
        await self.send("run", assignment=assignment, run_id=run_id, attempt=attempt, **fields)

    def check(self, frame: Frame) -> None:
        assert frame["kind"] in KINDS, frame
        if frame["kind"] == "event":
            run = (frame["run_id"], frame["attempt"])
            self._seqs[run] = self._seqs.get(run, 0) + 1
            assert frame["seq"] == self._seqs[run], "numbers are dense from 1"

    async def until(self, kind: str) -> Frame:
        while (frame := await self.next(WAIT_SECONDS))["kind"] != kind:
            pass
        return frame


def run_events(frames: list[Frame]) -> list[str]:
    return [frame["event"]["type"] for frame in frames if frame["kind"] == "event"]


def dumps(**fields: Any) -> str:
    return json.dumps(fields)
