"""Stopping the server (SIGTERM): runs end and are stored, streams end cleanly, no new work is taken, it exits."""

import os
import signal
import socket
import time
from pathlib import Path

import aiohttp
from conftest import Starter

from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import Api, ServerProcess, until


def ask_to_stop(server: ServerProcess) -> None:
    os.kill(server.pid, signal.SIGTERM)


async def draining(server: ServerProcess) -> None:
    """Return when the server takes no more connections."""

    def refuses() -> bool:
        host, _, port = server.url.removeprefix("http://").rpartition(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) != 0

    await until(refuses, "the server takes no more connections")


async def test_a_run_that_ends_within_the_drain_ends_completed(
    start_server: Starter, directory: Path, model: ModelServer
) -> None:
    """B35: else an update of the server costs people the answer that was almost there."""
    server = await start_server("--drain", "15")
    async with Api(server) as api:
        await api.open(directory)
        async with api.stream() as tap:
            accepted = await api.prompt(await api.new_session(), "Finish this.")
            call = await model.next_call()
            await call.say("Almost ")
            ask_to_stop(server)
            await draining(server)
            await call.say("there.")
            await call.end()
            complete = await tap.complete(accepted["run_id"])
            assert complete.body["text"] == "Almost there."
            assert "error" not in complete.body
            await tap.ended()
        assert await server.ended() == 0
    await server.start()
    async with Api(server) as api:
        await api.open(directory)
        assert (await api.run(accepted["run_id"]))["state"] == "completed"


async def test_a_run_that_outlasts_the_drain_ends_interrupted_and_says_so_to_everyone(
    start_server: Starter, directory: Path, model: ModelServer
) -> None:
    """B35 B10: else people wait for a run that no longer exists, or its words are lost."""
    server = await start_server("--drain", "0.3")
    async with Api(server) as api:
        await api.open(directory)
        session = await api.new_session()
        async with api.stream() as tap:
            accepted = await api.prompt(session, "Never finish.")
            call = await model.next_call()
            await call.say("I have begun")
            await tap.wait_for("message", lambda event: "I have begun" in str(event.body))
            ask_to_stop(server)
            complete = await tap.complete(accepted["run_id"])
            assert complete.body["error"]
            await tap.ended()
        assert await server.ended() == 0
    await server.start()
    async with Api(server) as api:
        await api.open(directory)
        run = await api.run(accepted["run_id"])
        assert run["state"] == "interrupted"
        last = (await api.messages(session))[-1]
        assert [part["data"] for part in last["parts"] if part["type"] == "text"] == [{"text": "I have begun"}]
        finish = last["parts"][-1]["data"]
        assert finish["reason"] == "error"
        assert finish["message"]


async def test_the_terminal_of_an_interrupted_run_is_stored_before_the_exit(
    start_server: Starter, directory: Path, model: ModelServer
) -> None:
    """B35 R24 I3: else the end would be made up by the next start, and told twice."""
    server = await start_server("--drain", "0.1")
    async with Api(server) as api:
        await api.open(directory)
        accepted = await api.prompt(await api.new_session(), "Never finish.")
        await model.next_call()
        await server.stop()
    await server.start()
    async with Api(server) as api:
        await api.open(directory)
        async with api.stream(after="0") as tap:
            await tap.complete(accepted["run_id"])
            marker = await api.new_session("the end of the log")
            await tap.wait_for("session", lambda event: event.body["id"] == marker)
            ends = [event for event in tap.facts if event.kind == "run_complete"]
            assert len(ends) == 1


async def test_queued_prompts_stay_queued_and_go_on_after_the_restart(
    start_server: Starter, directory: Path, model: ModelServer
) -> None:
    """B35 B13 I1: else a restart swallows prompts that were answered 202."""
    server = await start_server("--drain", "0.1")
    async with Api(server) as api:
        await api.open(directory)
        session = await api.new_session()
        active = await api.prompt(session, "First.")
        queued = [await api.prompt(session, text) for text in ("Second.", "Third.")]
        await model.next_call()
        async with api.stream() as tap:
            await server.stop()
            await tap.ended()
            assert [event.body["run_id"] for event in tap.facts if event.kind == "run_complete"] == [active["run_id"]]
    await server.start()
    async with Api(server) as api:
        await api.open(directory)
        for text, accepted in zip(("Second.", "Third."), queued, strict=True):
            call = await model.next_call()
            assert call.request["messages"][-1]["content"] == text
            await call.say("Here.")
            await call.end()
            assert (await api.run_over(accepted["run_id"]))["state"] == "completed"


