"""A server on loopback that answers GET requests with what a test says, and remembers what it was asked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web


class ListServer:
    """`answers`: (status, body) by path; anything else is 404 with a web page. A body that is a string is HTML."""

    def __init__(self, answers: dict[str, tuple[int, Any]]) -> None:
        self.answers = answers
        self.asked: list[web.Request] = []
        self.port = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append(request)
        status, body = self.answers.get(request.path, (404, "<html>not here</html>"))
        if isinstance(body, str):
            return web.Response(status=status, text=body, content_type="text/html")
        return web.json_response(body, status=status)


@asynccontextmanager
async def list_server(answers: dict[str, tuple[int, Any]]) -> AsyncIterator[ListServer]:
    server = ListServer(answers)
    application = web.Application()
    application.router.add_get("/{path:.*}", server._answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        await runner.cleanup()


def listed(*ids: str, **fields: Any) -> tuple[int, Any]:
    """A list of models as OpenAI-compatible servers give it."""
    return 200, {"object": "list", "data": [{"id": id, "object": "model", **fields} for id in ids]}
