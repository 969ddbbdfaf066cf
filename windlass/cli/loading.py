"""Loading what a command runs only when it runs: `windlass --help` must not wait for a whole server."""

import importlib
import sys
from types import ModuleType


def load(module: str) -> ModuleType:
    """The module, with structlog but without what structlog would load for tracebacks that we never let it draw (rich
    and pygments): a fifth of a start, and 4 MB."""
    if "rich" not in sys.modules:
        sys.modules["rich"] = None  # type: ignore[assignment]
        try:
            importlib.import_module("structlog")
        finally:
            del sys.modules["rich"]
    return importlib.import_module(module)
