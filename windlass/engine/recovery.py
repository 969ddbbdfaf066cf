"""What a restart finds: runs that were not over when the server stopped or was killed.

A run a cancel covers ends `canceled`; one that was running ends `interrupted`, its messages made whole from what is on
disk; queued ones go on in their order (I1, I3). What a sub-agent had queued does not: the run it was for is over. Nor
does a command that a person typed: they are not there any more to see what it does.
"""

import msgspec

from windlass.core.lane import Entry, Lane
from windlass.core.questions import notification
from windlass.engine.desk import SERVER
from windlass.engine.workspace import Workspace
from windlass.journal import view
from windlass.wire.events import Fact
from windlass.wire.messages import Message, MessagePrivate
from windlass.wire.permissions import PermissionNotification, PermissionPrivate, PermissionRequest
from windlass.wire.questions import QuestionBatch

_INTERRUPTED = "The server stopped while this run was going on. Send the prompt again to go on from here."
_decode_message = msgspec.json.Decoder(Message).decode
_decode_batch = msgspec.json.Decoder(QuestionBatch).decode
_decode_permission = msgspec.json.Decoder(PermissionRequest).decode


async def recover(workspace: Workspace, opening: view.Opening) -> None:
    """Bring a workspace that was just loaded to a state in which nothing is half done."""
    lanes = list(dict.fromkeys(workspace.restore(run) for run in opening.runs))
    journal = workspace.context.journal
    found: list[tuple[Lane, Entry, list[tuple[str, MessagePrivate, Message]]]] = []
    for lane in lanes:
        if lane.active is not None:
            rows = await journal.read(view.run_messages, workspace.id, lane.session_id, lane.active.number)
            found.append((lane, lane.active, [(run, place, _decode_message(body)) for run, place, body in rows]))
    workspace.log.append([_withdrawn(_decode_permission(body)) for body in opening.permissions])
    batches = [_decode_batch(body) for body in opening.questions]
    workspace.log.append([notification(batch, "withdrawn", SERVER) for batch in batches])
    workspace.log.append([fact for lane in lanes for fact in _orphans(lane)])
    for lane, entry, messages in sorted(found, key=lambda item: _place(workspace, item[0])):
        workspace.interrupt(lane, entry, messages, _INTERRUPTED)
    await workspace.log.durable(workspace.log.head)


def _place(workspace: Workspace, lane: Lane) -> int:
    """Agents before those they worked for, as in every other ending."""
    return -len(workspace.sessions.lineage(lane.session_id))


def _orphans(lane: Lane) -> list[Fact]:
    """What waits for a parent run that is not there any more is cancelled; it ends when its lane goes on. So is a
    command that a person typed: nobody waits for what it prints, and it may no longer be what they want."""
    waiting = [entry for entry in lane.queued if entry.private.parent_run or entry.private.purpose == "shell"]
    return [fact for entry in waiting for fact in lane.cancel_run(entry.run.id, SERVER).facts]


def _withdrawn(request: PermissionRequest) -> Fact:
    """No request outlives its run (I11), and the run it belonged to is over."""
    body = PermissionNotification(
        tool_call_id=request.tool_call_id,
        id=request.id,
        outcome="withdrawn",
        granted=False,
        denied=False,
        session_id=request.session_id,
        by=SERVER,
    )
    private = PermissionPrivate(request.id, request.tool_name, request.action, "")
    return Fact("permission_notification", "created", body, SERVER, request.session_id, request.run_id, private=private)
