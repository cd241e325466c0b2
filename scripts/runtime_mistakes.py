"""Deliberate mistakes in Python text, one at a time: a dropped check, a stale key, a wrong stride.

A mistake replaces one piece of a module's text; all other lines stay as they are. `draw` takes a
sample of the mistakes in a folder's modules, as many of each kind as of the others. A longer sample
with the same seed begins with the shorter one.
"""

from __future__ import annotations

import ast
import copy
import itertools
import re
from dataclasses import dataclass, replace
from pathlib import Path

from journal import place

# Tuples with these names tell cases apart.
KEYS = re.compile(r"key|identity|signature|layout|facts|version", re.IGNORECASE)
LOOKUPS = {"get", "setdefault", "pop"}
# Methods and functions that give the same values again, in memory or in an order of their own.
COPIES = {"clone", "contiguous", "copy", "detach", "list", "set", "sorted", "tuple"}
LIMITS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}


@dataclass(frozen=True)
class Mistake:
    """`text` in place of the bytes from `begin` to `end` of a module."""

    module: str
    function: str
    kind: str
    begin: int
    end: int
    text: str
    number: int = 0

    @property
    def name(self) -> str:
        """Its name, which holds no line: changes of other functions do not change it."""
        return f"{self.module}:{self.function}:{self.kind}:{self.number}"

    def made_in(self, source: bytes) -> bytes:
        """Return a module's text with the mistake."""
        return source[: self.begin] + self.text.encode() + source[self.end :]


