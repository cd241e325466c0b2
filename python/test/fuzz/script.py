"""A failing program as a script that runs by itself, with nothing but Triton and PyTorch.

What failed on the CPU runs there, also where there is a GPU.
"""

from __future__ import annotations

import inspect
import re

from . import combiners
from .differences import REQUESTS
from .oracle import on_cpu
from .points import Inputs
from .precision import TYPES
from .program import LARGEST, Program

HEAD = '''"""{about}"""

import contextlib

import torch
import triton
import triton.language as tl
from triton.backends.autodiff import autodiff
from triton.language.extra import libdevice

LARGEST = {largest}
SIZES, WANTED = {sizes}, {wanted}
# Elements that no result depends on: they hold NaN.
POISON = {poison}
REQUEST = {request}


def tl_type(dtype):
    return getattr(tl, str(dtype).removeprefix("torch."))

'''

# Around inputs everything is NaN.
RUN = """

def placed(x):
    memory = bytearray(b"\\xff" * (x.numel() * x.element_size() + 8192))
    place = torch.frombuffer(memory, dtype=x.dtype, count=x.numel(), offset=4096)
    return place.copy_(x)


def gradients(values, upstream, request=REQUEST, **options):
    leaves = {n: x.requires_grad_(n in WANTED) for n, x in values.items()}
    op = autodiff(KERNEL, lambda k, *given: STUB(k, *given, **options), backward=request)
    pairs = [(y, g.to(y)) for y, g in zip(op(*leaves.values()), upstream) if y.requires_grad]
    ys, gs = zip(*((y, g.masked_fill(y.detach().isnan(), float("nan"))) for y, g in pairs))
    wanted = [leaves[n] for n in WANTED]
    found = torch.autograd.grad(ys, wanted, gs, allow_unused=True)
    return {n: torch.zeros_like(leaves[n]) if g is None else g for n, g in zip(WANTED, found)}


inputs = Inputs(SIZES, POINT)
"""

DIFFERENCES = """
values = {n: placed(x) for n, x in inputs.values.items()}
with on_cpu():
    upstream = [inputs.normal(y.shape) for y in STUB(KERNEL, *values.values())]
for name, places in POISON.items():
    values[name][places] = float("nan")


def loss(name, i, step):
    moved = {n: placed(x.detach()) for n, x in values.items()}
    moved[name][i] += step
    outputs = STUB(KERNEL, *moved.values())
    return sum((y * g)[~y.isnan()].sum() for y, g in zip(outputs, upstream))


with on_cpu():
    for name, gradient in gradients(values, upstream).items():
        for i in range(SIZES[name]):
            slope = ((loss(name, i, 1e-5) - loss(name, i, -1e-5)) / 2e-5).item()
            found = gradient[i].item()
            if not abs(slope - found) < 1e-5 * (1 + abs(slope)):
                print(f"{name}[{i}]: gradient {found:.6g}, differences {slope:.6g}")
"""

OTHER_TYPES = """
TYPES = OPTIONS_OF
OF = INPUT_TYPES
double = {n: x.to(TYPES[OF[n]]).double() for n, x in inputs.values.items()}
with on_cpu():
    outputs = STUB(KERNEL, *double.values())
    upstream = [inputs.normal(y.shape).to(TYPES[t]).double() for y, t in zip(outputs, OUTPUT_TYPES)]
    for name, places in POISON.items():
        double[name][places] = float("nan")
    truth = gradients({n: placed(x) for n, x in double.items()}, upstream)
    for name in WANTED:  # is the truth right?
        step = {n: torch.zeros_like(x) for n, x in double.items()}
        step[name] = inputs.normal(step[name].shape) * 1e-6
        ends = [
            STUB(KERNEL, *(placed(x.detach() + sign * step[n]) for n, x in double.items()))
            for sign in (1, -1)
        ]
        slope = sum(((a - b) * g).nansum() for a, b, g in zip(*ends, upstream)) / 2e-6
        found = (truth[name] * step[name] * 1e6).nansum()
        print(f"{name}, float64: differences {slope:.6g}, gradient {found:.6g}")
device = "DEVICE" if torch.cuda.is_available() else "cpu"
values = {n: x.detach().to(device, TYPES[OF[n]]) for n, x in double.items()}
with on_cpu() if device == "cpu" else contextlib.nullcontext():
    found = gradients(values, upstream, request=None, **TYPES)
for name, gradient in found.items():
    right, gradient = truth[name], gradient.double().cpu()
    print(f"{name}: off by {(gradient - right).norm() / right.norm():.3g} of its size")
    print(torch.stack([gradient, right]).T[:8])
"""


def used(text: str) -> str:
    """Return the source of the device functions that a kernel calls, by their own names."""
    parts = []
    for name in dict.fromkeys(re.findall(r"\bc\.(\w+)", text)):
        function = getattr(combiners, name)
        parts.append(inspect.getsource(function.fn))
        own = function.fn.__name__
        if own != name:
            parts.append(f"{name} = {own}\n")
    return "\n\n".join(parts)


def script(about: str, program: Program, result: dict) -> str:
    """Return a script that shows what is wrong with a program, as a result says."""
    head = HEAD.format(
        about=about.replace("\\", "/").replace('"""', "'''"),
        largest=LARGEST,
        sizes=program.inputs,
        wanted=program.wanted,
        poison=result.get("poison") or {},
        request=REQUESTS[result["point"] // 3 % len(REQUESTS)],
    )
    source = re.sub(r"\bc\.(\w+)", r"\1", program.source)
    run = RUN.replace("POINT", str(result["point"]))
    types = result.get("types")
    parts = [head, used(program.source), source, inspect.getsource(Inputs)]
    parts.append(inspect.getsource(on_cpu))
    if not types or not result["reason"].startswith(("gradient of", "output")):
        tail = run + DIFFERENCES
    else:
        tail = run + OTHER_TYPES
        tail = tail.replace("OPTIONS_OF", repr(TYPES[types].options))
        tail = tail.replace("INPUT_TYPES", repr({n: program.types[n] for n in program.inputs}))
        tail = tail.replace("OUTPUT_TYPES", repr([program.types[n] for n in program.outputs]))
        tail = tail.replace("DEVICE", result.get("device", "cpu"))
    tail = tail.replace("KERNEL", program.name).replace("STUB", f"{program.name}_stub")
    return "\n\n".join(parts) + tail
