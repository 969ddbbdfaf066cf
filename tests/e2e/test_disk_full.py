"""A disk that refuses: it is said, nothing more is acknowledged, and nothing unacknowledged is pretended."""

import asyncio
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import pytest
from conftest import Starter
from log_reading import whole_log

from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import Api, ServerProcess, openai_config

PROMPTS = 400


class Told:
    """What a client was told while the disk gave out."""

    def __init__(self) -> None:
        self.accepted: list[str] = []
        self.refused: list[str] = []
        self.refusals: list[tuple[int, Any]] = []


async def prompt_until_refused(api: Api, session: str) -> Told:
    """Send prompts of some size until the server says no or is gone."""
    told = Told()
    for number in range(PROMPTS):
        body = {"session_id": session, "prompt": f"{number} " + "x" * 20_000, "run_id": f"run-{number}"}
        try:
            status, answer = await api.call("POST", "W/agent", body)
        except aiohttp.ClientError:
            told.refused.append(f"run-{number}")
            return told
        if status != 202:
            told.refused.append(f"run-{number}")
            told.refusals.append((status, answer))
            return told
        told.accepted.append(f"run-{number}")
        if number % 3 == 0:  # so that the lane does not fill up
            await api.call("POST", f"W/agent/sessions/{session}/prompts/clear")
    raise AssertionError("the disk never refused")


class Disk(Protocol):
    def fail(self, server: ServerProcess) -> None: ...
    def mend(self) -> None: ...


class SizeLimit:
    """The kernel refuses to let the server's files grow: a write fails in the middle of a transaction."""

    def fail(self, server: ServerProcess) -> None:
        room = max(path.stat().st_size for path in server.data_dir.glob("journal.db*")) + 200_000
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))

    def mend(self) -> None:
        pass  # the next process has no limit


class SmallDisk:
    """A real file system without room."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def fail(self, server: ServerProcess) -> None:
        used = shutil.disk_usage(self._root).used
        self._remount(used + 300_000)

    def mend(self) -> None:
        self._remount(256 << 20)

    def _remount(self, size: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self._root)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "disk"
    root.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", str(root)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk needs root")
    yield root
    subprocess.run(["umount", "--lazy", str(root)], check=True)


@pytest.fixture(params=["a size limit", "a full file system"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Disk]:
    """Where the data directory goes, and how its disk is made to fail."""
    if request.param == "a size limit":
        return tmp_path, SizeLimit()
    root: Path = request.getfixturevalue("small_disk")
    return root, SmallDisk(root)


async def test_a_full_disk_is_said_and_everything_acknowledged_is_there_afterwards(
    disk: tuple[Path, Disk], tmp_path: Path, model: ModelServer, directory: Path
) -> None:
    """I1 I12: else people are told 202 for what is lost, or find what they were told had failed."""
    root, faults = disk
    server = ServerProcess(tmp_path / "server", "--drain", "0.1", config=openai_config(model.url))
    server.data_dir = root / "data"
    async with server, Api(server) as api:
        await api.open(directory)
        session = await api.new_session("before")
        async with api.stream(after="0") as tap:
            faults.fail(server)
            told = await prompt_until_refused(api, session)
            for status, answer in told.refusals:
                assert (status, bool(answer["message"])) == (503, True)
            await tap.ended()
        assert await server.ended() == 1
        assert "windlass: the journal could not be written:" in server.log()
        assert "Traceback" not in server.log()
        faults.mend()
        await server.start()
        await api.open(directory)
        stored = [run["id"] for run in await api.ok("GET", "W/runs?limit=1000")]
        assert sorted(stored) == sorted(told.accepted)
        assert told.accepted
        assert (await whole_log(api))[: len(tap.facts)] == tap.facts


async def test_prompts_under_way_when_the_disk_refuses_are_answered_503(
    start_server: Starter, model: ModelServer, directory: Path
) -> None:
    """I12: else a client waits for an answer that never comes, or acts on what the server only believes."""
    server = await start_server()
    clients = [Api(server) for _ in range(10)]
    try:
        await clients[0].open(directory)
        session = await clients[0].new_session()
        for client in clients:
            client.workspace_id = clients[0].workspace_id
            await client.ok("GET", "W/sessions")  # each has a connection of its own
        SizeLimit().fail(server)

        async def prompt(client: Api, number: int) -> int:
            body = {"session_id": session, "prompt": "x" * 500_000, "run_id": f"big-{number}"}
            try:
                return (await client.call("POST", "W/agent", body))[0]
            except aiohttp.ClientError:
                return 0  # it left before this one was read

        answers = await asyncio.gather(*(prompt(client, number) for number, client in enumerate(clients)))
        assert 503 in answers
        assert set(answers) <= {0, 503}
        assert await server.ended() == 1
    finally:
        for client in clients:
            await client.__aexit__()


_FAILING_SYNC = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
static int fails(void) { const char *flag = getenv("SYNC_FAILS"); return flag && access(flag, F_OK) == 0; }
int fsync(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fsync");
    if (fails()) { errno = EIO; return -1; }
    return real(fd);
}
int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
    if (fails()) { errno = EIO; return -1; }
    return real(fd);
}
"""


@pytest.fixture
def failing_sync(tmp_path: Path) -> dict[str, str]:
    """The environment of a server whose syncs fail as soon as what it names exists."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc builds what makes a sync fail")
    source, library = tmp_path / "sync.c", tmp_path / "sync.so"
    source.write_text(_FAILING_SYNC)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), "SYNC_FAILS": str(tmp_path / "sync-fails")}


async def test_a_sync_that_fails_acknowledges_nothing_and_is_not_tried_again(
    tmp_path: Path, model: ModelServer, directory: Path, failing_sync: dict[str, str]
) -> None:
    """I12: after a failed sync nobody knows what the disk holds; a second one that "works" would hide the loss."""
    server = ServerProcess(tmp_path / "server", "--drain", "0.1", config=openai_config(model.url))
    await server.start(failing_sync)
    async with Api(server) as api:
        await api.open(directory)
        session = await api.new_session()
        kept = await api.prompt(session, "Before.")
        async with api.stream() as tap:
            os.mkdir(failing_sync["SYNC_FAILS"])
            body = {"session_id": session, "prompt": "After.", "run_id": "after"}
            try:
                status, _ = await api.call("POST", "W/agent", body)
                assert status == 503
            except aiohttp.ClientError:
                pass  # it left before it could say so
            await tap.ended()
            assert "After." not in str(tap.events)
        assert await server.ended() == 1
        assert "windlass: the journal could not be written:" in server.log()
    async with server, Api(server) as api:
        await api.open(directory)
        assert kept["run_id"] in [run["id"] for run in await api.ok("GET", "W/runs")]