class Finder(ast.NodeVisitor):
    """Finds the mistakes that can be made in a module."""

    def __init__(self, module: str, source: bytes):
        self.module, self.source = module, source
        self.starts = [0, *itertools.accumulate(map(len, source.splitlines(keepends=True)))]
        self.scope: list[str] = []
        self.found: list[Mistake] = []
        self.visit(ast.parse(source))

    def offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def add(self, kind: str, node, text: str | ast.AST, last=None) -> None:
        """Note that `text` may replace what lies from the beginning of `node` to its end."""
        if isinstance(text, ast.AST):
            text = f"({ast.unparse(text)})"
        last = last or node
        begin = self.offset(node.lineno, node.col_offset)
        end = self.offset(last.end_lineno, last.end_col_offset)
        self.found.append(Mistake(self.module, ".".join(self.scope), kind, begin, end, text))

    def changed(self, node, **fields):
        """Return a copy of a node with other fields."""
        made = copy.copy(node)
        for name, value in fields.items():
            setattr(made, name, value)
        return made

    def inside(self, node) -> None:
        """Visit a function's or class's body: annotations and decorators stay as they are."""
        self.scope.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self.scope.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = inside

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node):
        """Leave out what is in f-strings: Python 3.11 does not know where it is."""

    def visit_If(self, node):
        last = node.body[-1]
        if isinstance(last, ast.Raise):
            self.add("check dropped", node.test, "False")
        elif isinstance(last, ast.Return | ast.Continue | ast.Break):
            self.add("guard lost", node.test, "False")
        elif "TYPE_CHECKING" not in ast.unparse(node.test):
            self.add("condition inverted", node.test, ast.UnaryOp(ast.Not(), node.test))
        self.generic_visit(node)

    def visit_IfExp(self, node):
        self.add("other case lost", node, node.body)
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            self.add("not dropped", node, node.operand)
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        for left_out in node.values:
            rest = [value for value in node.values if value is not left_out]
            whole = self.changed(node, values=rest) if len(rest) > 1 else rest[0]
            self.add("operand dropped", node, whole)
        self.generic_visit(node)

    def visit_Compare(self, node):
        if type(node.ops[0]) in LIMITS:
            ops = [LIMITS[type(node.ops[0])](), *node.ops[1:]]
            self.add("limit shifted", node, self.changed(node, ops=ops))
        sides = node.left, node.comparators[0]
        if all(isinstance(side, ast.Tuple) for side in sides):
            for index in range(min(len(side.elts) for side in sides)):
                left, right = (self.without(side, index) for side in sides)
                self.add("key part lost", node, self.changed(node, left=left, comparators=[right]))
        self.generic_visit(node)

    def without(self, node, index: int):
        """Return a tuple without one of its elements."""
        return self.changed(node, elts=[*node.elts[:index], *node.elts[index + 1 :]])

    def keys(self, value) -> None:
        """Note the mistakes in a tuple that tells cases apart."""
        if isinstance(value, ast.Tuple) and len(value.elts) > 1:
            for index in range(len(value.elts)):
                self.add("key part lost", value, self.without(value, index))

    def visit_Assign(self, node):
        if any(KEYS.search(ast.unparse(target)) for target in node.targets):
            self.keys(node.value)
        self.visit(node.value)

    def visit_Return(self, node):
        if self.scope and KEYS.search(self.scope[-1]):
            self.keys(node.value)
        self.generic_visit(node)

    def visit_Call(self, node):
        callee = node.func
        name = getattr(callee, "attr", getattr(callee, "id", ""))
        if name in LOOKUPS and isinstance(callee, ast.Attribute) and node.args:
            self.keys(node.args[0])
        if name in COPIES and not node.keywords:
            if isinstance(callee, ast.Attribute) and not node.args:
                self.add("alias in place of a copy", node, callee.value)
            elif isinstance(callee, ast.Name) and len(node.args) == 1:
                self.add("alias in place of a copy", node, node.args[0])
        self.generic_visit(node)

    def visit_keyword(self, node):
        # What is zipped strictly has one length unless something else is wrong.
        is_flag = isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool)
        if is_flag and node.arg != "strict":
            self.add("flag flipped", node.value, str(not node.value.value))
        self.generic_visit(node)

    def visit_Subscript(self, node):
        if isinstance(node.ctx, ast.Load):
            index = node.slice
            if isinstance(index, ast.Slice):
                for part in ("lower", "upper"):
                    if getattr(index, part) is not None:
                        other = self.changed(index, **{part: None})
                        self.add("other elements", node, self.changed(node, slice=other))
            elif re.fullmatch(r"-?\d+", text := ast.unparse(index)):
                other = ast.Constant(int(text) + 1 if text in ("0", "-1") else int(text) - 1)
                self.add("other index", node, self.changed(node, slice=other))
        self.generic_visit(node)

    def visit_BinOp(self, node):
        if isinstance(node.op, ast.Mult | ast.FloorDiv):
            self.add("stride lost", node, node.left)
        elif isinstance(node.op, ast.Add | ast.Sub) and ast.unparse(node.right) == "1":
            self.add("off by one", node, node.left)
        self.generic_visit(node)

    def visit_For(self, node):
        self.add("first left out", node.iter, f"list({ast.unparse(node.iter)})[1:]")
        self.generic_visit(node)

    def visit_comprehension(self, node):
        for condition in node.ifs:
            self.add("filter lost", condition, "True")
        self.generic_visit(node)

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Call):
            self.add("call dropped", node, "pass")
        self.generic_visit(node)

    def visit_With(self, node):
        if all(item.optional_vars is None for item in node.items):
            # From the word itself to the colon's place.
            self.add("context lost", node, "if True", node.items[-1].context_expr)
        self.generic_visit(node)


def of_module(path: Path, module: str) -> list[Mistake]:
    """Return the mistakes that can be made in a module, called "room/module"."""
    counts: dict[str, int] = {}
    made = []
    for mistake in Finder(module, path.read_bytes()).found:
        counts[mistake.name] = number = counts.get(mistake.name, -1) + 1
        made.append(replace(mistake, number=number))
    return made


def is_module(text: bytes) -> bool:
    """Return whether a text is Python."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def draw(folder: Path, count: int, seed: int) -> list[Mistake]:
    """Return `count` mistakes in the modules of a folder, of each kind in turn."""
    kinds: dict[str, list[Mistake]] = {}
    for path in sorted(folder.rglob("*.py")):
        module = path.relative_to(folder).with_suffix("").as_posix()
        for mistake in of_module(path, module):
            kinds.setdefault(mistake.kind, []).append(mistake)
    for found in kinds.values():
        # By name: what is changed elsewhere in the package does not change the sample.
        found.sort(key=lambda m: place(seed, m.name))
    turns = itertools.zip_longest(*(kinds[kind] for kind in sorted(kinds)))
    drawn = (
        mistake
        for mistake in itertools.chain.from_iterable(turns)
        if mistake is not None
        and is_module(mistake.made_in((folder / f"{mistake.module}.py").read_bytes()))
    )
    return list(itertools.islice(drawn, count))
