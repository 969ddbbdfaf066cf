"""A cast: what each agent of a test does, by the prompt it was started with."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from windlass.wire.delegation import AgentStatus, OwnerReply, StartAgent
from windlass.wire.execution import Cancel, Events, RunOutcome, RunSpec, Steer
from windlass.wire.messages import Finish, FinishData, Text, TextData
from windlass.wire.run_events import MessageStart


@dataclass
class Stage:
    """What a player is given: the contract's four things, and a few words for what tests do with them."""

    spec: RunSpec
    events: Events
    steer: Steer
    cancel: Cancel

    async def start(self, prompt: str, role: str = "", model: str = "") -> AgentStatus:
        """Start an agent, which must be allowed."""
        reply = await self.events.delegate(StartAgent(prompt, role, model))
        assert not reply.error, reply.error
        return reply.agents[0]

    async def refused(self, prompt: str, role: str = "") -> str:
        reply: OwnerReply = await self.events.delegate(StartAgent(prompt, role))
        assert not reply.agents, reply
        return reply.error

    async def say(self, text: str) -> None:
        parts = [Text(TextData(text)), Finish(FinishData("end_turn", 0))]
        await self.events.durable(MessageStart(f"msg_{self.spec.run_id}_{text}", "assistant", parts=parts))


Play = Callable[[Stage], Awaitable[None]]


class Cast:
    """The executor of every run of a test: `players` maps a prompt to what is done for it."""

    def __init__(self, **players: Play) -> None:
        self._players = players
        self.entered: dict[str, asyncio.Event] = {name: asyncio.Event() for name in players}

    def __call__(self, *_: object) -> "Cast":
        return self

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        name = spec.prompt
        self.entered[name].set()
        await self._players[name](Stage(spec, events, steer, cancel))
        return RunOutcome("completed")

    async def on_stage(self, *names: str) -> None:
        """Wait until these have begun."""
        async with asyncio.timeout(10):
            for name in names:
                await self.entered[name].wait()


async def forever(stage: Stage) -> None:
    await asyncio.Event().wait()
