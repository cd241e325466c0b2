"""What Triton compiles a kernel's TTIR to, and what it compiles its source to that was printed."""

import contextlib
import importlib.util
import re
import tempfile
from pathlib import Path

import hopper
from triton._C.libtriton import ir
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend

_TYPES = {
    **{f"i{bits}": f"i{bits}" for bits in (1, 8, 16, 32, 64)},
    **{"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64"},
    **{"f8E5M2": "fp8e5", "f8E4M3FN": "fp8e4nv"},
}
_POINTER = re.compile(r"!tt\.ptr<(\w+)>")
_DESCRIPTOR = re.compile(r"!tt\.tensordesc<(?:tensor<)?((?:\d+x)+)(\w+)>")


def made_ttir(text: str) -> str:
    """Return TTIR after the passes that Triton runs on what its frontend makes, for Hopper."""
    backend = make_backend(hopper.TARGET)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    with tempfile.NamedTemporaryFile("w", suffix=".ttir") as file:
        file.write(text)
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    module.context = context
    return str(backend.make_ttir(module, {}, backend.parse_options({}), hopper.TARGET.arch))


def _type(text: str) -> str:
    """A type of TTIR as Triton's signatures have it."""
    if pointer := _POINTER.match(text):
        return f"*{_TYPES[pointer[1]]}"
    if descriptor := _DESCRIPTOR.match(text):
        shape = descriptor[1].strip("x").replace("x", ", ")
        return f"tensordesc<{_TYPES[descriptor[2]]}[{shape}]>"
    return _TYPES[text]


def _signature(ttir: str):
    """The types of a kernel's arguments, and what they are multiples of, as Triton has them."""
    arguments = re.search(r"tt\.func public @\w+\((.*)", ttir)[1]
    listed = re.findall(r"%[\w.$-]+: (!tt\.\w+<[^ ,)]*>|\w+)((?: \{[^}]*\})?)", arguments)
    found = []
    while listed:
        found.append(listed.pop(0))
        if descriptor := _DESCRIPTOR.match(found[-1][0]):
            # Behind it come the tensor's shape and strides.
            del listed[: 2 * descriptor[1].count("x")]
    types = [_type(type_) for type_, _ in found]
    multiples = {
        (place,): [["tt.divisibility", int(divisor[1])]]
        for place, (_, attributes) in enumerate(found)
        if (divisor := re.search(r"tt.divisibility = (\d+)", attributes))
    }
    return types, multiples


def ptx_of_text(ttir: str, **options) -> list[str]:
    """Return the PTX of TTIR, without what only debuggers read."""
    return _lines(hopper.compiled_text(ttir, **options).asm["ptx"])


@contextlib.contextmanager
def as_module(source: str):
    """The module that printed source is, while its file is there: Triton reads that."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "printed_kernel.py")
        file.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module


def ptx_of_python(source: str, ttir: str, **options) -> list[str]:
    """Return the PTX of printed source, launched with arguments like those of the TTIR."""
    name = re.search(r"tt\.func public @(\w+)", ttir)[1]
    with as_module(source) as module:
        kernel = getattr(module, name)
        types, multiples = _signature(ttir)
        signature = dict(zip(kernel.arg_names, types, strict=True))
        return _lines(hopper.compiled(ASTSource(kernel, signature, {}, multiples), **options))


def _lines(ptx: str) -> list[str]:
    """Return instructions, with labels numbered as they come, and those alone that are used.

    Functions that are called are numbered, too: Triton names them for their module.
    """
    for number, function in enumerate(re.findall(r"\.func +(?:\([^)]*\) *)?([\w$]+)", ptx)):
        ptx = re.sub(rf"{re.escape(function)}(?![a-zA-Z$])", f"function{number}", ptx)
    lines = (re.sub(r"//.*", "", line).strip() for line in ptx.splitlines())
    dropped = (".loc", ".file", ".section", ".b8", ".b32", ".b64", ".version", ".target", "{", "}")
    lines = [line for line in lines if line and not line.startswith(dropped)]
    jumps = set(re.findall(r"\$\w+", "\n".join(li for li in lines if not li.endswith(":"))))
    lines = [line for line in lines if not line.endswith(":") or line[:-1] in jumps]
    numbers: dict[str, str] = {}
    return [
        re.sub(r"\$\w+", lambda label: numbers.setdefault(label[0], f"$L{len(numbers)}"), line)
        for line in lines
    ]
