"""When a failed model call is sent again, and after how long."""

import random

from windlass import limits
from windlass.wire.model import ModelError


def retry_delay(error: ModelError, failures: int, jitter: random.Random) -> float | None:
    """Seconds to wait before the next attempt after `failures` failed ones; None when there is none.

    The wait doubles each time and has jitter, so that many runs that failed together do not come back together.
    """
    if not error.retryable or failures > limits.MODEL_RETRIES:
        return None
    asked = error.retry_after or 0.0
    if asked > limits.MODEL_RETRY_AFTER_SECONDS:
        # Asking sooner than that would be refused again; waiting so long in silence is not ours to decide.
        return None
    backoff: float = min(limits.MODEL_RETRY_BASE_SECONDS * 2.0 ** (failures - 1), limits.MODEL_RETRY_MAX_SECONDS)
    return max(asked, backoff * jitter.uniform(0.5, 1.0))
