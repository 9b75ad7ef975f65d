"""Possible faults of a module: small changes of one line, found in its syntax tree."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

SIGNS = {ast.Add: b"+", ast.Sub: b"-"}
TERMS = SIGNS | {ast.Mult: b"*", ast.Div: b"/"}
ORDERED = {
    ast.Sub: b"-",
    ast.Div: b"/",
    ast.FloorDiv: b"//",
    ast.Mod: b"%",
    ast.Pow: b"**",
    ast.MatMult: b"@",
}
BOUNDS = {
    ast.Lt: (b"<", b"<="),
    ast.LtE: (b"<=", b"<"),
    ast.Gt: (b">", b">="),
    ast.GtE: (b">=", b">"),
}
NEGATED = {
    ast.Lt: (b"<", b">="),
    ast.LtE: (b"<=", b">"),
    ast.Gt: (b">", b"<="),
    ast.GtE: (b">=", b"<"),
    ast.Eq: (b"==", b"!="),
    ast.NotEq: (b"!=", b"=="),
    ast.In: (b"in", b"not in"),
    ast.NotIn: (b"not in", b"in"),
    ast.Is: (b"is", b"is not"),
    ast.IsNot: (b"is not", b"is"),
}
LISTS = ast.List, ast.Tuple, ast.ListComp
LOOSE = ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.NamedExpr
LARGE = 100  # a constant from which on one more or less is no fault; it is doubled or halved
AXIS = re.compile(r"(|n|.*_)([xyz])")
AXIS_CALLS = {"moveaxis", "swapaxes", "transpose"}

# Calls whose arguments are messages or types, and arguments that affect only text, pictures or the
# size of a cache
MESSAGES = re.compile(r"(\w+(Error|Warning)|Finding|warn|echo|print|say|get_close_matches)")
LAYOUT_CALLS = {"center", "fill", "ljust", "rjust", "shorten", "wrap", "TypeVar", "NewType", "cast"}
LAYOUT = re.compile(
    r"alpha|arrowsize|capsize|description|digest_size|dpi|examples|figsize|font_?size|help|indent"
    r"|labelsize|linewidths?|lw|markersize|maxsize|mew|ms|nbins|ncols|pad|shrink|stacklevel"
    r"|title|zorder"
)
LAYOUT_NAMES = {"WIDTH", "INDENT", "FONT", "FIGSIZE", "DPI", "__all__", "__slots__"}


class Change(NamedTuple):
    """Replaces bytes `start` to `end` of a line, counted from 1, by `text`."""

    line: int
    start: int
    end: int
    text: bytes
    kind: str


def changes(source: str) -> list[Change]:
    """All changes of a module, in order of their place; some may not compile."""
    return sorted(set(_Changes(source).found()))


class _Changes:
    def __init__(self, source: str):
        self.lines = [line.encode() for line in source.splitlines(keepends=True)]
        self.tree = ast.parse(source)
        names = [n for n in ast.walk(self.tree) if isinstance(n, ast.Name | ast.Attribute)]
        self.names = {n.id if isinstance(n, ast.Name) else n.attr for n in names}

    def found(self) -> Iterator[Change]:
        """The changes of all nodes that may hold a fault."""
        for node in _walk(self.tree):
            match node:
                case ast.BinOp():
                    yield from self._operation(node)
                case ast.AugAssign(op=ast.Add() | ast.Sub()):
                    yield from self._augmented(node)
                case ast.BoolOp():
                    yield from self._conditions(node)
                case ast.Compare(ops=[_]):
                    yield from self._comparison(node)
                case ast.UnaryOp(op=ast.USub() | ast.Not()):
                    yield from self._unary(node)
                case ast.Constant() | ast.Name() | ast.Attribute():
                    yield from self._names_and_constants(node)
                case ast.Call():
                    yield from self._call(node)
                case ast.Subscript():
                    yield from self._subscript(node)
                case ast.If() | ast.IfExp() | ast.While():
                    yield from self._test(node.test)
                case ast.comprehension():
                    for test in node.ifs:
                        yield from self._test(test)

    # ------------------------------------------------------------------ places

    def _between(self, left: ast.expr, right: ast.expr, token: bytes) -> tuple[int, int] | None:
        """(line, column) of an operator between two nodes, None if it is not found."""
        for line in range(left.end_lineno, right.lineno + 1):
            start = left.end_col_offset if line == left.end_lineno else 0
            end = right.col_offset if line == right.lineno else len(self.lines[line - 1])
            code = self.lines[line - 1][start:end].partition(b"#")[0]
            if (at := code.find(token)) >= 0:
                return line, start + at
        return None

    def _text(self, node: ast.expr) -> bytes:
        return self.lines[node.lineno - 1][node.col_offset : node.end_col_offset]

    def _cut(self, line: int, start: int, end: int, kind: str) -> Change:
        """Removes a part of a line with the blanks behind it, or at an end with those before it."""
        code = self.lines[line - 1]
        rest = code[end:].lstrip(b" ")
        if rest[:1] in b")]}:,\r\n":
            start = len(code[:start].rstrip(b" "))
        return Change(line, start, len(code) - len(rest), b"", kind)

    def _atom(self, node: ast.expr, text: bytes) -> bytes:
        """The text of a node, in parentheses unless it needs none or has them already."""
        bare = isinstance(node, LOOSE) and text == self._text(node)
        return b"(%s)" % text if bare else text

    def _replace(self, node: ast.expr, text: bytes, kind: str) -> Iterator[Change]:
        if node.lineno == node.end_lineno:
            yield Change(node.lineno, node.col_offset, node.end_col_offset, text, kind)

    # ------------------------------------------------------------------ kinds of faults

    def _operation(self, node: ast.BinOp) -> Iterator[Change]:
        token = (TERMS | ORDERED).get(type(node.op))
        at = token and self._between(node.left, node.right, token)
        if not at or _is_text(node):
            return
        line, start = at
        end = start + len(token)
        if type(node.op) in SIGNS and not (_is_list(node.left) or _is_list(node.right)):
            yield Change(line, start, end, b"-" if token == b"+" else b"+", "sign")
        if type(node.op) in TERMS:
            if line == node.end_lineno:
                yield self._cut(line, start, node.end_col_offset, "dropped term")
            if line == node.lineno and token != b"/":
                kept = start if token == b"-" else end
                yield self._cut(line, node.col_offset, kept, "dropped term")
        if type(node.op) in ORDERED and node.lineno == node.end_lineno:
            code = self.lines[line - 1]
            left = self._atom(node.left, code[node.col_offset : start].strip())
            right = self._atom(node.right, code[end : node.end_col_offset].strip())
            yield from self._replace(node, b"%s %s %s" % (right, token, left), "swapped operands")

    def _augmented(self, node: ast.AugAssign) -> Iterator[Change]:
        token = SIGNS[type(node.op)] + b"="
        if not _is_text(node.value) and not _is_list(node.value):
            line, start = self._between(node.target, node.value, token)
            other = b"-=" if token == b"+=" else b"+="
            yield Change(line, start, start + 2, other, "sign")

    def _conditions(self, node: ast.BoolOp) -> Iterator[Change]:
        token = b"and" if isinstance(node.op, ast.And) else b"or"
        places = [self._between(left, right, token) for left, right in pairwise(node.values)]
        if None in places:
            return
        (line, start), last = places[0], places[-1]
        if line == node.lineno:
            yield self._cut(line, node.col_offset, start + len(token), "dropped condition")
        for (line, start), (next_line, end) in pairwise(places):
            if line == next_line:
                yield Change(line, start, end, b"", "dropped condition")
        if last[0] == node.end_lineno:
            yield self._cut(*last, node.end_col_offset, "dropped condition")

    def _comparison(self, node: ast.Compare) -> Iterator[Change]:
        for table, kind in ((BOUNDS, "bound"), (NEGATED, "negated condition")):
            old, new = table.get(type(node.ops[0]), (b"", b""))
            at = old and self._between(node.left, node.comparators[0], old)
            if at:
                yield Change(at[0], at[1], at[1] + len(old), new, kind)

    def _unary(self, node: ast.UnaryOp) -> Iterator[Change]:
        if isinstance(node.op, ast.Not):
            yield self._cut(node.lineno, node.col_offset, node.col_offset + 3, "negated condition")
        else:
            yield Change(node.lineno, node.col_offset, node.col_offset + 1, b"", "sign")

    def _test(self, node: ast.expr) -> Iterator[Change]:
        if not isinstance(node, ast.Compare | ast.UnaryOp):
            yield from self._replace(node, b"not (%s)" % self._text(node), "negated condition")

    def _names_and_constants(self, node: ast.expr) -> Iterator[Change]:
        match node:
            case ast.Constant(value=bool()):
                return
            case ast.Constant(value=int() | float() as value):
                half = value // 2 if isinstance(value, int) else value / 2
                small = abs(value) < LARGE
                for other in (value + 1, value - 1) if small else (value * 2, half):
                    yield from self._replace(node, repr(other).encode(), "constant")
            case ast.Constant(value=str() as value):
                for other in _other_axes(value):
                    text = self._text(node).replace(value.encode(), other.encode())
                    yield from self._replace(node, text, "axis")
            case ast.Name(id=name) | ast.Attribute(attr=name):
                if isinstance(node.ctx, ast.Load):
                    for other in self.names.intersection(_other_axes(name)):
                        text = self._text(node)[: -len(name.encode())] + other.encode()
                        yield from self._replace(node, text, "axis")

    def _call(self, node: ast.Call) -> Iterator[Change]:
        name = _called(node)
        if name == "range" and node.args:
            yield from self._bound(node.args[min(1, len(node.args) - 1)])
        axes = [k.value for k in node.keywords if k.arg == "axis"]
        axes += node.args if name in AXIS_CALLS else []
        for axis in axes:
            yield from self._axis(axis)

    def _subscript(self, node: ast.Subscript) -> Iterator[Change]:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:
            if isinstance(part, ast.Slice):
                for bound in filter(None, (part.lower, part.upper)):
                    yield from self._bound(bound)
            else:
                yield from self._axis(part)

    def _bound(self, node: ast.expr) -> Iterator[Change]:
        """A bound of a range or slice that is not a constant: one more or less."""
        if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.BinOp):
            for more in (b" + 1", b" - 1"):
                yield Change(node.end_lineno, *2 * (node.end_col_offset,), more, "bound")

    def _axis(self, node: ast.expr) -> Iterator[Change]:
        """An index that may be an axis: another one."""
        if isinstance(node, ast.Constant) and node.value in {0, 1, 2}:
            for more in (1, 2):
                yield from self._replace(node, b"%d" % ((node.value + more) % 3), "axis")


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes except messages, annotations, docstrings, layout of text and names of types."""
    yield node
    for name, value in ast.iter_fields(node):
        if name not in {"annotation", "returns", "type_comment"}:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _is_skipped(child):
                    yield from _walk(child)


