"""Debugging of kernels that are decorated for the interpreter, which runs them uncompiled.

The interpreter runs a kernel as Python, so the kernel may call any function: one that prints under
a condition, or that stops in a debugger. Such a call has to be a statement by itself. To
differentiate the kernel, it is compiled without these statements. Before a launch, the interpreter
runs the kernel with them, on copies of its tensors.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import types
from collections.abc import Iterator

import torch
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from ..errors import AutodiffError

_NOTHING = object()
_CALLABLE = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
# Python's own functions that Triton does not have, or that mean something else there.
_BUILTINS = (builtins.print, builtins.breakpoint, builtins.input)
# Functions of Triton that write to memory: a call that reaches one is more than debugging.
_WRITES = {"store", "store_tensor_descriptor", "scatter"}


def _lookup(function, name: str):
    """Return the value of a global or captured name of a function."""
    captured = inspect.getclosurevars(function).nonlocals
    for scope in (captured, function.__globals__, vars(builtins)):
        if name in scope:
            return scope[name]
    return _NOTHING


def _is_tritons(value) -> bool:
    name = value.__name__ if isinstance(value, types.ModuleType) else ""
    name = name or getattr(value, "__module__", None) or ""
    return name.split(".")[0] in ("triton", "triton_autodiff")


def _named(node, function, local: set[str]):
    """Return the value of an expression that is a name, or an attribute of one."""
    if isinstance(node, ast.Name):
        return _NOTHING if node.id in local else _lookup(function, node.id)
    if isinstance(node, ast.Attribute):
        owner = _named(node.value, function, local)
        known = owner is not _NOTHING and not _is_tritons(owner)
        return getattr(owner, node.attr, _NOTHING) if known else _NOTHING
    return _NOTHING


def _is_python(value) -> bool:
    """Whether a value is a function that only the interpreter can call."""
    if hasattr(value, "__triton_builtin__") or _is_tritons(value):
        return False
    if isinstance(value, types.BuiltinFunctionType) and value.__module__ == "builtins":
        return value in _BUILTINS
    return isinstance(value, _CALLABLE)


def _codes(code) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _writes(function, seen: set) -> bool:
    """Whether a function, or one that it calls, may write to memory through Triton."""
    function = getattr(function, "__func__", function)
    function = function.fn if isinstance(function, InterpretedFunction) else function
    if not isinstance(function, types.FunctionType) or function in seen:
        return False
    seen.add(function)
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    if names & _WRITES or any(name.startswith("atomic_") for name in names):
        return True
    values = [_lookup(function, name) for name in {*names, *function.__code__.co_freevars}]
    modules = [v for v in values if isinstance(v, types.ModuleType) and not _is_tritons(v)]
    values += [getattr(module, name, None) for module in modules for name in names]
    return any(_writes(value, seen) for value in values)


class _Statements(ast.NodeVisitor):
    """Collects a kernel's calls: debugging statements, and Triton functions."""

    def __init__(self, function, tree):
        self.function = function
        self.found: list[ast.Expr] = []
        self.callees: list = []
        names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
        self._local = {n.id for n in names if isinstance(n.ctx, ast.Store)}
        self._local |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
        self.visit(tree)

    def visit_Expr(self, node):
        """Note a statement that is a call of a Python function."""
        call = node.value
        value = _named(call.func, self.function, self._local) if _is_call(call) else _NOTHING
        if value is _NOTHING or not _is_python(value):
            self.generic_visit(node)
        elif _writes(value, set()):
            self._refuse(value, "which writes to memory")
        else:
            self.found.append(node)

    def visit_Name(self, node):
        """Note a Triton function; raise an error for a Python function whose result is used."""
        value = _named(node, self.function, self._local)
        if isinstance(value, InterpretedFunction):
            self.callees.append(value)
        elif isinstance(value, types.FunctionType) and _is_python(value):
            self._refuse(value, "whose result it uses")
        else:
            self.generic_visit(node)

    visit_Attribute = visit_Name

    def _refuse(self, value, why: str):
        name = self.function.__name__
        raise AutodiffError(
            f"{name!r} calls the Python function {value.__name__!r}, {why}: the interpreter can do "
            "that, but a kernel that is differentiated is compiled. Decorate it with @triton.jit"
        )


def _is_call(node) -> bool:
    return isinstance(node, ast.Call)


def _without(text: str, statements) -> str:
    """Replace statements in a text by `pass`; all line numbers stay the same."""
    lines = [line.encode() for line in text.splitlines()]
    for node in reversed(statements):
        first, last = node.lineno - 1, node.end_lineno - 1
        rest = lines[last][node.end_col_offset :]
        lines[first] = lines[first][: node.col_offset] + b"pass" + rest
        lines[first + 1 : last + 1] = [b""] * (last - first)
    return b"\n".join(lines).decode() + "\n"


def leave_out(twin: JITFunction, twin_of, seen=()) -> bool:
    """Remove debugging statements from a function that is to be compiled, and from those it calls.

    Returns whether there were any. `twin_of` maps an interpreted function to its compiled form.
    """
    if twin.fn in seen or _is_tritons(twin.fn):
        return False
    known = getattr(twin, "_autodiff_debugging", None)
    if known is None:
        statements = _Statements(twin.fn, twin.parse())
        if statements.found:
            twin._unsafe_update_src(_without(twin.src, statements.found))
        known = twin._autodiff_debugging = bool(statements.found), statements.callees
    own, callees = known
    below = [leave_out(twin_of(callee), twin_of, (*seen, twin.fn)) for callee in callees]
    return own or any(below)


def _copied(value, storages: dict):
    """Copy an argument's memory; arguments that share memory share the copy."""
    if isinstance(value, torch.Tensor):
        storage = value.untyped_storage()
        own = storages.get(storage.data_ptr())
        if own is None:
            own = storages[storage.data_ptr()] = storage.clone()
        place = (value.storage_offset(), value.size(), value.stride())
        return value.detach().new_empty(0).set_(own, *place)
    if isinstance(value, tuple):
        items = [_copied(item, storages) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(getattr(value, "base", None), torch.Tensor):
        value = copy.copy(value)
        value.base = _copied(value.base, storages)
    return value


def rehearse(interpret, args, kwargs) -> None:
    """Let the interpreter run a launch on copies of its tensors."""
    storages: dict = {}
    args = [_copied(value, storages) for value in args]
    kwargs = {name: _copied(value, storages) for name, value in kwargs.items()}
    with torch.no_grad():
        interpret(*args, **kwargs)
