"""A server that cannot start must not begin what others accepted."""

import socket
from pathlib import Path

from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import Api, ServerProcess, openai_config


async def test_a_start_on_a_port_that_is_taken_leaves_the_queue_as_it_was(
    tmp_path: Path, model: ModelServer, directory: Path
) -> None:
    """I1 B13: each failed start would eat a prompt that was answered 202."""
    first = ServerProcess(tmp_path / "server", "--drain", "0", config=openai_config(model.url))
    await first.start()
    async with Api(first) as api:
        await api.open(directory)
        session = await api.new_session()
        await api.prompt(session, "active")
        await model.next_call()
        waiting = await api.prompt(session, "waiting")
        await first.stop()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        second = ServerProcess(tmp_path / "server", config=openai_config(model.url), listen=address)
        try:
            await second.start()
        except AssertionError as error:
            assert "Cannot listen" in str(error)
        else:
            raise AssertionError("it started on a port that is taken")
    async with ServerProcess(tmp_path / "server", config=openai_config(model.url)) as third, Api(third) as api:
        await api.open(directory)
        call = await model.next_call()
        assert call.request["messages"][-1]["content"] == "waiting"
        await call.say("Here.")
        await call.end()
        assert (await api.run_over(waiting["run_id"]))["state"] == "completed"


async def test_yolo_is_over_when_the_workspace_closes(tmp_path: Path, model: ModelServer, directory: Path) -> None:
    """A26: one careless start would turn questions off in that directory for everyone, for ever."""
    server = ServerProcess(tmp_path / "server", "--detach-grace", "0", config=openai_config(model.url))
    async with server, Api(server) as careless, Api(server) as careful:
        await careless.open(directory, yolo=True)
        assert (await careless.ok("GET", "W/permissions/skip")) == {"skip": True}
        await careless.ok("DELETE", f"/v1/workspaces/{careless.workspace_id}?client_id={careless.client_id}")
        await careful.open(directory)
        assert (await careful.ok("GET", "W/permissions/skip")) == {"skip": False}
