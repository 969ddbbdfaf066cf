"""Questions in the SDK: listed, answered and declined; an answer is sent once."""

import pytest
from fake_windlass import FakeWindlass, a_batch, refusal

from windlass.client import Invalid, QuestionResponse, ServerUnreachable, WorkspaceHandle


async def test_questions_are_listed_answered_and_declined(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """B28: a program that answers for people would have to write the requests itself."""
    server.batches = [a_batch("ask_1")]
    (batch,) = await workspace.questions()
    assert await workspace.answer_questions(batch.id, [QuestionResponse("q1", yes=False)])
    server.resolved = False
    assert not await workspace.cancel_questions()
    assert server.answers == [
        {"batch_request_id": "ask_1", "responses": [{"request_id": "q1", "yes": False}]},
        {"batch_request_id": ""},
    ]


async def test_an_answer_is_not_sent_again_and_one_that_does_not_fit_is_raised(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """I9: the second of two would be told that somebody else was faster."""
    server.refuse("/questions/answer", None)
    with pytest.raises(ServerUnreachable):
        await workspace.answer_questions("ask_1", [])
    server.refuse("/questions/answer", refusal(422, "responses: q1 not answered."))
    with pytest.raises(Invalid, match="q1 not answered"):
        await workspace.answer_questions("ask_1", [])
    assert server.answers == []
