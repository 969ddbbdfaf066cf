"""What a plain peer may send to a worker: these fields and no others, so that an unknown one can have any shape."""

from typing import Any

import msgspec

from windlass.wire.frames import Frame


class PlainRun(Frame, tag="run", frozen=True, kw_only=True):
    """`messages` is the conversation before it, opaque to the link."""

    assignment: str
    reasoning_effort: str | None = None
    messages: Any = None


class PlainCancel(Frame, tag="cancel", frozen=True):
    pass


class PlainMessage(Frame, tag="message", frozen=True, kw_only=True):
    text: str


class PlainApprovalReply(Frame, tag="approval_reply", frozen=True, kw_only=True):
    id: str
    approved: bool


class PlainApprovalBody(msgspec.Struct, frozen=True):
    tool_name: str
    permission_type: str
    resource: str
    question: str


class PlainApprovalRequest(Frame, tag="approval_request", frozen=True, kw_only=True):
    id: str
    body: PlainApprovalBody


PlainToChild = PlainRun | PlainCancel | PlainMessage | PlainApprovalReply
