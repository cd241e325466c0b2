"""Kernels written as TTIR text, compiled and run through the native library alone."""

import json

from triton.backends.autodiff import _native

SIZE = 16


def kernel(body: str, element: str, inputs: int) -> str:
    """A kernel that loads tiles %x0, %x1, …, and stores %y of a body.

    In a body, TILE is the type of these, MATRIX one of 4×4, and ELEMENT that of an element. Tiles
    are at the POINTERS %p0, %p1, …; INTEGERS and CONDITIONS are as long, and so are the numbers %r.
    """
    tile, pointers = f"tensor<{SIZE}x{element}>", f"tensor<{SIZE}x!tt.ptr<{element}>>"
    arguments = ", ".join(f"%arg{i}: !tt.ptr<{element}>" for i in range(inputs + 1))
    lines = [
        f"%r = tt.make_range {{start = 0 : i32, end = {SIZE} : i32}} : tensor<{SIZE}xi32>",
    ]
    for i in range(inputs + 1):
        lines.append(f"%s{i} = tt.splat %arg{i} : !tt.ptr<{element}> -> {pointers}")
        lines.append(f"%p{i} = tt.addptr %s{i}, %r : {pointers}, tensor<{SIZE}xi32>")
        if i < inputs:
            lines.append(f"%x{i} = tt.load %p{i} : {pointers}")
    types = {
        "TILE": tile,
        "POINTERS": pointers,
        "INTEGERS": f"tensor<{SIZE}xi32>",
        "CONDITIONS": f"tensor<{SIZE}xi1>",
        "MATRIX": f"tensor<4x4x{element}>",
        "ELEMENT": element,
    }
    for name, type in types.items():
        body = body.replace(name, type)
    lines += body.split("\n")
    lines.append(f"tt.store %p{inputs}, %y : {pointers}")
    text = "\n    ".join(lines)
    return f"module {{\n  tt.func public @k({arguments}) {{\n    {text}\n    tt.return\n  }}\n}}"


def count_inputs(body: str) -> int:
    """Return how many tiles a body uses."""
    return 1 + max(i for i in range(4) if f"%x{i}" in body)


def launch(ttir: str, arguments) -> None:
    """Compile a kernel and run one program of it."""
    code, description = _native.compile_cpu(ttir, "{}")
    _native.load_cpu(code, json.loads(description)["symbol"]).launch(1, 1, 1, tuple(arguments))
