"""How a connection learns that its server is gone, from whoever notices it first."""

import asyncio


class Ending:
    """Set once, with a sentence for a person that holds no secret. `hint`: what may explain an end for no reason.

    `near`: it has ended, and only why is still being found out.
    """

    def __init__(self) -> None:
        self.near = False
        self.reason = ""
        self.hint = ""
        self._happened = asyncio.Event()

    def set(self, reason: str) -> None:
        if not self._happened.is_set():
            self.near = True
            self.reason = reason
            self._happened.set()

    async def wait(self) -> None:
        await self._happened.wait()
