"""From a `run` frame to what an executor is told. A plain peer's conversation is taken as far as it can be read."""

import os
from typing import Any

import msgspec
import structlog

from windlass.fleet.worker.dialect import NotUnderstood
from windlass.ids import new_id
from windlass.wire.execution import RunSpec
from windlass.wire.frames import RunFrame
from windlass.wire.messages import Message, text_message

logger = structlog.get_logger("windlass.worker")


class _Said(msgspec.Struct):
    """A message as most programs write it."""

    role: str
    content: str | list[Any]


def run_spec(frame: RunFrame, workspace_path: str, *, plain: bool) -> RunSpec:
    """`workspace_path`: the directory as this machine knows it, if it was told one. Raises NotUnderstood."""
    session_id = frame.session_id or new_id("ses")
    return RunSpec(
        run_id=frame.run_id or new_id("run"),
        session_id=session_id,
        root_session_id=frame.root_session_id or session_id,
        workspace_path=workspace_path or frame.workspace_path or os.getcwd(),
        prompt=frame.assignment,
        messages=_read(frame, session_id) if plain else _ours(frame, session_id),
        attachments=frame.attachments,
        model=frame.model,
        reasoning_effort=frame.reasoning_effort or "",
        purpose=frame.purpose,
        plan=frame.plan,
        wants_title=frame.wants_title,
        max_cost=frame.max_cost,
    )


def _ours(frame: RunFrame, session_id: str) -> list[Message]:
    if frame.messages is None:
        return [_text(session_id, "user", frame.assignment)]
    try:
        return msgspec.convert(frame.messages, list[Message])
    except msgspec.ValidationError as error:
        raise NotUnderstood(f"the messages of the run: {error}") from None


def _read(frame: RunFrame, session_id: str) -> list[Message]:
    read = [message for entry in frame.messages or [] if (message := _one(entry, session_id)) is not None]
    if len(read) < len(frame.messages or []):
        logger.warning("messages of a plain run were not understood", count=len(frame.messages or []) - len(read))
    return [*read, _text(session_id, "user", frame.assignment)]


def _one(entry: Any, session_id: str) -> Message | None:
    try:
        return msgspec.convert(entry, Message)
    except msgspec.ValidationError:
        pass
    try:
        said = msgspec.convert(entry, _Said)
    except msgspec.ValidationError:
        return None
    text = said.content if isinstance(said.content, str) else "".join(_text_of(part) for part in said.content)
    return _text(session_id, said.role, text) if said.role in ("user", "assistant", "system") and text else None


def _text_of(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def _text(session_id: str, role: str, text: str) -> Message:
    return text_message(
        id=new_id("msg"), role=role, session_id=session_id, text=text, model="", provider="", created_at=0, updated_at=0
    )