def _is_skipped(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Call():
            name = _called(node)
            return name in LAYOUT_CALLS or bool(MESSAGES.fullmatch(name))
        case ast.keyword(arg=name):
            return bool(LAYOUT.fullmatch(name or ""))
        case ast.IfExp():
            return any(map(_is_sentence, (node.body, node.orelse)))
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in LAYOUT_NAMES
        case ast.Subscript(value=ast.Name(id="Literal" | "Annotated")):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
    return False


def _is_sentence(node: ast.expr) -> bool:
    """Whether an expression is a part of a message: a string with blanks or values."""
    match node:
        case ast.Constant(value=str() as text):
            return " " in text
    return isinstance(node, ast.JoinedStr)


def _called(node: ast.Call) -> str:
    """The last part of the name of a function that is called."""
    function = node.func
    return getattr(function, "attr", None) or getattr(function, "id", "")


def _is_text(node: ast.expr) -> bool:
    """Whether an expression joins or formats strings."""
    match node:
        case ast.BinOp():
            return _is_text(node.left) or _is_text(node.right)
        case ast.IfExp():
            return _is_text(node.body) or _is_text(node.orelse)
        case ast.Constant(value=str() | bytes()) | ast.JoinedStr():
            return True
    return False


def _is_list(node: ast.expr) -> bool:
    """Whether an expression is written as a list or tuple."""
    if isinstance(node, ast.IfExp):
        return _is_list(node.body) or _is_list(node.orelse)
    return isinstance(node, LISTS)


def _other_axes(name: str) -> list[str]:
    """The names for the other axes: y and z for x, u_x and u_z for u_y."""
    found = AXIS.fullmatch(name)
    return [found[1] + axis for axis in "xyz" if axis != found[2]] if found else []
