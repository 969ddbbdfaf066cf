"""An executor for tests of worker processes: it does what its prompt says, in a process that tests can look at."""

import asyncio
import os
import signal
import subprocess
import threading
import time

from windlass.wire.execution import Cancel, Events, RunOutcome, RunSpec, Steer
from windlass.wire.run_events import Step


class Deeds:
    """`pid`: its process. `daemon MARK`: start a process that forks twice and hides. `hang`, `die`, `fail`, ..."""

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        self._cancel = cancel
        events.emit(Step(1))
        deed, _, rest = spec.prompt.partition(" ")
        result = await getattr(self, f"_{deed}")(rest)
        return RunOutcome("canceled") if cancel.requested else RunOutcome("completed", result=str(result))

    async def _pid(self, _: str) -> int:
        return os.getpid()

    async def _daemon(self, mark: str) -> str:
        line = f"(trap '' TERM HUP; setsid bash -c 'trap \"\" TERM HUP; sleep 3600 {mark}; :' &) >/dev/null 2>&1"
        process = await asyncio.create_subprocess_exec("/bin/bash", "-c", line, stdin=subprocess.DEVNULL)
        await process.wait()
        await self._cancel.wait()
        return ""

    async def _hang(self, _: str) -> None:
        await self._cancel.wait()

    async def _deaf(self, _: str) -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass

    async def _thread(self, seconds: str) -> int:
        """Leave a thread behind that ends some time later."""
        threading.Thread(target=time.sleep, args=(float(seconds),)).start()
        return os.getpid()

    async def _die(self, _: str) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    async def _fail(self, why: str) -> None:
        raise RuntimeError(why)

    async def _remember(self, word: str) -> str:
        seen = f"{os.environ.get('LEFT_BY_A_RUN')} {os.getcwd()}"
        os.environ["LEFT_BY_A_RUN"] = word
        os.chdir("/tmp")
        return seen

    async def _environment(self, _: str) -> str:
        return " ".join(sorted(os.environ))
