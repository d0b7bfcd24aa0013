"""One-line mutants of Python source: what may be changed, and the text with the change."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

__all__ = ["Mutant", "find_mutants"]

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
#: Arguments that are swapped: others are mostly of different types, which any call would notice.
PLAIN = (ast.Name, ast.Attribute, ast.Subscript)
#: Texts for people are not behaviour: errors, representations and assertions of types are left alone.
SKIPPED_FUNCTIONS = ("__repr__", "__str__")


@dataclass(frozen=True)
class Mutant:
    """A change of one place of a file.

    Args:
        line: Where it is, from 1.
        function: First line of the function around it, its decorators included; 0 for code outside of functions.
        kind: What was done.
        before: The text that is replaced.
        after: The new text.
        source: The whole file with the change.
        key: Identifies the mutant.
    """

    line: int
    function: int
    kind: str
    before: str
    after: str
    source: str
    key: str


def find_mutants(source: str) -> list[Mutant]:
    """All mutants of a file, in the order of its text.

    Args:
        source: The text.
    """
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    data, found = source.encode(), []
    for node, kind, new, function in _visit(ast.parse(source).body, 0):
        assert hasattr(node, "lineno")
        low = starts[node.lineno - 1] + node.col_offset
        high = starts[node.end_lineno - 1] + node.end_col_offset
        text = "pass" if new is None else ast.unparse(new)
        if isinstance(new, ast.expr):
            text = f"({text})"
        changed = (data[:low] + text.encode() + data[high:]).decode()
        key = hashlib.sha256(f"{node.lineno}\0{kind}\0{changed}".encode()).hexdigest()[:16]
        found.append(Mutant(node.lineno, function, kind, data[low:high].decode(), text, changed, key))
    return sorted(found, key=lambda mutant: (mutant.line, mutant.kind, mutant.after))


Change = tuple[ast.AST, str, "ast.AST | None", int]


def _visit(body: list[ast.stmt], function: int) -> Iterator[Change]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name not in SKIPPED_FUNCTIONS:
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                for default in [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
                    yield from _expressions(default, function)
                yield from _visit(node.body, first)
        elif isinstance(node, ast.ClassDef):
            yield from _visit(node.body, function)
        elif isinstance(node, (ast.Raise, ast.Import, ast.ImportFrom, ast.Assert)) or _is_text(node):
            continue
        else:
            yield from _statement(node, function)
            for name in ("body", "orelse", "finalbody"):
                yield from _visit(getattr(node, name, []), function)
            for handler in getattr(node, "handlers", []):
                yield from _visit(handler.body, function)


def _is_text(node: ast.stmt) -> bool:
    """Docstrings, ``__all__`` and blocks for type checking."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def _statement(node: ast.stmt, function: int) -> Iterator[Change]:
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    if function and (is_call or isinstance(node, (ast.AugAssign, ast.Continue, ast.Break))):
        yield node, "statement removed", None, function
    elif isinstance(node, (ast.If, ast.While)):
        yield node.test, "condition negated", ast.UnaryOp(ast.Not(), node.test), function
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "body", "orelse", "finalbody", "handlers"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _expressions(child, function)


def _expressions(root: ast.AST, function: int) -> Iterator[Change]:
    for node in ast.walk(root):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            for kind in COMPARISONS[type(node.ops[0])]:
                new = deepcopy(node)
                new.ops = [kind()]
                yield node, "comparison", new, function
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS and not isinstance(node.left, ast.JoinedStr):
            yield node, "operator", ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right), function
        elif isinstance(node, ast.BoolOp):
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, "and/or", ast.BoolOp(other, node.values), function
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub, ast.Invert)):
            yield node, "sign or negation dropped", node.operand, function
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield node, "constant", ast.Constant(not node.value), function
        elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            yield node, "constant", ast.Constant(node.value + 1), function
        elif isinstance(node, ast.Call) and len(node.args) >= 2 and all(isinstance(a, PLAIN) for a in node.args[:2]):
            new = deepcopy(node)
            new.args[:2] = new.args[1::-1]
            if ast.dump(new) != ast.dump(node):
                yield node, "arguments swapped", new, function
