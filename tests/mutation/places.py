"""Where a module may be changed. Left alone is what cannot change behaviour: docstrings, annotations, texts of errors,
`__repr__`, `__slots__`, protocols, and what a class is made of.
"""

import ast
from collections.abc import Callable, Iterator

Put = Callable[[ast.AST], None]


def places(node: ast.AST, in_error: bool = False) -> Iterator[tuple[ast.AST, Put]]:
    """Each node that may be changed, parents first, with what puts another in its stead."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params", "pattern") or _is_fixed(node, field):
            continue
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            inside = in_error or isinstance(child, ast.Raise) or _is_error(child)
            if not isinstance(child, ast.AST) or _is_label(child) or (inside and is_text(child)):
                continue

            def put(new: ast.AST, field: str = field, index: int = index, value: object = value) -> None:
                if isinstance(value, list):
                    value[index] = new
                else:
                    setattr(node, field, new)

            yield child, put
            yield from places(child, inside)


def _is_fixed(node: ast.AST, field: str) -> bool:
    """What a class is made of (`frozen=True`), and an assert's words."""
    return (isinstance(node, ast.ClassDef) and field in ("bases", "keywords")) or (
        isinstance(node, ast.Assert) and field == "msg"
    )


def _is_error(node: object) -> bool:
    """An error that is made and not raised on the spot."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("Poisoned", "Error"))


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_label(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom():
            return True  # a docstring, or `...`
        case ast.FunctionDef(name="__repr__") | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.ClassDef(bases=[ast.Name(id="Protocol")]):
            return True
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            is_type = isinstance(value, ast.Subscript | ast.BinOp) and name[0].isupper() and not name.isupper()
            return name == "__slots__" or is_type or (isinstance(value, ast.Call) and "TypeVar" in ast.unparse(value))
    return False
