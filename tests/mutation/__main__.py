"""`python -m tests.mutation`: change the code of core/ and journal/ in many small ways, and see whether a test notices.

    python -m tests.mutation --share 0.1       a tenth of each file's mutants, chosen by --seed
    python -m tests.mutation --share 1         every one; goes on where it was stopped
    python -m tests.mutation --again           those that survived, after new tests were written

Results are kept in .mutants.jsonl, one a line, as long as the mutated file stays the same. Leaves with 1 below 90 %.
"""

import math
import random
import sys
from pathlib import Path

import click

from tests.mutation import plan
from tests.mutation.court import Court
from tests.mutation.operators import Mutant, mutants_of
from tests.mutation.verdicts import Verdicts

ROOT = Path(__file__).parent.parent.parent
WANTED = 0.9


@click.command()
@click.option("--share", default=0.1, help="Of each file's mutants: 1 for all.")
@click.option("--again", is_flag=True, help="Only those that survived.")
@click.option("--seed", default=1, help="Which sample.")
@click.option("--jobs", default=2, help="How many at a time.")
@click.option("--file", "only", multiple=True, help="Part of a file's name; may be given more than once.")
@click.option("--results", default=".mutants.jsonl", help="Where results are kept.")
def main(share: float, again: bool, seed: int, jobs: int, only: tuple[str, ...], results: str) -> None:
    """Mutate core/ and journal/, one small change at a time, and say which changes no test noticed."""
    wanted = [file for file in plan.files(ROOT) if not only or any(part in file for part in only)]
    sources = {file: (ROOT / file).read_text("utf-8") for file in wanted}
    verdicts = Verdicts(ROOT / results, sources)
    mutants = [mutant for file in wanted for mutant in sample(mutants_of(file, sources[file]), share, f"{seed} {file}")]
    todo = [mutant for mutant in mutants if verdicts.is_open(mutant, again)]
    Court(ROOT, sources, verdicts, jobs).hear(todo)
    click.echo(verdicts.report(mutants))
    sys.exit(0 if verdicts.score(mutants) >= WANTED else 1)


def sample(mutants: list[Mutant], share: float, seed: str) -> list[Mutant]:
    """In the order of the lines. A larger share holds the smaller one, so that its results are not lost."""
    shuffled = random.Random(seed).sample(mutants, len(mutants))
    return sorted(shuffled[: math.ceil(share * len(mutants))])


if __name__ == "__main__":
    main()
