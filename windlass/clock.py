"""Time: what the clock on the wall says, for people, and what passes, for durations."""

import asyncio
import time
from datetime import UTC, datetime


class Clock:
    """The real clock. The simulation brings its own, so that a seed gives the same trace."""

    def now(self) -> float:
        """Unix seconds. Never used to measure how long something took: it can jump."""
        return time.time()

    def seconds(self) -> int:
        return int(self.now())

    def rfc3339(self) -> str:
        return datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()
