"""The page of attacks names only what exists, and what the page about permissions says is so."""

import re
from pathlib import Path

import pytest

from tests.test_docs_races import names_in
from windlass.config import load
from windlass.core.command_patterns import CommandLine

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "attacks.md").read_text()
PERMISSIONS = (ROOT / "docs" / "permissions.md").read_text()
ATTACKS = dict(re.findall(r"^\*\*A(\d+)\.\*\* (.*?)(?=^\*\*A|^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
NUMBERS = (14, 15, 16, 17, 20, 21, 22, 23, 25, 26, 27, 28, 29, 30, 32)
_CODE = re.compile(r"`(windlass/[\w/]+\.py): ([\w.]+)`")
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_EXAMPLES = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \|$", PERMISSIONS, re.MULTILINE)


def missing(pattern: re.Pattern[str]) -> list[str]:
    cited = pattern.findall(PAGE)
    return [f"{file} {name}" for file, name in cited if not (ROOT / file).exists() or name not in names_in(file)]


def test_every_attack_is_on_the_page_once() -> None:
    """One that was forgotten would look like one that cannot happen."""
    assert [int(number) for number in re.findall(r"^\*\*A(\d+)\.\*\*", PAGE, re.MULTILINE)] == list(NUMBERS)


@pytest.mark.parametrize("number", NUMBERS)
def test_an_attack_names_what_is_in_its_way_and_who_tries_it(number: int) -> None:
    """A sentence that points at no code and no test is a hope."""
    shape, _, tests = ATTACKS[str(number)].partition("\n- Tests: ")
    assert "\n- In the way: " in shape and _CODE.search(shape) and _TEST.search(tests)


def test_the_code_it_names_exists() -> None:
    """A function that was renamed would leave a claim that nobody can check."""
    assert missing(_CODE) == []


def test_the_tests_it_names_exist() -> None:
    """A test that was renamed or removed would leave a claim that nothing shows."""
    assert missing(_TEST) == []


@pytest.mark.parametrize(("pattern", "covered", "not_covered"), _EXAMPLES)
def test_the_examples_of_patterns_are_so(pattern: str, covered: str, not_covered: str) -> None:
    """People write their rules after them."""
    assert CommandLine(covered).covered(pattern) and not CommandLine(not_covered).covered(pattern)


def test_there_are_examples_and_the_rules_are_a_valid_config(tmp_path: Path) -> None:
    """People copy them."""
    assert len(_EXAMPLES) == 11
    file = tmp_path / "config.toml"
    file.write_text(PERMISSIONS.partition("```toml\n")[2].partition("```")[0])
    assert load(file).permissions.deny == ("bash:rm *", "edit:*.lock")
