"""An executor of one's own: it shouts what it is told. Any class with this `run` will do.

windlass worker --executor examples.own_executor:Shout --mode one      (from the directory above this one)
"""

from windlass.ids import new_id
from windlass.wire.execution import Cancel, Events, RunOutcome, RunSpec, Steer
from windlass.wire.run_events import Delta, MessageEnd, MessageStart


class Shout:
    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        message_id = new_id("msg")
        events.emit(MessageStart(message_id, "assistant"))
        for number, word in enumerate(spec.prompt.split()):
            if cancel.requested:
                return RunOutcome("canceled")
            events.emit(Delta(message_id, 0, "text", f"{word.upper()}! ", part_type="" if number else "text"))
        events.emit(MessageEnd(message_id, "end_turn"))
        return RunOutcome("completed")
