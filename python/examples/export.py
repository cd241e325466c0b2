"""Exports the operations of the examples: modules that need PyTorch and Triton alone.

    python python/examples/export.py [FOLDER]

writes them to FOLDER, or to `exported` beside this file, for a CPU.
"""

import sys
from pathlib import Path

import flash_attention_v2
import layer_norm
import quickstart
import torch
from triton_autodiff import autodiff

half, single = torch.float16, torch.float32
# Kernel, stub, shapes and type of tensors, and other arguments. Few sizes are multiples of 16, for
# a module asserts those that are.
OPERATIONS = {
    "gated_layer": (
        *(quickstart.gated_layer_kernel, quickstart.gated_layer),
        *([(99, 30), (30,), (30,)], single, ()),
    ),
    "layer_norm": (
        *(layer_norm.layer_norm_kernel, layer_norm.layer_norm),
        *([(70, 300), (300,), (300,)], half, ()),
    ),
    "attention": (
        *(flash_attention_v2.attention_kernel, flash_attention_v2.attention),
        *([(1, 2, 192, 64)] * 3, half, (True, 0.125)),
    ),
}


def export(name: str, folder: Path) -> Path:
    """Exports an operation, after a backward, which shows which outputs have a gradient."""
    kernel, stub, shapes, dtype, others = OPERATIONS[name]
    op = autodiff(kernel, stub)
    args = [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]
    op(*args, *others).sum().backward()
    return op.export(folder / f"{name}.py", *args, *others)


def main() -> None:
    beside = Path(__file__).parent / "exported"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else beside
    folder.mkdir(exist_ok=True)
    for name in OPERATIONS:
        print(export(name, folder))


if __name__ == "__main__":
    main()
