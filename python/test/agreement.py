"""The test kernels, run where they can run: on the CPU backend, on a GPU, and interpreted.

`python agreement.py IN OUT` is for the interpreter, which needs a process of its own with
TRITON_INTERPRET=1. It has no backward kernels to run; central differences of the interpreted
forward stand in for them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "examples")]

from kernels import (
    cross_entropy,
    elementwise,
    functions,
    gather,
    image,
    loops,
    masks,
    matmul,
    normalization,
    softmax,
    through_memory,
)

# Of the central differences. The kernels that are float32 only are bilinear: any step is exact.
STEPS = {torch.float32: 0.1, torch.float64: 1e-5}


def _normal(*shape, scale=1.0, dtype=torch.float64):
    return (torch.randn(*shape, dtype=torch.float64) * scale).to(dtype).requires_grad_()


def _factor(*shape):
    """An operand of a product: tiles are summed up in float32."""
    return _normal(*shape, dtype=torch.float32)


def _indices(high, *shape):
    return torch.randint(high, shape)


# A kernel, its stub, and what makes the stub's arguments, on the CPU.
CASES = {
    "add": (elementwise.add_kernel, elementwise.add, lambda: (_normal(300), _normal(300))),
    "gelu": (elementwise.gelu_tanh_kernel, elementwise.unary, lambda: (_normal(300),)),
    "gelu by erf": (elementwise.gelu_erf_kernel, elementwise.unary, lambda: (_normal(300),)),
    "swiglu": (elementwise.swiglu_kernel, elementwise.swiglu, lambda: (_normal(5, 70),) * 2),
    "two outputs": (
        elementwise.product_and_exponential_kernel,
        elementwise.product_and_exponential,
        lambda: (_normal(200), _normal(200)),
    ),
    "in place": (
        elementwise.square_inplace_kernel,
        elementwise.inplace,
        lambda: (_normal(200),),
    ),
    "columns": (
        elementwise.affine_columns_kernel,
        elementwise.affine_columns,
        lambda: (_normal(37, 70), _normal(70), _normal(70)),
    ),
    "shapes": (functions.shapes_kernel, functions.shapes, lambda: (_normal(8, 16), _normal(8))),
    "masked other": (
        functions.masked_other_kernel,
        functions.masked_other,
        lambda: (_normal(40), _normal(40)),
    ),
    "running sum": (
        functions.running_sum_kernel,
        functions.running_sum,
        lambda: (_normal(3, 40), False),
    ),
    "embedding": (
        gather.embedding_kernel,
        gather.embedding,
        lambda: (_indices(9, 20), _normal(9, 40)),
    ),
    "take": (gather.take_kernel, gather.take, lambda: (_normal(90), _indices(90, 130))),
    "greyscale": (image.greyscale_kernel, image.greyscale, lambda: (_normal(3, 20, 30),)),
    "softmax": (softmax.softmax_kernel, softmax.rowwise, lambda: (_normal(6, 100),)),
    "log softmax": (softmax.log_softmax_kernel, softmax.rowwise, lambda: (_normal(6, 100),)),
    "persistent softmax": (
        softmax.persistent_softmax_kernel,
        softmax.persistent,
        lambda: (_normal(7, 100),),
    ),
    "layer norm": (
        normalization.layer_norm_kernel,
        normalization.layer_norm,
        lambda: (_normal(7, 100), _normal(100), _normal(100)),
    ),
    "rms norm": (
        normalization.rms_norm_kernel,
        normalization.rms_norm,
        lambda: (_normal(7, 100), _normal(100)),
    ),
    "cross entropy": (
        cross_entropy.cross_entropy_kernel,
        cross_entropy.cross_entropy,
        lambda: (_normal(5, 200), _indices(200, 5)),
    ),
    "matmul": (
        matmul.matmul_kernel,
        matmul.matmul,
        lambda: (_factor(40, 50), _factor(50, 70)),
    ),
    "grouped matmul": (
        matmul.grouped_matmul_kernel,
        matmul.grouped_matmul,
        lambda: (_factor(40, 50), _factor(50, 70)),
    ),
    "batched matmul": (
        matmul.batched_matmul_kernel,
        matmul.batched_matmul,
        lambda: (_factor(2, 40, 50), _factor(2, 50, 70)),
    ),
    "recurrence": (
        loops.rnn_states_kernel,
        loops.rnn_states,
        lambda: (_normal(2, 12, 32), _normal(32, scale=0.4), _normal(2, 32)),
    ),
    "nested loops": (loops.nested_kernel, loops.nested, lambda: (_normal(4, 5, 32), _normal(5))),
    "infinite tails": (
        masks.divergence_kernel,
        masks.divergence,
        lambda: (_normal(3, 50), _normal(3, 50)),
    ),
    "through memory": (
        through_memory.recurrence_kernel,
        through_memory.recurrence,
        lambda: (_normal(2, 9, 16), _normal(16, scale=0.4)),
    ),
}


def moved(inputs, device):
    """Copies of a case's arguments on a device, leaves where they were leaves."""

    def move(x):
        if not isinstance(x, torch.Tensor):
            return x
        if not x.is_floating_point():
            return x.to(device)
        return x.detach().to(device, copy=True).requires_grad_(x.requires_grad)

    return tuple(move(x) for x in inputs)


def outputs_of(stub, kernel, inputs):
    """A stub's outputs, always as a tuple."""
    result = stub(kernel, *inputs)
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def weighted_sum(outputs, upstreams):
    """What the gradients are the gradients of."""
    return sum((y * g).double().sum() for y, g in zip(outputs, upstreams, strict=True)).item()


def interpret(name, inputs, upstreams, direction):
    """Outputs of the interpreted kernel, and the slope of their weighted sum along a direction."""
    kernel, stub, _ = CASES[name]

    def run(distance):
        step = iter(direction)
        shifted = tuple(
            x.detach() + distance * next(step)
            if isinstance(x, torch.Tensor) and x.requires_grad
            else x
            for x in inputs
        )
        with torch.no_grad():
            return outputs_of(stub, kernel, shifted)

    step = STEPS[direction[0].dtype]
    ahead, behind = (weighted_sum(run(d), upstreams) for d in (step, -step))
    return run(0.0), (ahead - behind) / (2 * step)


def _let_scalars_bound_loops():
    """Triton 3.6 converts scalars to integers in a way that NumPy has refused since 2.4."""
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def patch_and_repair(tensor, *scope):
        patch(tensor, *scope)
        tensor.__index__ = lambda self: int(self.handle.data.squeeze())

    interpreter._patch_lang_tensor = patch_and_repair


def main(source, target):
    """Interpret every case of a file and store what came out."""
    _let_scalars_bound_loops()
    cases = torch.load(source)
    torch.save({name: interpret(name, *case) for name, case in cases.items()}, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
