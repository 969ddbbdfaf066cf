"""Decisions need no lock, so none can be forgotten, taken twice, or held while another is wanted (R12, R13)."""

import ast
from pathlib import Path

import pytest

import windlass

_LOCKS = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore"}


def locks_in(source: str) -> set[str]:
    names = {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    names |= {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    return names & _LOCKS


@pytest.mark.parametrize("room", ["core", "engine"])
def test_no_decision_takes_a_lock(room: str) -> None:
    """A lock would let a decision wait in its middle, and two of them could wait for each other."""
    files = sorted((Path(windlass.__file__).parent / room).glob("*.py"))
    assert len(files) > 3
    assert {path.name: found for path in files if (found := locks_in(path.read_text()))} == {}
