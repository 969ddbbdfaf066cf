"""Routes: prompts, runs, the queue, and the agent behind them."""

import binascii
from typing import Any, get_args

from litestar import Response, Router, delete, get, post
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery, JSONBody

from windlass import limits
from windlass.engine import reading
from windlass.errors import BadRequest, Invalid
from windlass.ids import is_run_id
from windlass.server.services import (
    Connection,
    Services,
    by_of,
    encode,
    raw_json,
    raw_list,
    services_of,
    whole_number,
    workspace_of,
)
from windlass.wire.http import (
    Accepted,
    AgentInfo,
    AgentInit,
    Canceled,
    Prompt,
    RunStateBody,
)
from windlass.wire.runs import TERMINAL_STATES, Attachment, Run, RunState
from windlass.wire.sessions import Session
from windlass.wire.timeline import Timeline


@post("/agent", status_code=202)
async def prompt(state: State, request: Connection, workspace_id: FromPath[str], data: JSONBody[Prompt]) -> Accepted:
    """Accept a prompt. The answer comes when it is on disk; the run goes on by itself."""
    workspace = workspace_of(state, workspace_id)
    if not data.prompt.strip():
        raise BadRequest("prompt is empty: say what the agent should do.")
    if not data.session_id:
        raise BadRequest("session_id is missing: the session the prompt belongs to.")
    if len(data.prompt) > limits.PROMPT_CHARACTERS:
        raise Invalid(f"prompt is longer than {limits.PROMPT_CHARACTERS} characters. Put the text into a file.")
    if data.run_id and not is_run_id(data.run_id):
        raise Invalid("run_id must be 1 to 64 letters, digits, dashes or underscores.")
    _check_attachments(data.attachments)
    _check_model(state.services, data.model)
    return await workspace.prompt(data, by_of(request))


def _check_model(services: Services, model: str) -> None:
    """A run may name its model; one that nobody configured is refused before anything is accepted."""
    if not model:
        return
    provider, _, name = model.partition("/")
    known = services.describe_config().providers
    if provider not in known or not name:
        raise Invalid(f"model must be provider/model with one of these providers: {', '.join(sorted(known))}.")


def _check_attachments(attachments: list[Attachment]) -> None:
    """A content that cannot be read would only come out when the model is sent it, in the middle of a run."""
    for index, attachment in enumerate(attachments):
        try:
            binascii.a2b_base64(attachment.content, strict_mode=True)
        except ValueError:
            raise Invalid(f"attachments[{index}].content is not base64.") from None


@get("/agent")
async def agent_info(state: State, workspace_id: FromPath[str]) -> AgentInfo:
    """Whether anything runs, and with which model."""
    workspace = workspace_of(state, workspace_id)
    model = state.services.describe_config().models["large"]
    return AgentInfo(is_busy=bool(workspace.log.runs), is_ready=True, model=model.model, model_cfg=model)


@post("/agent/init", status_code=200)
async def agent_init(state: State, workspace_id: FromPath[str], data: JSONBody[AgentInit | None] = None) -> None:
    """Safe at any time: the agent is always ready, and a live run is never disturbed."""
    workspace_of(state, workspace_id)


@post("/agent/update", status_code=200)
async def agent_update(state: State, request: Connection, workspace_id: FromPath[str]) -> None:
    """Read the configuration again; runs that are going on keep the one they started with."""
    workspace = workspace_of(state, workspace_id)
    state.services.reload_config()
    await workspace.log.durable(workspace.config_changed(by_of(request)))


@get("/agent/sessions/{session_id:str}")
async def agent_session(state: State, workspace_id: FromPath[str], session_id: FromPath[str]) -> Session:
    """The session, with whether it is busy."""
    return await reading.session(workspace_of(state, workspace_id), session_id)


@post("/agent/sessions/{session_id:str}/cancel", status_code=200)
async def cancel_session(
    state: State, request: Connection, workspace_id: FromPath[str], session_id: FromPath[str]
) -> Canceled:
    """Cancel everything accepted on the session so far, and nothing that comes later."""
    return Canceled(await workspace_of(state, workspace_id).cancel(session_id, by_of(request)))


