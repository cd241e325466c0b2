"""Mistakes that a type checker has to see: one in each line that ends in a number."""

import triton_autodiff
from triton_autodiff import autodiff, check, differentiable, register_vjp, right_partial

triton_autodiff.unknown()  # 1
differentiable(None, tape_limit="many")  # 2
differentiable(None, depth=3)  # 3
differentiable(None).explain().missing()  # 4
autodiff(None)  # 5
autodiff(None, 3)  # 6
check(len, [], elements="all")  # 7
check(len, []).nothing()  # 8
register_vjp(None, assembly="mov")  # 9
right_partial(3, 1)  # 10
