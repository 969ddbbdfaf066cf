"""Messages the loop adds to its own copy of the conversation: the prompt, steering messages, results of tools."""

from collections.abc import Sequence

import msgspec

from windlass.wire.execution import RunSpec
from windlass.wire.messages import (
    Binary,
    BinaryData,
    Finish,
    FinishData,
    FinishReason,
    Message,
    Part,
    Role,
    Text,
    TextData,
    ToolResult,
    ToolResultData,
)
from windlass.wire.runs import Attachment


def opening(spec: RunSpec) -> list[Message]:
    """The conversation a run begins with. Its last message is the prompt with its attachments, whoever put it there."""
    messages = list(spec.messages)
    if not messages or messages[-1].role != "user":
        return [*messages, user_message(spec, "", spec.prompt, spec.attachments)]
    prompt = messages[-1]
    if spec.attachments and not any(isinstance(part, Binary) for part in prompt.parts):
        messages[-1] = msgspec.structs.replace(prompt, parts=[*prompt.parts, *_attached(spec.attachments)])
    return messages


def user_message(spec: RunSpec, message_id: str, text: str, attachments: Sequence[Attachment]) -> Message:
    return _message(spec, message_id, "user", [Text(TextData(text)), *_attached(attachments)])


def ended_message(spec: RunSpec, reason: FinishReason) -> Message:
    """An answer that ended before its first word, as it is stored."""
    return _message(spec, "", "assistant", [Finish(FinishData(reason, 0))])


def tool_message(spec: RunSpec, result: ToolResultData) -> Message:
    return _message(spec, "", "tool", [ToolResult(result)])


def _attached(attachments: Sequence[Attachment]) -> list[Part]:
    return [Binary(BinaryData(file.file_path or file.file_name, file.mime_type, file.content)) for file in attachments]


def _message(spec: RunSpec, message_id: str, role: Role, parts: list[Part]) -> Message:
    return Message(
        id=message_id,
        role=role,
        session_id=spec.session_id,
        parts=parts,
        model="",
        provider="",
        created_at=0,
        updated_at=0,
    )
