"""The echo executor, for tests and smoke checks: it says what it is told, word by word.

These words are done instead of said: `__sleep_ms:N` waits, cancellably; `__steer` waits for a steering message and
says that; `__approve:RESOURCE` asks the host and says `approved:true` or `approved:false`; `__fail` raises;
`__ignore_cancel` makes it deaf to every cancel from there on.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from windlass.ids import new_id
from windlass.wire.execution import Cancel, Events, PermissionAsk, RunOutcome, RunSpec, Steer
from windlass.wire.run_events import Delta, MessageEnd, MessageStart, SteerTaken

Value = TypeVar("Value")


class EchoFailed(Exception):
    """It was told to fail."""


class _Cancelled(Exception):
    """The run is to stop."""


class EchoExecutor:
    """One assistant message, one delta a word: the word and one space. The result is `echo: ` and all of them."""

    def __init__(self) -> None:
        self._is_deaf = False

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        message_id = new_id("msg")
        events.emit(MessageStart(message_id, "assistant", "echo", "echo"))
        words: list[str] = []
        try:
            for command in spec.prompt.split():
                for word in (await self._obey(command, events, steer, cancel)).split():
                    events.emit(Delta(message_id, 0, "text", f"{word} ", part_type="" if words else "text"))
                    words.append(word)
                await self._breathe(cancel)
        except _Cancelled:
            return RunOutcome("canceled")
        events.emit(MessageEnd(message_id, "end_turn"))
        return RunOutcome("completed", result=f"echo: {' '.join(words)}")

    async def _obey(self, word: str, events: Events, steer: Steer, cancel: Cancel) -> str:
        """Do what the word says; returns what is said in its place, "" for nothing."""
        name, colon, argument = word.partition(":")
        match name:
            case "__sleep_ms" if argument.isascii() and argument.isdigit():
                await self._wait(asyncio.sleep(int(argument) / 1000), cancel)
            case "__steer" if not colon:
                message = await self._wait(steer.next(), cancel)
                events.emit(SteerTaken(message.run_id))
                return message.text
            case "__approve" if colon:
                verdict = await self._wait(events.approve(_ask(argument)), cancel)
                return f"approved:{'true' if verdict == 'granted' else 'false'}"
            case "__fail" if not colon:
                raise EchoFailed("the assignment said __fail")
            case "__ignore_cancel" if not colon:
                self._is_deaf = True
            case _:
                return word
        return ""

    async def _breathe(self, cancel: Cancel) -> None:
        """Between two words: other runs want their turn too, and a cancel is heard."""
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if not self._is_deaf:
                raise
        if cancel.requested and not self._is_deaf:
            raise _Cancelled

    async def _wait(self, work: Coroutine[Any, Any, Value], cancel: Cancel) -> Value:
        """Wait for it or for a cancel, whichever is first; once deaf, for it alone, whatever anyone does."""
        task: asyncio.Task[Value] = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(cancel.wait())
        try:
            while not task.done():
                try:
                    await asyncio.wait({task} if self._is_deaf else {task, stop}, return_when=asyncio.FIRST_COMPLETED)
                except asyncio.CancelledError:
                    if not self._is_deaf:
                        task.cancel()
                        raise
                if stop.done() and not task.done() and not self._is_deaf:
                    task.cancel()
                    raise _Cancelled
        finally:
            stop.cancel()
        return task.result()


def _ask(resource: str) -> PermissionAsk:
    return PermissionAsk(
        tool_call_id=new_id("call"),
        tool_name="echo",
        action="approve",
        description=f"May the echo go on with {resource}?",
        path=resource,
        resource=resource,
    )
