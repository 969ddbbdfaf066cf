"""The figures: one row each, and the table they make."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure. `aim` is the most it may be; `bare` the same thing without us, in the same unit and run."""

    name: str
    value: float
    unit: str
    bare: float | None = None
    aim: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return self.value / self.bare if self.bare else None

    @property
    def met(self) -> bool | None:
        return None if self.aim is None else self.value <= self.aim


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value that `share` of the ordered values do not exceed; 0 of none."""
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]


def spread(values: Sequence[float]) -> tuple[float, float]:
    """p50 and p99."""
    ordered = sorted(values)
    return percentile(ordered, 0.50), percentile(ordered, 0.99)


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    lines = ["| what | measured | bare | ratio | aim | met |", "|---|--:|--:|--:|--:|---|"]
    for row in rows:
        name = row.name + (f" ({row.note})" if row.note else "")
        ratio = "" if row.ratio is None else f"{_number(row.ratio)}x"
        met = {None: "", True: "yes", False: "**no**"}[row.met]
        measured, bare, aim = (_with_unit(value, row.unit) for value in (row.value, row.bare, row.aim))
        lines.append(f"| {name} | {measured} | {bare} | {ratio} | {aim} | {met} |")
    return "\n".join(lines)


def _with_unit(value: float | None, unit: str) -> str:
    return "" if value is None else f"{_number(value)} {unit}".rstrip()


def _number(value: float) -> str:
    """Three digits that mean something."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
