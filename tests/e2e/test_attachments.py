"""Files sent along with a prompt, as each provider is given them."""

import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from windlass.testing import canary
from windlass.testing.anthropic_wire import AnthropicServer
from windlass.testing.model_server import ModelServer
from windlass.testing.responses_wire import ResponsesServer
from windlass.testing.server_process import Api, ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
WIRES: dict[str, type[ModelServer]] = {
    "openai": ModelServer,
    "openai-responses": ResponsesServer,
    "anthropic": AnthropicServer,
}
PICTURE = base64.b64encode(
    base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
).decode()
NOTES = "Ships on Friday, with the blue label.\n"


class Place(NamedTuple):
    api: Api
    providers: dict[str, ModelServer]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lasting_place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    """A client of one server that has all three kinds of providers."""
    root = tmp_path_factory.mktemp("attachments")
    project = root / "project"
    project.mkdir()
    async with AsyncExitStack() as stack:
        providers = {wire: await stack.enter_async_context(kind()) for wire, kind in WIRES.items()}
        config = 'model = "openai/test-model"\n' + "".join(
            f'[providers.{wire}]\ntype = "{wire}"\nbase_url = "{provider.url}"\napi_key = "{canary.KEY}"\n'
            for wire, provider in providers.items()
        )
        server = await stack.enter_async_context(ServerProcess(root / "server", config=config))
        api = await stack.enter_async_context(Api(server, keep_alive=False))
        await api.open(project)
        yield Place(api, providers)


@pytest.fixture
def place(lasting_place: Place) -> Iterator[Place]:
    yield lasting_place
    for provider in lasting_place.providers.values():
        provider.hang_up()  # the connections that wait for the next test would be taken for this one's


def attached(name: str, mime_type: str, content: str) -> dict[str, str]:
    return {"file_path": f"/home/me/{name}", "file_name": name, "mime_type": mime_type, "content": content}


FILES = [
    attached("label.png", "image/png", PICTURE),
    attached("notes.txt", "text/plain", base64.b64encode(NOTES.encode()).decode()),
]


def shows_picture(wire: str, part: dict[str, Any]) -> bool:
    match wire:
        case "openai":
            return part == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
        case "openai-responses":
            return part["type"] == "input_image" and part["image_url"] == f"data:image/png;base64,{PICTURE}"
        case _:
            source = {"type": "base64", "media_type": "image/png", "data": PICTURE}
            return part["type"] == "image" and part["source"] == source


@pytest.mark.parametrize("wire", WIRES)
async def test_a_picture_and_a_text_reach_the_model_now_and_in_every_later_turn(place: Place, wire: str) -> None:
    """Else people talk about a picture that the model has never seen, or has forgotten with the second question."""
    session = await place.api.new_session(wire)
    for text in ("What is on the label?", "And when does it ship?"):
        files = FILES if text.startswith("What") else []
        run = await place.api.prompt(session, text, attachments=files, model=f"{wire}/test-model")
        call = await place.providers[wire].next_call()
        sent = call.request["input" if wire == "openai-responses" else "messages"]
        (first,) = [message for message in sent if "What is on the label?" in str(message)]
        assert [part for part in first["content"] if shows_picture(wire, part)] != []
        assert NOTES.strip() in str(first["content"])
        await call.say("Blue, on Friday.")
        await call.end()
        assert (await place.api.run_over(run["run_id"]))["state"] == "completed"


async def test_clients_find_the_files_in_the_message_they_came_with(place: Place) -> None:
    """Else a second client shows a conversation about nothing."""
    session = await place.api.new_session("files")
    run = await place.api.prompt(session, "Look.", attachments=FILES)
    call = await place.providers["openai"].next_call()
    await call.say("Seen.")
    await call.end()
    await place.api.run_over(run["run_id"])
    parts = (await place.api.messages(session))[0]["parts"]
    assert [part["data"]["MIMEType"] for part in parts if part["type"] == "binary"] == ["image/png", "text/plain"]
