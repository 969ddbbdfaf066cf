"""`windlass` with a ticker on its event loop: `python -m bench.gap_server serve ...`. Nothing else is different."""

import uvloop

from bench.gaps import Ticker, own_file
from windlass.cli.main import main

_new_loop = uvloop.new_event_loop


def _watched_loop() -> uvloop.Loop:
    loop = _new_loop()
    loop.call_soon(Ticker, loop, own_file())
    return loop


if __name__ == "__main__":
    uvloop.new_event_loop = _watched_loop  # what windlass.app makes its loop with
    main()
