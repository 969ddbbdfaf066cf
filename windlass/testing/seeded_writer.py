"""A journal writer for simulations: the real backend, called inline after a delay that comes from the seed.

It commits one batch at a time, as the writer's thread does, and it can fail as a machine does: die before a commit, die
after it and before anyone hears of it, or have the disk refuse. Delays are multiples of 10 ms, so that a commit's end
meets other callbacks in the same turn of the loop.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from windlass.journal.records import Record
from windlass.journal.writer import Backend, Done

Result = TypeVar("Result")
FaultKind = Literal["dies before commit", "dies after commit", "refused", "refused but written"]
_DELAYS = (0.0, 0.0, 0.0, 0.01, 0.01, 0.02, 0.03)


class Crash(SystemExit):
    """The process is killed. As a SystemExit it leaves the loop from where it is raised: nothing more runs after it."""


class DiskRefused(OSError):
    """What a full or broken disk says."""


class Fault(msgspec.Struct, frozen=True):
    """What goes wrong, at which commit of this process."""

    kind: FaultKind
    commit: int


class SeededWriter:
    """Implements the journal's `Writer`. `committed` is told what is on disk as soon as it is."""

    def __init__(
        self,
        backend: Backend,
        rng: random.Random,
        committed: Callable[[Sequence[Record]], None],
        fault: Fault | None = None,
    ) -> None:
        self.fault_happened = False
        self._backend = backend
        self._rng = rng
        self._committed = committed
        self._fault = fault
        self._commits = 0
        self._busy = False

    def submit(self, records: Sequence[Record], done: Done) -> None:
        assert not self._busy, "a batch was handed over while another is being written"
        self._busy = True
        asyncio.get_running_loop().call_later(self._delay(), self._commit, records, done)

    def _commit(self, records: Sequence[Record], done: Done) -> None:
        self._commits += 1
        fault = self._fault.kind if self._fault is not None and self._fault.commit == self._commits else ""
        self.fault_happened = self.fault_happened or fault != ""
        if fault == "dies before commit":
            raise Crash(fault)
        error: Exception | None = DiskRefused("no space left on device") if fault.startswith("refused") else None
        if fault != "refused":
            error = self._write(records) or error
        if fault == "dies after commit":
            raise Crash(fault)
        asyncio.get_running_loop().call_later(self._delay(), self._tell, done, error)

    def _write(self, records: Sequence[Record]) -> Exception | None:
        try:
            self._backend.commit(records)
        except Exception as error:  # the border of the writer: the journal decides what a failed commit means
            return error
        self._committed(records)
        return None

    def _tell(self, done: Done, error: Exception | None) -> None:
        self._busy = False
        done(error)

    async def read(self, query: Callable[..., Result], *arguments: Any) -> Result:
        # Time passes on both sides: what was read may be old when it arrives.
        await asyncio.sleep(self._delay())
        result = self._backend.read(query, *arguments)
        await asyncio.sleep(self._delay())
        return result

    async def close(self) -> None:
        self._backend.close()

    def _delay(self) -> float:
        return self._rng.choice(_DELAYS)
