"""Pictures are sent to models that can see, and are a note to the others."""

import msgspec
from agent_recorders import Harness, TinyTool, ToldModel, message
from hypothesis import given
from stored_conversations import conversations

from windlass.agent.history import conversation
from windlass.agent.images import is_image
from windlass.wire.messages import Binary, BinaryData, ImageUrl, ImageUrlData, Message
from windlass.wire.model import FinishChunk, TextChunk, ToolCallChunk
from windlass.wire.tools import ToolOutput

PICTURE = Binary(BinaryData("a.png", "image/png", "QUJD"))


@given(conversations)
def test_without_sight_no_picture_is_sent(stored: list[Message]) -> None:
    """Otherwise a model that cannot see would refuse the whole conversation, for ever."""
    assert not any(is_image(part) for one in conversation(stored, images=False) for part in one.parts)


def test_a_note_stands_where_a_picture_was() -> None:
    """Otherwise the model would not know that it was shown something."""
    stored = [message("user", "look", PICTURE, ImageUrl(ImageUrlData("https://example.org/a.png")))]
    (made,) = conversation(stored, images=False)
    assert "(a.png) was left out" in made.text and made.text.count("left out") == 2
    assert stored[0].parts[1] == PICTURE  # what is stored stays as it is


async def test_a_tool_s_picture_reaches_only_a_model_that_can_see() -> None:
    """Otherwise looking at a screenshot would end the run, or show nothing."""
    for images, shown in ((True, "QUJD"), (False, "")):
        model = ToldModel(
            lambda request: (
                [ToolCallChunk(0, "{}", "c", "look"), FinishChunk("tool_use")]
                if request.messages[-1].role == "user"
                else [TextChunk("ok"), FinishChunk("end_turn")]
            )
        )
        tool = TinyTool("look", lambda _: ToolOutput("a screen", data="QUJD", mime_type="image/png"))
        harness = Harness(model, [tool], images=images)
        await harness.run()
        result = msgspec.to_builtins(model.requests[-1].messages[-1].parts[0])["data"]
        assert result.get("data", "") == shown and ("left out" in result["content"]) != images
        assert harness.events.results()[0].data == "QUJD"  # people see it either way