async def test_streams_end_with_a_last_chunk_and_no_reset(start_server: Starter, directory: Path) -> None:
    """B35: else a client cannot tell a stop from a broken network."""
    server = await start_server()
    async with Api(server) as api:
        await api.open(directory)
        host, _, port = server.url.removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port)), timeout=20) as raw:
            path = f"/v1/workspaces/{api.workspace_id}/events?client_id={api.client_id}"
            raw.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {api.token}\r\n\r\n".encode())
            received = b""
            while b"hello" not in received:
                received += raw.recv(65536)
            ask_to_stop(server)
            while chunk := raw.recv(65536):  # a reset would raise here
                received += chunk
        assert received.endswith(b"\r\n0\r\n\r\n")
        assert await server.ended() == 0


async def test_new_connections_are_refused_while_it_stops(
    start_server: Starter, directory: Path, model: ModelServer
) -> None:
    """B35: else clients keep arriving at a server that is leaving."""
    server = await start_server("--drain", "15")
    async with Api(server) as api, Api(server) as late:
        await api.open(directory)
        await api.prompt(await api.new_session(), "Keep it busy.")
        call = await model.next_call()
        ask_to_stop(server)
        await draining(server)
        try:
            await late.call("GET", "/v1/version")
            raise AssertionError("a new connection was accepted")
        except aiohttp.ClientConnectionError:
            pass
        await call.say("Done.")
        await call.end()
        assert await server.ended() == 0


async def test_new_work_on_a_connection_that_is_there_is_refused_while_it_stops(
    start_server: Starter, directory: Path, model: ModelServer
) -> None:
    """B35 I17: else work is accepted that nobody will do."""
    server = await start_server("--drain", "15")
    async with Api(server) as api:
        await api.open(directory)
        session = await api.new_session()
        accepted = await api.prompt(session, "Keep it busy.")
        call = await model.next_call()
        ask_to_stop(server)
        await draining(server)
        body = {"path": str(directory), "client_id": api.client_id}
        status, answer = await api.call("POST", "/v1/workspaces", body)
        assert (status, bool(answer["message"])) == (503, True)
        await call.say("Done.")
        await call.end()
        assert await server.ended() == 0
    await server.start()
    async with Api(server) as api:
        await api.open(directory)
        assert [run["id"] for run in await api.ok("GET", "W/runs")] == [accepted["run_id"]]


async def test_a_prompt_is_refused_while_it_stops(start_server: Starter, directory: Path, model: ModelServer) -> None:
    """B35: a prompt is either answered 202 and done, now or after the restart, or refused."""
    server = await start_server("--drain", "15")
    async with Api(server) as api:
        await api.open(directory)
        session = await api.new_session()
        await api.prompt(session, "Keep it busy.")
        call = await model.next_call()
        ask_to_stop(server)
        await draining(server)
        status, answer = await api.call("POST", "W/agent", {"session_id": session, "prompt": "One more."})
        assert status in (409, 503)
        assert answer["message"]
        await call.say("Done.")
        await call.end()
        assert await server.ended() == 0


async def test_an_idle_server_stops_at_once(start_server: Starter, directory: Path) -> None:
    """B35: else every restart costs the length of the drain."""
    server = await start_server("--drain", "60")
    async with Api(server) as api:
        await api.open(directory)
        async with api.stream() as tap:
            began = time.monotonic()
            assert await server.stop() == 0
            assert time.monotonic() - began < 10
            await tap.ended()


async def test_a_client_that_does_not_read_cannot_hold_up_the_exit(start_server: Starter, directory: Path) -> None:
    """B35: else one sleeping laptop keeps a server from stopping."""
    server = await start_server("--drain", "0.1")
    async with Api(server) as api:
        await api.open(directory)
        host, _, port = server.url.removeprefix("http://").rpartition(":")
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect((host, int(port)))
        with raw:
            path = f"/v1/workspaces/{api.workspace_id}/events?client_id={api.client_id}&after=0"
            raw.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {api.token}\r\n\r\n".encode())
            for number in range(6):  # in several facts each: more than the socket's buffers hold
                session = await api.new_session()
                await api.prompt(session, str(number) + "x" * 500_000)
            began = time.monotonic()
            assert await server.stop() == 0
            assert time.monotonic() - began < 15
