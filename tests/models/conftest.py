"""Fixtures: a model server, models that are closed afterwards, and a raw socket that says exactly what it is told."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from windlass.models.anthropic import AnthropicModel
from windlass.models.openai import OpenAIModel
from windlass.models.responses import ResponsesModel
from windlass.testing.anthropic_wire import AnthropicServer
from windlass.testing.model_server import ModelServer
from windlass.testing.responses_wire import ResponsesServer


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def open_model() -> AsyncIterator[Callable[..., OpenAIModel]]:
    """A factory of models; every one it made is closed at the end."""
    models: list[OpenAIModel] = []

    def make(base_url: str, key: str = "key-of-the-test", **bounds: float) -> OpenAIModel:
        models.append(OpenAIModel("local", base_url, key, **bounds))
        return models[-1]

    yield make
    for model in models:
        await model.aclose()


@pytest.fixture
async def responses_server() -> AsyncIterator[ResponsesServer]:
    async with ResponsesServer() as server:
        yield server


@pytest.fixture
async def open_responses() -> AsyncIterator[Callable[..., ResponsesModel]]:
    """A factory of models; every one it made is closed at the end."""
    models: list[ResponsesModel] = []

    def make(base_url: str, key: str = "key-of-the-test", **bounds: float) -> ResponsesModel:
        models.append(ResponsesModel("local", base_url, key, **bounds))
        return models[-1]

    yield make
    for model in models:
        await model.aclose()


@pytest.fixture
async def anthropic_server() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


@pytest.fixture
async def open_anthropic() -> AsyncIterator[Callable[..., AnthropicModel]]:
    """A factory of models of Anthropic's wire; every one it made is closed at the end."""
    models: list[AnthropicModel] = []

    def make(base_url: str, key: str = "canary-of-the-test", **bounds: float) -> AnthropicModel:
        models.append(AnthropicModel("claude", base_url, key, **bounds))
        return models[-1]

    yield make
    for model in models:
        await model.aclose()


RawAnswer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
async def raw_server() -> AsyncIterator[Callable[[RawAnswer], Awaitable[str]]]:
    """A factory: give it a coroutine that writes the answer on the bare socket, get the base_url."""
    servers: list[asyncio.Server] = []

    async def start(answer: RawAnswer) -> str:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
                )
                await reader.readexactly(length)
                await answer(reader, writer)
            except ConnectionError:
                pass
            finally:
                writer.close()

        servers.append(await asyncio.start_server(serve, "127.0.0.1", 0))
        return f"http://127.0.0.1:{servers[-1].sockets[0].getsockname()[1]}/v1"

    yield start
    for server in servers:
        server.close()
        await server.wait_closed()
