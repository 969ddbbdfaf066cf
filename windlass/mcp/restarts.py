"""When a server that ended, or could not be reached, is tried again."""

from collections import deque

from windlass import limits


class Restarts:
    """The endings of one server in the last while. Decides without a clock of its own: `now` is in seconds."""

    def __init__(
        self,
        limit: int = limits.MCP_RESTARTS,
        window_seconds: float = limits.MCP_RESTART_WINDOW_SECONDS,
        base_seconds: float = limits.MCP_RESTART_BASE_SECONDS,
    ) -> None:
        self.limit = limit
        self.window_seconds = window_seconds
        self._base_seconds = base_seconds
        self._endings: deque[float] = deque(maxlen=limit)

    def ended(self, now: float) -> None:
        self._endings.append(now)

    def forget(self) -> None:
        """Whoever changed something may have mended it."""
        self._endings.clear()

    def given_up(self, now: float) -> bool:
        """Whether it ended as often as it may in the window: then it is not started by itself any more."""
        return self._recent(now) >= self.limit

    def pause(self, now: float) -> float:
        """Seconds until it may be started again; 0: now."""
        count = self._recent(now)
        if not count:
            return 0.0
        if count >= self.limit:
            return self._endings[0] + self.window_seconds - now
        return max(0.0, self._endings[-1] + self._base_seconds * 2.0 ** (count - 1) - now)

    def _recent(self, now: float) -> int:
        while self._endings and self._endings[0] + self.window_seconds <= now:
            self._endings.popleft()
        return len(self._endings)
