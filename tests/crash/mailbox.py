"""`python -m tests.crash.mailbox --messages 10000 --seed 7`: kill a mailbox's writers and readers, see what is lost."""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from .mailbox_check import lines, violations
from .mailbox_workers import Plan
from .mailbox_world import run

_SHOWN = 40  # violations printed; one cause has many


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.mailbox", description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=None, help="the same seed rolls the same dice, not the same clock")
    parser.add_argument("--mine", type=float, default=Plan.mine, help="the share of system calls that are the last one")
    options = parser.parse_args()
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    print(f"mailbox crash suite: {options.messages} messages, seed {seed}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="windlass-mailbox-") as scratch:
        plan = Plan(Path(scratch) / "suite", messages=options.messages, mine=options.mine)
        counts, problems = run(plan, seed)
        told = lines(plan)
        problems += violations(plan, told)
    what = Counter(line["what"] for line in told)
    mines = Counter(line["call"] for line in told if line["what"] == "mine")
    rows = {
        "seconds": f"{time.monotonic() - began:.0f}",
        "kills": f"{counts['kills']}, {counts['killed from outside']} from outside",
        "  inside a call": ", ".join(f"{count} {call}" for call, count in mines.most_common()),
        "delivered": f"{what['told']}, {what['full']} times refused because the mailbox was full",
        "claims": f"{what['got']}: {what['acked']} acknowledged, {what['releasing']} given back, {what['lost']} lost",
        "sessions saved": f"{what['saved']}, indices compared {counts['indices compared']} times, "
        f"{counts['found cut short']} of them in the middle of a change that was cut short",
    }
    print("\n".join(f"  {name:<16} {value}" for name, value in rows.items()))
    for problem in problems[:_SHOWN]:
        print(f"VIOLATION {problem}")
    print(f"{len(problems)} violations, seed {seed}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
