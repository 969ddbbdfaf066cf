"""Where the body of a request is made."""

import threading
from collections.abc import Callable, Iterator

import pytest
from model_requests import message, request

from windlass import limits
from windlass.models.anthropic import AnthropicModel
from windlass.models.bodies import made
from windlass.models.openai import OpenAIModel
from windlass.models.responses import ResponsesModel
from windlass.wire.messages import Binary, BinaryData, Message, ToolResult, ToolResultData
from windlass.wire.model import Model, ModelError

LONG = "x" * limits.MODEL_BODY_CHARACTERS


def where() -> bytes:
    return str(threading.get_ident()).encode()


@pytest.mark.parametrize(
    "messages",
    [
        [message("user", LONG)],
        [message("user", "hello") for _ in range(1_000)],
        [message("user", Binary(BinaryData("a.png", "image/png", LONG)))],
        [message("tool", ToolResult(ToolResultData("c", "view", "", "", False, data=LONG)))],
    ],
)
async def test_a_long_conversation_is_written_out_in_a_thread(messages: list[Message]) -> None:
    """Otherwise each step of one long session would stop everyone's words for tens of milliseconds."""
    assert await made(request(messages=messages), where) != where()


async def test_a_short_conversation_is_not_worth_a_thread() -> None:
    """Otherwise hundreds of small agents would queue for a handful of threads."""
    assert await made(request(), where) == where()


class Watched(list[Message]):
    """Messages that know which threads have read them."""

    def __init__(self, *messages: Message) -> None:
        super().__init__(messages)
        self.readers: set[int] = set()

    def __iter__(self) -> Iterator[Message]:
        self.readers.add(threading.get_ident())
        return super().__iter__()


@pytest.mark.parametrize("wire", [OpenAIModel, ResponsesModel, AnthropicModel])
async def test_each_wire_writes_long_conversations_out_in_a_thread(wire: Callable[..., Model]) -> None:
    """Otherwise the sessions of one provider would hold everyone up."""
    messages = Watched(message("user", LONG))
    model = wire("local", "http://127.0.0.1:1", "")
    with pytest.raises(ModelError, match="cannot be reached"):
        await model.stream(request(messages=messages), lambda chunk: None)
    await model.aclose()
    assert len(messages.readers) == 2
