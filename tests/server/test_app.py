"""Apps of one process: they have the same routes, and each its own services."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
from own_listener import listening

from windlass.errors import NotFound


class Empty:
    """A registry that has nothing, and says whose it is."""

    def __init__(self, name: str) -> None:
        self._name = name

    def get(self, workspace_id: str) -> Any:
        raise NotFound(f"{self._name} has nothing.")


async def test_a_request_finds_the_services_of_the_app_it_came_to(tmp_path: Path) -> None:
    """Routes are built once a process: a second server in it would answer from the first one's workspaces."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(aiohttp.ClientSession())
        names = ("one", "other")
        places = [await stack.enter_async_context(listening(tmp_path / name, Empty(name))) for name in names]
        for name, place in zip(names, places, strict=True):
            url = f"http://{place.host}:{place.port}/v1/workspaces/any/sessions"
            async with client.get(url, headers={"Authorization": f"Bearer {place.token}"}) as answer:
                assert (answer.status, (await answer.json())["message"]) == (404, f"{name} has nothing.")
