"""The bounds, as a file: each name is one number."""

import ast
from collections import Counter
from pathlib import Path

from windlass import limits


def test_no_bound_is_named_twice() -> None:
    """The second would silently replace the first, and what was bounded with a reason be bounded by another's."""
    assert limits.__file__ is not None
    body = ast.parse(Path(limits.__file__).read_text()).body
    names = Counter(target.id for line in body if isinstance(line, ast.Assign) for target in line.targets)  # type: ignore[attr-defined]
    assert [name for name, count in names.items() if count > 1] == []
