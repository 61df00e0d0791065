"""Find the places of a module that can be changed, and change one of them."""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.Mod: ast.Div,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
# What does not change a result: types, decorators, the words of errors and warnings.
_SKIPPED = ("annotation", "returns", "decorator_list", "type_params")
# Arguments of drawings that change their looks alone.
_LOOKS = (
    "alpha", "linewidth", "linewidths", "lw", "zorder", "fontsize", "size", "s", "markersize", "figsize", "pad",
    "labelpad", "borderpad", "handlelength", "edgecolor", "markeredgewidth", "frameon", "dpi", "ncols", "linestyle",
    "width",
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A node that can be changed: its number in the walk, its line, its statement's line, and what it becomes.

    `statement` is 0 for what runs when the module is imported.
    """

    number: int
    line: int
    statement: int
    change: str


def places(source: str) -> list[Place]:
    """Return the places of a module in their order."""
    found = []
    for number, (node, statement) in enumerate(_walk(ast.parse(source))):
        changed = copy.deepcopy(node)
        if _change(changed):
            change = _words(ast.unparse(node), ast.unparse(changed))
            found.append(Place(number, node.lineno, statement, change))
    return found


def mutant(source: str, number: int) -> str:
    """Return the module with the change at a place."""
    tree = ast.parse(source)
    _change(list(_walk(tree))[number][0])
    return ast.unparse(tree)


def instrumented(source: str, module: str) -> str:
    """Return the module with a mark at each statement of a function, which says that it was reached."""
    tree = ast.parse(source)
    for node in list(ast.walk(tree)):
        if isinstance(node, ast.FunctionDef):
            _mark(node, module)
    return ast.unparse(ast.fix_missing_locations(tree))


def _mark(function: ast.FunctionDef, module: str) -> None:
    waiting: list[ast.AST] = [function]
    while waiting:
        node = waiting.pop()
        for field in ("body", "orelse", "finalbody", "handlers"):
            block = getattr(node, field, None)
            if not isinstance(block, list):
                continue
            inside = [one for one in block if not isinstance(one, ast.FunctionDef | ast.ClassDef)]
            waiting += inside
            if field == "handlers":
                continue
            marked = []
            for one in block:
                if not _is_docstring(one):
                    marked += ast.parse(f"__import__('builtins').reached.add(({module!r}, {one.lineno}))").body
                marked.append(one)
            setattr(node, field, marked)


def _walk(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, int]]:
    """Yield the nodes that may be changed, each with the line of its statement inside of a function."""
    waiting: list[tuple[ast.AST, int, bool]] = [(tree, 0, False)]
    while waiting:
        node, statement, inside = waiting.pop()
        if isinstance(node, ast.Raise | ast.JoinedStr) or _is_docstring(node) or _is_warning(node):
            continue
        if inside and isinstance(node, ast.stmt):
            statement = node.lineno
        if isinstance(node, ast.expr | ast.Return | ast.AugAssign | ast.If | ast.While):
            yield node, statement
        inside = inside or isinstance(node, ast.FunctionDef)
        if isinstance(node, ast.keyword) and node.arg in _LOOKS:
            continue
        children = []
        for field, value in ast.iter_fields(node):
            if field not in _SKIPPED:
                children += [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, ast.AST)]
        if isinstance(node, ast.AnnAssign) and node.value is None:
            children = []
        waiting += [(child, statement, inside) for child in reversed(children)]


def _change(node: ast.AST) -> bool:
    """Change a node in place; False: there is nothing to change."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        node.ops[0] = _COMPARED[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _COMPUTED:
        if isinstance(node, ast.BinOp) and _is_text(node):
            return False
        node.op = _COMPUTED[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        node.op = ast.UAdd()
        if not isinstance(node.operand, ast.Constant):  # ~x and not x become x
            node.__class__, node.__dict__ = node.operand.__class__, copy.copy(node.operand.__dict__)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        node.value = node.value + 1
    elif isinstance(node, ast.Return) and not (node.value is None or _is_constant(node.value, None)):
        node.value = ast.Constant(None)
    elif isinstance(node, ast.If | ast.While) and not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    else:
        return False
    return True


def _is_constant(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_warning(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("warnings.warn", "cast")


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(one, ast.JoinedStr) or isinstance(getattr(one, "value", None), str) for one in sides)


def _words(before: str, after: str) -> str:
    """Return a change in one line, with the first place where the two differ."""
    same = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    first = max(0, same - 40)
    both = (("…" if first else "") + " ".join(text[first : first + 80].split()) for text in (before, after))
    return " → ".join(f"`{text}`" for text in both)
