"""Times of tangents and second derivatives, beside those of values and first ones.

    python benchmarks/derivatives.py [--quick] [--only TEXT]

For each case: microseconds of the GPU for a forward, a launch with tangents of all inputs, a
backward, and a double backward by all inputs and by the upstream gradients; then what plain PyTorch
takes for tangents and for a double backward, in the same precision. `check(op, inputs, order=2,
mode="forward")` says whether they are right, on smaller inputs.
"""

from __future__ import annotations

import argparse

import torch
from cases import all_cases
from timing import gpu_time
from torch.autograd import forward_ad
from triton.backends.autodiff import autodiff


def listed(value) -> list:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def microseconds(function) -> float:
    return gpu_time(function, quick=True) or float("nan")


def measured(function, inputs) -> tuple[float, float, float, float, int]:
    """Return microseconds of forward, tangents, backward and double backward, and bytes of the
    last.
    """
    leaves = [x for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]
    tangents = {id(x): torch.randn_like(x) for x in leaves}

    def forward():
        with torch.no_grad():
            return function(*inputs)

    def push():
        with torch.no_grad(), forward_ad.dual_level():
            return function(
                *(
                    forward_ad.make_dual(x, tangents[id(x)]) if id(x) in tangents else x
                    for x in inputs
                )
            )

    outputs = [y for y in listed(function(*inputs)) if y.requires_grad]
    upstream = [torch.randn_like(y, requires_grad=True) for y in outputs]
    gradients = torch.autograd.grad(outputs, leaves, upstream, create_graph=True)
    along = [torch.randn_like(g) for g in gradients]

    def backward():
        return torch.autograd.grad(outputs, leaves, upstream, retain_graph=True)

    def double():
        return torch.autograd.grad(
            gradients, (*leaves, *upstream), along, retain_graph=True, allow_unused=True
        )

    times = [microseconds(f) for f in (forward, push, backward, double)]
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    double()
    return *times, torch.cuda.max_memory_allocated() - before


def theirs(case) -> list[str]:
    """Return PyTorch's times of tangents and of a double backward, and MiB of the last."""
    reference = case.twice or case.reference
    if reference is None:
        return ["", "", ""]
    try:
        _, tangents, _, double, size = measured(reference, case.inputs())
    except RuntimeError as error:  # PyTorch has no such derivative, or no memory for it.
        return [_why(error), "", ""]
    return [f"{tangents:.0f}", f"{double:.0f}", f"{size / 2**20:.0f}"]


def _why(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="cases with this in their name")
    given = parser.parse_args()
    heads = "case | forward | tangents | ÷ | backward | twice | ÷ | MiB of it"
    print(f"| {heads} | PyTorch: tangents | twice | MiB |")
    print("|---" * 11 + "|")
    for case in all_cases(given.quick):
        if given.only not in case.name:
            continue
        try:
            f, p, b, d, size = measured(autodiff(case.kernel, case.stub), case.inputs())
        except Exception as error:
            print(f"| {case.name} | {_why(error)} |", flush=True)
            continue
        own = (
            f"{f:.0f} | {p:.0f} | {p / f:.2f} | {b:.0f} | {d:.0f} | {d / b:.2f} "
            f"| {size / 2**20:.0f}"
        )
        print(f"| {case.name} | {own} | {' | '.join(theirs(case))} |", flush=True)


if __name__ == "__main__":
    main()
