"""The Python SDK: everything a program needs to speak to a Windlass server.

`Client` is the way in (its module has an example). What is listed in `__all__` is the public face; the modules behind
it may move.
"""

from windlass.client.client import Client
from windlass.client.conversation import Conversation, Gained, Happening, Removed, Replaced
from windlass.client.discovery import ServerAddress, find_server, read_token
from windlass.client.errors import ProtocolError, ServerFailed, ServerNotFound, ServerUnreachable, StreamGap
from windlass.client.events import EventId, StreamEvent
from windlass.client.waiting import RunResult
from windlass.client.workspace import WorkspaceHandle
from windlass.errors import Conflict, Invalid, NotFound, WindlassError
from windlass.wire.http import Accepted, NotRestored, ShellOutput, Summarized, Undone
from windlass.wire.messages import Message, ShellCommand, Text, ToolCallData, ToolResult, ToolResultData
from windlass.wire.permissions import Action, By, PermissionNotification, PermissionRequest
from windlass.wire.questions import Question, QuestionBatch, QuestionNotification, QuestionResponse
from windlass.wire.runs import Run, RunComplete, RunState
from windlass.wire.sessions import FileVersion, Session

__all__ = [
    "Accepted",
    "Action",
    "By",
    "Client",
    "Conflict",
    "Conversation",
    "EventId",
    "FileVersion",
    "Gained",
    "Happening",
    "Invalid",
    "Message",
    "NotFound",
    "NotRestored",
    "PermissionNotification",
    "PermissionRequest",
    "ProtocolError",
    "Question",
    "QuestionBatch",
    "QuestionNotification",
    "QuestionResponse",
    "Removed",
    "Replaced",
    "Run",
    "RunComplete",
    "RunResult",
    "RunState",
    "ServerAddress",
    "ServerFailed",
    "ServerNotFound",
    "ServerUnreachable",
    "Session",
    "ShellCommand",
    "ShellOutput",
    "StreamEvent",
    "StreamGap",
    "Summarized",
    "Text",
    "ToolCallData",
    "ToolResult",
    "ToolResultData",
    "Undone",
    "WindlassError",
    "WorkspaceHandle",
    "find_server",
    "read_token",
]
