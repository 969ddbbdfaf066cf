"""`python -m windlass.testing.watched_program` is `windlass`, with calls that block its event loop made to raise.

Each is also told on standard error: what a broad `except` swallows must not go unseen.
"""

import sys

from windlass.cli.main import main
from windlass.testing import blocking

SIGN = "BLOCKING CALL: "  # how `ServerProcess` knows such a line


def _say(complaint: str) -> None:
    print(SIGN + complaint, file=sys.stderr, flush=True)


def start() -> None:
    blocking.forbid(_say)
    main()


if __name__ == "__main__":
    start()
