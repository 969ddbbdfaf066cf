"""Frames that mean nothing, and what is no frame at all."""

import json

import pytest

from tests.fleet.full_peer import FullPeer
from tests.fleet.plain_peer import PlainPeer
from windlass.fleet.worker.worker import WorkerAddress

# -- nonsense ----------------------------------------------------------------------------------------------------------

NONSENSE = [
    "",
    "hello",
    "{",
    "[]",
    "7",
    "null",
    "{}",
    '{"kind": 7}',
    '{"kind": "unheard-of"}',
    '{"kind": "run"}',
    '{"kind": "run", "assignment": 7}',
    '{"kind": "message"}',
    '{"kind": "approval_reply", "id": "sa-1", "approved": "yes"}',
    '{"kind": "terminal", "status": "completed"}',
    '{"kind": "run", "assignment": "x", "messages": ' + "[" * 100_000 + "]" * 100_000 + "}",
]


@pytest.mark.parametrize("nonsense", NONSENSE, ids=range(len(NONSENSE)))
async def test_a_frame_that_means_nothing_is_ignored(nonsense: str, plain: PlainPeer) -> None:
    """One wrong frame would end a run, or the connection (frames: rules for both)."""
    await plain.run("a __sleep_ms:30 b")
    await plain.socket.send_str(nonsense)
    _, terminal = await plain.terminal()
    assert terminal["result"] == "echo: a b"


async def test_under_windlass_1_nonsense_is_answered(full: FullPeer) -> None:
    """A parent with a bug would wait for an answer that never comes."""
    await full.socket.send_str('{"kind": "unheard-of"}')
    assert "unheard-of" in (await full.until("error"))["reason"]
    await full.run("x", messages=[{"role": "nobody"}])
    assert "messages" in (await full.until("error"))["reason"]
    await full.run("x")
    assert (await full.terminal())[1]["status"] == "completed"


async def test_hello_comes_first(worker: WorkerAddress) -> None:
    """A peer of another version would be obeyed before anyone knows what it speaks."""
    async with FullPeer(worker.url) as peer:
        await peer.run("x")
        assert (await peer.next())["kind"] == "hello"
        assert "hello" in (await peer.next())["reason"]


async def test_what_is_no_text_is_skipped(plain: PlainPeer) -> None:
    """A ping, or a binary message of some proxy, would be taken for a frame."""
    await plain.run("a __sleep_ms:30 b")
    await plain.socket.send_bytes(json.dumps({"kind": "cancel"}).encode())
    await plain.socket.ping()
    await plain.socket.pong()
    _, terminal = await plain.terminal()
    assert terminal["result"] == "echo: a b"


async def test_unknown_fields_are_ignored_whatever_they_are(plain: PlainPeer) -> None:
    """A peer of tomorrow, or one that uses our names for its own things, could not talk to a worker of today."""
    await plain.run("__steer", run_id=7, attempt="x", model={"a": 1}, attachments=None, extra=[1])
    await plain.send("message", text="on", id={"n": 1}, attachments="none")
    _, terminal = await plain.terminal()
    assert terminal["result"] == "echo: on"
    await plain.run("__approve:x")
    await plain.send("approval_reply", id=(await plain.next())["id"], approved=True, verdict=[])
    assert (await plain.terminal())[1]["result"] == "echo: approved:true"


async def test_a_frame_in_fragments_is_one_frame(plain: PlainPeer) -> None:
    """Peers may cut a message anywhere; half of it would be taken for nonsense."""
    text = json.dumps({"kind": "run", "assignment": "whole"}).encode()
    writer = plain.socket._writer
    writer._write_websocket_frame(b"", 0x89, 0)  # a ping, masked like everything a client sends
    mask = bytes(4)
    for head, piece in ((0x01, text[:5]), (0x89, b"!"), (0x00, text[5:9]), (0x80, text[9:])):
        writer.transport.write(bytes([head, 0x80 | len(piece)]) + mask + piece)
    _, terminal = await plain.terminal()
    assert terminal["result"] == "echo: whole"
