"""The process that searches for `glob` and `grep`: it can be killed, whatever a pattern makes it do.

Python's `re` cannot be interrupted, and a hostile pattern keeps it busy for ever (or eats all memory). So searches run
here and not in a thread of the server. One request comes as JSON on standard input, one answer goes to standard output.
Imports next to nothing, so that it starts fast; dies with its parent, and by itself when its time is over.
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any

from windlass.tools.searching.file_search import SearchRefused, find_files
from windlass.tools.searching.line_search import find_lines
from windlass.tools.searching.orphan import end_with_parent

_GRACE_SECONDS = 5.0  # the parent ends us when the time is over; this is for when it cannot
_SEARCHES: dict[str, Callable[[int, dict[str, Any]], dict[str, Any]]] = {"glob": find_files, "grep": find_lines}


def main() -> None:
    """`argv`: the descriptor of the workspace's directory."""
    root = int(sys.argv[-1])
    end_with_parent()
    request = json.loads(sys.stdin.buffer.read())
    signal.setitimer(signal.ITIMER_REAL, request["seconds"] + _GRACE_SECONDS)
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (request["memory_bytes"], most))
    os.fchdir(root)
    answer = _answer(root, request)
    # ASCII: a name whose bytes are no text must not break the answer.
    sys.stdout.write(json.dumps(answer))


def _answer(root: int, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return _SEARCHES[request["search"]](root, request)
    except SearchRefused as refused:
        return {"error": str(refused)}
    except OSError as error:
        return {"error": f"{request['path'] or 'The workspace'} cannot be searched: {error.strerror or error}."}
    except MemoryError:
        return {"error": "The search needs too much memory. Use a simpler pattern."}
