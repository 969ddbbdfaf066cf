"""The mutants themselves: each is one change, compiles, and can make a difference."""

import ast

import pytest

from tests.mutation.operators import mutants_of, mutated
from tests.mutation.sql import sql_mutants

FILE = "windlass/core/example.py"


def texts(source: str) -> list[str]:
    """Each mutant of a source, as source."""
    return [ast.unparse(mutated(source, mutant)) for mutant in mutants_of(FILE, source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", ["pass", "a <= b"]),
        ("x = a and not b", ["x = None", "x = a or not b", "x = a and b"]),
        ("def f(a=1):\n    return a", ["def f(a=2):\n    return a", "def f(a=1):\n    return None"]),
        ("x += 1", ["x -= 1", "x = 1", "x += 2"]),
        ("raise Gone('no such thing')", ["pass"]),
        ("y = [x for x in z if x]", ["y = None", "y = [x for x in z if not x]"]),
        ("f(a, b=1)", ["pass", "f(None, b=1)", "f(a)", "f(a, b=2)"]),
        ("x = max(b'')", ["x = None", "x = min(b'')", "x = max(b'XX')"]),
        ("while a:\n    break", ["while not a:\n    break", "while a:\n    continue"]),
    ],
)
def test_a_mutant_is_one_change(source: str, expected: list[str]) -> None:
    """A score would be made of changes that nobody meant, or leave out those that matter."""
    assert texts(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring."""',
        "x: int",
        "def f(a: 'A') -> 'B': ...",
        "class C(Protocol):\n    def f(self):\n        return 1",
        "class C:\n    __slots__ = ('a', 'b')",
        "Rule = Literal['allow', 'deny']",
        "if TYPE_CHECKING:\n    x = 1",
        "class C:\n    def __repr__(self):\n        return 'C'",
    ],
)
def test_what_cannot_change_behaviour_is_left_alone(source: str) -> None:
    """Survivors that mean nothing would hide those that do."""
    assert texts(source) == []


def test_an_arm_of_a_match_is_left_out_but_never_the_last_resort() -> None:
    """A case that no test reaches would not be seen."""
    source = "match a:\n    case 1:\n        f()\n    case _:\n        g()"
    assert "match a:\n    case _:\n        g()" in texts(source)
    assert all("case _" in text for text in texts(source))


def test_a_query_is_changed_where_it_decides() -> None:
    """A condition that no test needs would stay in a query for ever, or go unnoticed when it is lost."""
    changed = {text for _, text in sql_mutants("SELECT a FROM t WHERE b = ? AND c <= ? ORDER BY d DESC LIMIT ?")}
    assert changed == {
        "SELECT a FROM t WHERE b <> ? AND c <= ? ORDER BY d DESC LIMIT ?",
        "SELECT a FROM t WHERE b = ? AND c < ? ORDER BY d DESC LIMIT ?",
        "SELECT a FROM t WHERE b = ? OR c <= ? ORDER BY d DESC LIMIT ?",
        "SELECT a FROM t WHERE b = ? AND c <= ? ORDER BY d ASC LIMIT ?",
        "SELECT a FROM t WHERE b = ? AND c <= ? LIMIT ?",
        "SELECT a FROM t WHERE b = ? AND c <= ? ORDER BY d DESC LIMIT ? + 1",
    }


def test_text_that_is_no_query_is_changed_as_text() -> None:
    """Words with an `and` in them would be taken for SQL."""
    assert list(sql_mutants("this and that")) == []
