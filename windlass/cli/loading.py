"""Loading what a command runs only when it runs: `windlass --help` must not wait for a whole server."""

import gc
import sys
from types import ModuleType


def load(module: str) -> ModuleType:
    """The module, with structlog but without what structlog would load for tracebacks that we never let it draw (rich
    and pygments): a fifth of a start, and 4 MB."""
    was_collecting = gc.isenabled()
    # Modules stay for good. Looking for rubbish among them again and again would be a tenth of a start, and looking at
    # them ever after, a gap of the event loop at each full collection.
    gc.disable()
    try:
        if "rich" not in sys.modules:
            sys.modules["rich"] = None  # type: ignore[assignment]
            try:
                __import__("structlog")
            finally:
                del sys.modules["rich"]
        __import__(module)  # as the statement does it, so that `python -X importtime` tells of it
    finally:
        gc.freeze()
        if was_collecting:
            gc.enable()
    return sys.modules[module]
