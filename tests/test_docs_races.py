"""The page of races names only what exists, and leaves no race out."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.sim.ablations import ABLATIONS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "races.md").read_text()
RACES = dict(re.findall(r"^\*\*R(\d+)\.\*\* (.*?)(?=^\*\*R|^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
_SHAPE = re.compile(r"`(windlass/[\w/]+\.py): ([\w.]+)`")
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_ABLATIONS = re.compile(r"((?:[IB]\d+, )+)ablations? ((?:`[^`]+`(?: and )?)+)")


@cache
def names_in(file: str) -> set[str]:
    """Functions, classes and methods (`Class.method`) of a file."""
    names: set[str] = set()
    for node in ast.parse((ROOT / file).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            inner = (child for child in node.body if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))
            names |= {f"{node.name}.{child.name}" for child in inner}
    return names


def missing(pattern: re.Pattern[str]) -> list[str]:
    cited = pattern.findall(PAGE)
    return [f"{file} {name}" for file, name in cited if not (ROOT / file).exists() or name not in names_in(file)]


def test_every_race_is_on_the_page_once() -> None:
    """A race that was forgotten would look like one that cannot happen."""
    headings = re.findall(r"^\*\*R(\d+)\.\*\*", PAGE, re.MULTILINE)
    assert sorted(map(int, headings)) == list(range(1, 49))


@pytest.mark.parametrize("number", range(1, 49))
def test_a_race_names_its_shape_and_its_test(number: int) -> None:
    """A sentence that points at no code and no test is a hope."""
    race = RACES[str(number)]
    shape, _, tests = race.partition("\n- Tests: ")
    assert _SHAPE.search(shape) and _TEST.search(tests), race


def test_the_code_it_names_exists() -> None:
    """A function that was renamed would leave a claim that nobody can check."""
    assert missing(_SHAPE) == []


def test_the_tests_it_names_exist() -> None:
    """A test that was renamed or removed would leave a claim that nothing shows."""
    assert missing(_TEST) == []


def test_the_ablations_it_names_are_found_by_the_invariants_it_names() -> None:
    """A safeguard whose removal is no longer tried, or found by something else, would still be called proven."""
    cited = [
        (name, set(re.findall(r"\w+", invariants)))
        for invariants, names in _ABLATIONS.findall(PAGE)
        for name in re.findall(r"`([^`]+)`", names)
    ]
    assert len(cited) == PAGE.count("ablation `") + 2 * PAGE.count("ablations `") > 20
    wrong = [name for name, by in cited if name not in ABLATIONS or not by & set(ABLATIONS[name].found_by)]
    assert wrong == []
