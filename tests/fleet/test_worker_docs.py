"""The example executor executes. What docs/workers.md shows is executed by tests/docs."""

from pathlib import Path

from tests.fleet.own_worker import WorkerProcess
from tests.fleet.plain_peer import PlainPeer, tokens

ROOT = Path(__file__).parent.parent.parent


async def test_the_example_executor_works_as_its_comment_says(tmp_path: Path) -> None:
    """People copy it (B73)."""
    worker = WorkerProcess(tmp_path, "--mode", "one", executor="examples.own_executor:Shout")
    worker.directory = ROOT
    async with worker:
        async with PlainPeer(worker.url) as peer:
            frames, terminal = await peer.ask("good morning")
        assert await worker.ended() == 0
    assert tokens(frames) == ["GOOD! ", "MORNING! "]
    assert terminal == {"kind": "terminal", "status": "completed", "result": "GOOD! MORNING! "}
