"""`python -m bench [section ...] [--quick] [--write FILE]`: measure, and print one table."""

import argparse
import datetime
import importlib
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import uvloop

from bench import plan, rows
from bench.world import machine
from windlass import __version__, logs

SECTIONS = ("tokens", "clients", "times", "overload", "mix", "history", "memory", "mailbox", "fleet", "start")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of: {', '.join(SECTIONS)} (all)")
    parser.add_argument("--quick", action="store_true", help="shorter windows and fewer sizes")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page there as well")
    options = parser.parse_args()
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"there is no section {', '.join(sorted(unknown))}; there are: {', '.join(SECTIONS)}")
    chosen = [name for name in SECTIONS if name in (options.sections or SECTIONS)]
    logs.configure("warning")  # to standard error: the page goes to the other, and a worker that leaves is no news
    # Whoever ends us in whatever way wants everything we started ended too.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        page, failed = uvloop.run(measure(chosen, plan.QUICK if options.quick else plan.WHOLE))
    except KeyboardInterrupt:
        print("bench: interrupted; everything it started is ended.", file=sys.stderr)
        return 130
    print(page, end="")
    if options.write is not None:
        options.write.write_text(page)
    return 1 if failed else 0


async def measure(sections: list[str], sizes: plan.Plan) -> tuple[str, bool]:
    """Measure the sections one after another; the page, and whether one of them could not be measured."""
    began = time.monotonic()
    found: list[rows.Row] = []
    failed = False
    for name in sections:
        section_began = time.monotonic()
        print(f"bench: {name} ...", end=" ", flush=True, file=sys.stderr)
        module = importlib.import_module(f"bench.sections.{name}")
        try:
            with tempfile.TemporaryDirectory(prefix="windlass-bench-") as scratch:
                found += await module.measure(sizes, Path(scratch))
        except Exception:  # one section that fails must not cost the minutes the others took
            traceback.print_exc()
            failed = True
        print(f"{time.monotonic() - section_began:.0f} s", file=sys.stderr)
    return page(found, time.monotonic() - began), failed


def page(found: list[rows.Row], seconds: float) -> str:
    return _PAGE.format(
        version=__version__,
        date=datetime.date.today().isoformat(),
        python=sys.version.split()[0],
        machine=machine(),
        seconds=seconds,
        table=rows.table(found),
    )


_PAGE = """\
# What it costs

Made by `make bench`; do not edit. Windlass {version} on {date}, Python {python}; {machine}.
The run took {seconds:.0f} s.

{table}

- **bare** is the same thing without us, measured in the same run: where nothing else is said, a uvloop program that
  passes the provider's events on to as many clients and does nothing else.
- **CPU** is user and system time of all threads of the server's process, divided by what was delivered in a steady
  window; what an idle server takes is not subtracted. The guardian's process and what tools run are not in it, unless
  a row says so.
- **Tokens** are counted as the provider sends them; in a flood the server joins what comes within 10 ms.
- **Provider to client** is the age of a token when a client with `deltas=1` has read it. All sessions are in one
  workspace, and every client is told of all of them.
- The provider, the server and the clients are processes of one machine and share its cores.
"""


if __name__ == "__main__":
    sys.exit(main())
