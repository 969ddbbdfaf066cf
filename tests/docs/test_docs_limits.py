"""The bounds on the page about operations are those of the code."""

import re

import pytest

from tests.docs.pages import pages
from windlass import limits

ROWS = re.findall(r"^\| `([A-Z_]+)` \| ([^|]+) \|", pages()["docs/operations.md"], re.MULTILINE)
UNITS = {"MiB": limits.MIB, "KiB": limits.KIB, "h": 3600, "min": 60, "s": 1, "": 1}


@pytest.mark.parametrize(("name", "shown"), ROWS)
def test_a_bound_on_the_page_is_the_one_that_holds(name: str, shown: str) -> None:
    """Operators would plan with a number that was changed long ago."""
    number, _, unit = shown.strip().partition(" ")
    assert float(number.replace(",", "")) * UNITS[unit] == getattr(limits, name)


def test_the_page_has_the_bounds_that_operators_meet() -> None:
    """A table that is not found would be true of every number."""
    assert len(ROWS) >= 20
