"""Routes: what agents ask people, and their answers."""

from litestar import Response, Router, get, post
from litestar.datastructures import State
from litestar.params import FromPath, JSONBody

from windlass.server.services import Connection, by_of, raw_list, workspace_of
from windlass.wire.http import Resolved
from windlass.wire.questions import AnswerQuestions, CancelQuestions, QuestionBatch


@get("/questions")
async def list_questions(state: State, workspace_id: FromPath[str]) -> Response[list[QuestionBatch]]:
    """What waits for an answer."""
    workspace = workspace_of(state, workspace_id)
    return raw_list([bytes(body) for body in workspace.log.questions.values()])


@post("/questions/answer", status_code=200)
async def answer_questions(
    state: State, request: Connection, workspace_id: FromPath[str], data: JSONBody[AnswerQuestions]
) -> Resolved:
    """Answer a batch, all of it. The first answer decides and is told so; everyone later is told that it did not.

    `yes` for a yes_no question, `selected_ids` for a choice (one for single_choice; or a `fill_in_text` of one's own),
    `fill_in_text` for free_text. What does not fit is a 422 that names the field, and the batch goes on waiting.
    """
    workspace = workspace_of(state, workspace_id)
    return Resolved(await workspace.questions.answer(data.batch_request_id, data.responses, by_of(request)))


@post("/questions/cancel", status_code=200)
async def cancel_questions(
    state: State, request: Connection, workspace_id: FromPath[str], data: JSONBody[CancelQuestions]
) -> Resolved:
    """Decline to answer a batch; the agent is told so and goes on. Without an id: every batch of the workspace that
    waits."""
    workspace = workspace_of(state, workspace_id)
    return Resolved(await workspace.questions.cancel(data.batch_request_id, by_of(request)))


router = Router(
    path="/v1/workspaces/{workspace_id:str}",
    route_handlers=[list_questions, answer_questions, cancel_questions],
    tags=["Questions"],
)
