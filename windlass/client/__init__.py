"""The Python SDK: everything a program needs to speak to a Windlass server.

    async with connect() as client:
        workspace = await client.open(".")
        run = await workspace.prompt((await workspace.create_session()).id, "What is in this directory?")
        async for text in run.text():
            print(text, end="")

What is in the list of names below is the public face; the modules behind it may move. docs/sdk.md walks through it.
"""

from windlass.client.approving import Decide, Decision
from windlass.client.client import Client, connect
from windlass.client.conversation import Conversation, Gained, Happening, Removed, Replaced
from windlass.client.discovery import ServerAddress, find_server, read_token
from windlass.client.errors import ProtocolError, RunFailed, ServerFailed, ServerNotFound, ServerUnreachable, StreamGap
from windlass.client.events import Decoded, EventId, StreamEvent
from windlass.client.run import RunHandle
from windlass.client.waiting import RunResult
from windlass.client.workspace import WorkspaceHandle
from windlass.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TooMany,
    Unauthorized,
    Unavailable,
    WindlassError,
)
from windlass.wire.events import Hello, MessageDelta, Presence, Reset
from windlass.wire.http import Accepted, NotRestored, SearchHit, ShellOutput, Summarized, Ticket, Undone
from windlass.wire.messages import Message, ShellCommand, Text, ToolCallData, ToolResult, ToolResultData
from windlass.wire.permissions import Action, By, PermissionNotification, PermissionRequest
from windlass.wire.questions import Question, QuestionBatch, QuestionNotification, QuestionResponse
from windlass.wire.runs import AgentEvent, Attachment, Run, RunComplete, RunState, Usage
from windlass.wire.sessions import FileVersion, Session
from windlass.wire.timeline import Span, Timeline

__all__ = [
    "Accepted",
    "Action",
    "AgentEvent",
    "Attachment",
    "BadRequest",
    "By",
    "Client",
    "Conflict",
    "Conversation",
    "Decide",
    "Decision",
    "Decoded",
    "EventId",
    "FileVersion",
    "Forbidden",
    "Gained",
    "Happening",
    "Hello",
    "Invalid",
    "Message",
    "MessageDelta",
    "NotFound",
    "NotRestored",
    "PermissionNotification",
    "PermissionRequest",
    "Presence",
    "ProtocolError",
    "Question",
    "QuestionBatch",
    "QuestionNotification",
    "QuestionResponse",
    "Removed",
    "Replaced",
    "Reset",
    "Run",
    "RunComplete",
    "RunFailed",
    "RunHandle",
    "RunResult",
    "RunState",
    "SearchHit",
    "ServerAddress",
    "ServerFailed",
    "ServerNotFound",
    "ServerUnreachable",
    "Session",
    "ShellCommand",
    "ShellOutput",
    "Span",
    "StreamEvent",
    "StreamGap",
    "Summarized",
    "Text",
    "Ticket",
    "Timeline",
    "TooMany",
    "ToolCallData",
    "ToolResult",
    "ToolResultData",
    "Unauthorized",
    "Unavailable",
    "Undone",
    "Usage",
    "WindlassError",
    "WorkspaceHandle",
    "connect",
    "find_server",
    "read_token",
]
