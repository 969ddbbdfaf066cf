"""What a mutant is: the same module with one small thing changed that a test ought to notice.

The changes are those of the usual mutation tools (comparisons, arithmetic, and/or, not, constants, None for a value, a
statement or an argument left out), plus arms of a `match` and words of SQL.
"""

import ast
import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.mutation.places import is_text, places
from tests.mutation.sql import sql_mutants

Change = tuple[str, ast.AST]

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
}
_TWINS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_NONE = ast.Constant(None)
_SHOWN = 70  # characters of a change: enough to know it in a report


class Mutant(NamedTuple):
    """`place` is the node's number in the order of the source, `choice` which of its changes this is."""

    file: str
    line: int
    what: str
    place: int
    choice: int

    @property
    def module(self) -> str:
        return self.file.removesuffix(".py").replace("/", ".")

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line} {self.what} [{self.place}.{self.choice}]"


def mutants_of(file: str, source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    found = []
    for place, (node, _) in enumerate(places(ast.parse(source))):
        for choice, (what, _) in enumerate(_changes(node)):
            found.append(Mutant(file, getattr(node, "lineno", 0), what, place, choice))
    return found


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """The module with that one change."""
    tree = ast.parse(source)
    node, put = list(places(tree))[mutant.place]
    put(ast.copy_location(list(_changes(node))[mutant.choice][1], node))
    return ast.fix_missing_locations(tree)


def _changes(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in _COMPARISONS:
            yield _as(node, ops=[_COMPARISONS[type(op)]()])
        case ast.BinOp(op=op) if type(op) in _ARITHMETIC:
            yield _as(node, op=_ARITHMETIC[type(op)]())
        case ast.AugAssign(op=op) if type(op) in _ARITHMETIC:
            yield _as(node, op=_ARITHMETIC[type(op)]())
            yield _show(node, ast.Assign([node.target], node.value))
        case ast.BoolOp(op=op):
            yield _as(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield _show(node, operand)
        case ast.Constant():
            yield from _constants(node)
        case ast.Call():
            yield from _calls(node)
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            yield _as(node, value=ast.Constant("") if _is_none(value) else _NONE)
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield _as(node, value=_NONE)
        case ast.Lambda(body=body) if not _is_none(body):
            yield _as(node, body=_NONE)
        case ast.Expr() | ast.Raise() | ast.Delete():
            yield _show(node, ast.Pass())
        case ast.Break():
            yield _show(node, ast.Continue())
        case ast.Continue():
            yield _show(node, ast.Break())
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if _is_plain(test):
            yield _as(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.comprehension(ifs=[test, *_]) if _is_plain(test):
            yield _as(node, ifs=[ast.UnaryOp(ast.Not(), test)])
        case ast.Match(cases=cases) if len(cases) > 1:
            for index, case in enumerate(cases):
                if not (isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None):
                    yield f"case {ast.unparse(case.pattern)} left out", _with(node, cases=_without(cases, index))


def _constants(node: ast.Constant) -> Iterator[Change]:
    match node.value:
        case bool():
            yield _show(node, ast.Constant(not node.value))
        case int() | float():
            yield _show(node, ast.Constant(node.value + 1))
        case str() if " " in node.value and (changes := list(sql_mutants(node.value))):
            for what, text in changes:
                yield f"SQL {what}", ast.Constant(text)
        case str():
            yield _show(node, ast.Constant(f"XX{node.value}"))
        case bytes():
            yield _show(node, ast.Constant(b"XX" + node.value))


def _calls(node: ast.Call) -> Iterator[Change]:
    """None for an argument, a keyword left out, and the opposite of a function that has one."""
    if isinstance(node.func, ast.Name) and node.func.id in _TWINS:
        yield _as(node, func=ast.Name(_TWINS[node.func.id], ast.Load()))
    for index, argument in enumerate(node.args):
        if not isinstance(argument, ast.Constant | ast.JoinedStr | ast.Starred | ast.Lambda | ast.GeneratorExp):
            changed = _with(node, args=[*node.args[:index], _NONE, *node.args[index + 1 :]])
            yield f"{_short(node.func)}(...): {_short(argument)} -> None", changed
    for index, keyword in enumerate(node.keywords):
        if not is_text(keyword.value):
            changed = _with(node, keywords=_without(node.keywords, index))
            yield f"{_short(node.func)}(...): {_short(keyword)} left out", changed


def _is_plain(test: ast.expr) -> bool:
    """Not one that is turned around elsewhere."""
    turned = isinstance(test, ast.BoolOp) or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))
    return not turned and not isinstance(test, ast.Compare)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _without(items: list[Any], index: int) -> list[Any]:
    return items[:index] + items[index + 1 :]


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _as(node: ast.AST, **fields: Any) -> Change:
    return _show(node, _with(node, **fields))


def _show(node: ast.AST, changed: ast.AST) -> Change:
    return f"{_short(node)} -> {_short(changed)}", changed


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
