"""Routes: what people do to a session beside prompting it: look at its files, undo, plan, sum up, run a command."""

from litestar import Response, Router, get, post
from litestar.datastructures import State
from litestar.params import FromPath, JSONBody

from windlass import limits
from windlass.engine import reading
from windlass.engine.undo import undo
from windlass.errors import BadRequest, Invalid
from windlass.ids import is_run_id
from windlass.server.services import Connection, by_of, raw_list, workspace_of
from windlass.wire.http import PlanMode, ShellOutput, ShellRequest, Summarized, Undo, Undone
from windlass.wire.sessions import FileVersion, Session


@get("/sessions/{session_id:str}/history")
async def file_history(
    state: State, workspace_id: FromPath[str], session_id: FromPath[str]
) -> Response[list[FileVersion]]:
    """Every version of the files that the session's runs wrote, in the order in which they came to be.

    `origin` tells what each is: what was there before a run, what a run wrote, what an undo put back.
    """
    return raw_list(await reading.file_history(workspace_of(state, workspace_id), session_id))


@get("/sessions/{session_id:str}/filetracker/files")
async def files_read(state: State, workspace_id: FromPath[str], session_id: FromPath[str]) -> list[str]:
    """The files whose content the session's model has been shown, as absolute paths, sorted."""
    return await reading.files_read(workspace_of(state, workspace_id), session_id)


@post("/sessions/{session_id:str}/undo", status_code=200)
async def undo_run(
    state: State, request: Connection, workspace_id: FromPath[str], session_id: FromPath[str], data: JSONBody[Undo]
) -> Undone:
    """Put every file that a run of the session wrote back to what it was before that run, and the files of its agents.

    A file that changed since, or that someone else changed in between, is refused and said; the others are put back.
    409 while the session is busy, 422 for a run that is not over.
    """
    if not is_run_id(data.run_id):
        raise Invalid("run_id must be 1 to 64 letters, digits, dashes or underscores.")
    return await undo(workspace_of(state, workspace_id), session_id, data.run_id, by_of(request))


@post("/sessions/{session_id:str}/plan", status_code=200)
async def set_plan(
    state: State, request: Connection, workspace_id: FromPath[str], session_id: FromPath[str], data: JSONBody[PlanMode]
) -> Session:
    """Plan mode: the session's runs, and those of its agents, may only read. A run that is going on changes nothing
    any more from when it is switched on; switched off, it is for later runs to act."""
    workspace = workspace_of(state, workspace_id)
    await workspace.set_plan(session_id, data.plan, by_of(request))
    return await reading.session(workspace, session_id)


@post("/agent/sessions/{session_id:str}/summarize", status_code=200)
async def summarize(
    state: State, request: Connection, workspace_id: FromPath[str], session_id: FromPath[str]
) -> Summarized:
    """Sum the conversation up: from then on the model is sent the summary in place of what was before it.

    Answers when it is done. It is a run like any other, behind those that wait, and goes on if the caller leaves. 409
    when there is nothing to sum up, and when it failed or was cancelled.
    """
    return await workspace_of(state, workspace_id).errands.summarize(session_id, by_of(request))


@post("/agent/sessions/{session_id:str}/shell", status_code=200)
async def shell(
    state: State,
    request: Connection,
    workspace_id: FromPath[str],
    session_id: FromPath[str],
    data: JSONBody[ShellRequest],
) -> ShellOutput:
    """Run a command of your own in the workspace's directory, and let the model see it with the next prompt.

    Answers when it has ended, at the latest after ten minutes. It is a run like any other, behind those that wait;
    cancelling it ends the command and all it started. Nobody is asked, and rules that deny commands to agents do not
    hold: it is you who runs it. 409 when it was cancelled or could not be started.
    """
    if not data.command.strip():
        raise BadRequest("command is empty: say what to run.")
    if len(data.command) > limits.SHELL_COMMAND_CHARACTERS:
        raise Invalid(f"command is longer than {limits.SHELL_COMMAND_CHARACTERS} characters. Put it into a script.")
    if "\0" in data.command:
        raise Invalid("command contains a NUL character, which no command can.")
    if not 0 <= data.term_width <= limits.SHELL_TERM_COLUMNS:
        raise Invalid(f"term_width must be a whole number from 0 to {limits.SHELL_TERM_COLUMNS}.")
    workspace = workspace_of(state, workspace_id)
    return await workspace.errands.shell(session_id, data.command, data.term_width, by_of(request))


router = Router(
    path="/v1/workspaces/{workspace_id:str}",
    route_handlers=[file_history, files_read, undo_run, set_plan, summarize, shell],
    tags=["Files, plans and commands"],
)
