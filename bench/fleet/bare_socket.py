"""The bare WebSocket library at the worker's end: told what to send by the first message, and it sends it.

It decodes nothing, numbers nothing and waits for nobody but the socket.
"""

import json
import time

from aiohttp import web

from bench.child import Answer, listen, obey


async def _serve(request: web.BaseRequest) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    command = json.loads(await socket.receive_str())
    text, count = command["text"], command["count"]
    if command["what"] == "flood":
        for _ in range(count):
            await socket.send_str(text)
    else:
        took = []
        for _ in range(count):
            began = time.monotonic()
            await socket.send_str(text)
            await socket.receive_str()
            took.append((time.monotonic() - began) * 1000)
        await socket.send_str(json.dumps(took))
    await socket.close()
    return socket


async def _start() -> int:
    return await listen(web.Server(_serve))


async def _act(command: Answer) -> Answer:
    return {}


if __name__ == "__main__":
    obey(_start, _act)
