"""The rooms of the package and who may import whom: the arrows point one way, and a test says so."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

import windlass

PACKAGE = Path(windlass.__file__).parent

# What each room may import of ours. A room that is not here has no place in the building yet: give it one.
ARROWS = {
    "limits": set(),
    "errors": set(),
    "ids": set(),
    "clock": set(),
    "logs": {"log_file", "log_queue"},
    "log_file": {"limits", "log_queue"},
    "log_queue": {"limits"},
    "wire": set(),
    "config": {"limits", "models"},  # what the names of providers mean
    "core": {"wire", "errors", "limits"},
    "journal": {"wire", "limits", "errors", "clock", "ids"},
    "engine": {"core", "journal", "wire", "errors", "ids", "limits", "clock", "config"},
    "agent": {"wire", "limits"},
    "models": {"wire", "limits"},
    "tools": {"wire", "limits"},
    "guardian": {"wire", "limits"},
    "mcp": {"wire", "limits", "errors"},
    "fleet": {"wire", "limits", "ids", "clock", "errors"},
    "server": {"engine", "wire", "errors", "ids", "limits", "clock"},
    "client": {"wire", "limits", "ids", "errors", "config"},
    "cli": {"client", "config", "limits", "ids", "log_file", "wire"},
    "__main__": {"cli"},
}
# Imported where they are used: `windlass --help` must not wait for the server to load.
LAZY_ARROWS = {"cli": {"app", "assembly", "fleet", "guardian", "journal", "models", "server", "tools", "worker_app"}}
EVERYONE = {"app", "testing", "worker_app", "assembly"}  # the composition roots know every room, and the tests' kit may
# Libraries that one room hides from all others.
HIDDEN = {"sqlite3": {"journal"}, "litestar": {"server"}, "uvicorn": {"server"}, "click": {"cli"}}
# What would let a decision wait, look at the world, or know what time it is.
IMPURE = {"asyncio", "time", "datetime", "os", "pathlib", "socket", "sqlite3", "threading", "random", "secrets", "uuid"}


def files(room: str) -> list[Path]:
    single = PACKAGE / f"{room}.py"
    return [single] if single.exists() else sorted((PACKAGE / room).rglob("*.py"))


def rooms() -> set[str]:
    names = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return names - {"__init__"}


def imports(node: ast.AST, lazy: bool = False) -> Iterator[tuple[str, bool]]:
    """Every module that is imported, and whether only where it is used (or for types alone)."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue  # most of a file, and no statement is ever in one
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        is_for_types = (
            isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"
        )
        if isinstance(child, ast.Import):
            yield from ((alias.name, lazy) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports are absolute"
            names = (
                [f"windlass.{alias.name}" for alias in child.names] if child.module == "windlass" else [child.module]
            )
            yield from ((str(name), lazy) for name in names)
        yield from imports(child, lazy or is_function or is_for_types)


@functools.cache  # a file is parsed once, not for each of these tests
def imported(room: str) -> tuple[tuple[Path, str, bool], ...]:
    return tuple((path, name, lazy) for path in files(room) for name, lazy in imports(ast.parse(path.read_text())))


def test_every_room_has_its_arrows() -> None:
    """A new room could import whatever it likes, and be imported from everywhere."""
    assert set(ARROWS) | EVERYONE == rooms()


@pytest.mark.parametrize("room", ARROWS)
def test_a_room_imports_only_what_its_arrows_allow(room: str) -> None:
    """Decisions would come to depend on HTTP or SQLite, one convenient import at a time."""
    wrong = []
    for path, name, lazy in imported(room):
        target = name.split(".")[1] if name.startswith("windlass.") else ""
        allowed = {"", room, "__version__"} | ARROWS[room] | (LAZY_ARROWS.get(room, set()) if lazy else set())
        if target not in allowed:
            wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert not wrong, f"not allowed: {', '.join(wrong)}"


@pytest.mark.parametrize("library", HIDDEN)
def test_a_library_is_known_to_its_own_room_only(library: str) -> None:
    """Exchanging it (SQLite for PostgreSQL, for one) would mean to change the whole building."""
    found = {room for room in ARROWS for _, name, _ in imported(room) if name.split(".")[0] == library}
    assert found <= HIDDEN[library]


def test_core_neither_waits_nor_looks() -> None:
    """A decision that awaits, or reads a clock, can be overtaken between looking and acting."""
    for path, name, _ in imported("core"):
        assert name.split(".")[0] not in IMPURE, f"{path.name} imports {name}"
    for path in files("core"):
        for node in ast.walk(ast.parse(path.read_text())):
            assert not isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith), path.name
