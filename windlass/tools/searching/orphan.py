"""Never being left alone: a helper process that ends when whoever started it does."""

import ctypes
import signal
import sys

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Linux: this process is killed when the thread that started it ends. Elsewhere its time limit has to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
