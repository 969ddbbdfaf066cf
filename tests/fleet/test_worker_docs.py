"""What docs/workers.md shows is what happens, and the example executor executes."""

import asyncio
import json
import re
import sys
from pathlib import Path

import msgspec

from tests.fleet.own_worker import WorkerProcess
from tests.fleet.plain_peer import PlainPeer, tokens
from windlass.wire.frames import ChildFrame, ParentFrame

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "workers.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


async def start(*argv: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=ROOT
    )


async def test_the_example_executor_works_as_its_comment_says(tmp_path: Path) -> None:
    """People copy it (B73)."""
    worker = WorkerProcess(tmp_path, "--mode", "one", executor="examples.shouting_executor:Shout")
    worker.directory = ROOT
    async with worker:
        async with PlainPeer(worker.url) as peer:
            frames, terminal = await peer.ask("good morning")
        assert await worker.ended() == 0
    assert tokens(frames) == ["GOOD! ", "MORNING! "]
    assert terminal == {"kind": "terminal", "status": "completed", "result": "GOOD! MORNING! "}


async def test_the_plain_peer_and_the_worker_of_the_page_talk_to_each_other() -> None:
    """People copy them (B51)."""
    client, worker = blocks("python")
    serving = await start("-c", worker)
    assert serving.stdout is not None
    url = (await serving.stdout.readline()).decode().strip()
    talking = await start("-c", client, url)
    output, errors = await talking.communicate()
    assert errors == b""
    assert output.decode() == "HELLO! FROM! A! PLAIN! PEER! \ncompleted: HELLO! FROM! A! PLAIN! PEER! \n"
    await serving.communicate()
    assert serving.returncode == 0


def test_the_frames_of_the_page_are_frames() -> None:
    """Whoever writes a parent from the page would be told that its frames mean nothing."""
    for line in "".join(blocks("json")).splitlines():
        kind = json.loads(line)["kind"]
        union = ParentFrame if kind in ("run", "ack", "hello") else ChildFrame
        decoded = msgspec.json.decode(line, type=union)
        assert json.loads(msgspec.json.encode(decoded)) == json.loads(line)