@get("/agent/sessions/{session_id:str}/prompts/queued")
async def count_queued(state: State, workspace_id: FromPath[str], session_id: FromPath[str]) -> int:
    """How many prompts wait on the session."""
    workspace = workspace_of(state, workspace_id)
    await reading.session(workspace, session_id)
    return len(reading.queued(workspace, session_id))


@get("/agent/sessions/{session_id:str}/prompts/list")
async def list_queued(
    state: State, workspace_id: FromPath[str], session_id: FromPath[str], full: FromQuery[str] = ""
) -> Response[Any]:
    """The prompts that wait, as texts; with `?full=1` as runs."""
    workspace = workspace_of(state, workspace_id)
    await reading.session(workspace, session_id)
    runs = reading.queued(workspace, session_id)
    return raw_json(encode(runs if full == "1" else [run.prompt for run in runs]))


@post("/agent/sessions/{session_id:str}/prompts/clear", status_code=200)
async def clear_queue(
    state: State, request: Connection, workspace_id: FromPath[str], session_id: FromPath[str]
) -> Canceled:
    """Cancel what waits on the session; what runs goes on."""
    return Canceled(await workspace_of(state, workspace_id).clear_queue(session_id, by_of(request)))


@get("/runs")
async def list_runs(
    state: State,
    request: Connection,
    workspace_id: FromPath[str],
    session: FromQuery[str] = "",
    after: FromQuery[str] = "",
    limit: FromQuery[str] = "",
) -> Response[list[Run]]:
    """Runs in the order they were accepted; `?session=`, `?state=`, `?after=<run id>`, `?limit=`."""
    workspace = workspace_of(state, workspace_id)
    wanted = request.query_params.get("state", "")  # not a parameter: that name is taken by the app's own state
    if wanted and wanted not in get_args(RunState):
        raise BadRequest(f"state must be one of: {', '.join(get_args(RunState))}.")
    count = whole_number(limit, "limit", limits.RUNS_PER_PAGE_DEFAULT, limits.RUNS_PER_PAGE)
    return raw_list(await reading.runs(workspace, session, wanted, after, count))


@get("/runs/{run_id:str}")
async def get_run(state: State, workspace_id: FromPath[str], run_id: FromPath[str]) -> Run:
    """One run, in whatever state it is."""
    return await workspace_of(state, workspace_id).run(run_id)


@get("/runs/{run_id:str}/timeline")
async def get_timeline(state: State, workspace_id: FromPath[str], run_id: FromPath[str]) -> Timeline:
    """What a run spent its time on: waiting for its turn, the model, tools, people."""
    workspace = workspace_of(state, workspace_id)
    async with services_of(state).timelines.turn():
        return await reading.timeline(workspace, run_id)


@post("/runs/{run_id:str}/cancel", status_code=202)
async def cancel_run(
    state: State, request: Connection, workspace_id: FromPath[str], run_id: FromPath[str]
) -> Response[RunStateBody]:
    """Cancel one run and no other: 202 while it is ending, 200 when it was over already."""
    reached = await workspace_of(state, workspace_id).cancel_run(run_id, by_of(request))
    return Response(RunStateBody(reached), status_code=200 if reached in TERMINAL_STATES else 202)


@delete("/runs/{run_id:str}", status_code=200)
async def remove_run(
    state: State, request: Connection, workspace_id: FromPath[str], run_id: FromPath[str]
) -> RunStateBody:
    """Take a run out of the queue; 409 when it is running or over."""
    return RunStateBody(await workspace_of(state, workspace_id).remove_run(run_id, by_of(request)))


router = Router(
    path="/v1/workspaces/{workspace_id:str}",
    route_handlers=[
        prompt,
        agent_info,
        agent_init,
        agent_update,
        agent_session,
        cancel_session,
        count_queued,
        list_queued,
        clear_queue,
        list_runs,
        get_run,
        get_timeline,
        cancel_run,
        remove_run,
    ],
    tags=["Runs"],
)
