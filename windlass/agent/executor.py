"""`AgentExecutor`: the agent behind the executor contract of `wire/execution.py`."""

import asyncio

from windlass.agent.loop import AgentLoop
from windlass.agent.settings import AgentSettings
from windlass.wire.execution import Cancel, Events, RunOutcome, RunSpec, Steer


class AgentExecutor:
    """Executes runs, any number at a time: each has a loop of its own and they share the model's connections."""

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        """Drive one run to its end. When it returns or raises, nothing of the run is left: no task, no connection.

        A cancel may come as the token or as CancelledError. The token gives the outcome `canceled`; CancelledError goes
        on to the caller. Either way the owner of the run writes the ending. What nobody expected is raised.
        """
        work = asyncio.ensure_future(AgentLoop(self._settings, spec, events, steer).run())
        stop = asyncio.ensure_future(cancel.wait())
        try:
            await asyncio.wait((work, stop), return_when=asyncio.FIRST_COMPLETED)
        finally:
            # Also on the way out of a CancelledError: a loop left behind would go on calling the model and its tools.
            work.cancel()
            stop.cancel()
            await asyncio.wait((work, stop))
            if not work.cancelled():
                work.exception()  # looked at, or a run cancelled while it failed leaves a warning in the log
        if not work.cancelled():
            return work.result()
        if not cancel.requested:
            # A tool or model let a CancelledError of its own escape. Nobody cancelled: it must not look as if.
            raise RuntimeError("The run was broken off from within: a tool or the model cancelled itself.")
        return RunOutcome("canceled")
