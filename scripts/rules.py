"""Print docs/rules.md: the compiler's own table of rules, with its legend."""

from triton_autodiff import _native

HEADER = """\
# Differentiation rules

`make docs` generates this page from the table that the compiler differentiates with.

A *rule* says how a gradient goes back through one operation. x is an operand of the operation, y
its result, and a bar marks the gradient with respect to a value. The *pullback* computes x̄ from ȳ.
For example, y = tanh x has ȳ·(1 − y²): that is added to the gradient of x. Where an operation has
several operands, the rule says which one gets what: a product y = x₁·x₂ has x̄₁ += ȳ·x₂ and
x̄₂ += ȳ·x₁. An operation without a rule, on a path that needs a gradient, is an error that names
the operation and the line of the kernel.

Each rule is stated in one of these ways, from which the compiler takes the pullback and the way
forward, for tangents:

| stated as | what is written down | example |
| --- | --- | --- |
| partials | the derivatives ∂y/∂xₖ | tanh |
| linear map | a linear function and its transpose | a broadcast and a sum over the repeated axes |
| both ways | a function for the pullback, and one for the way forward | a loop |
| constant | nothing: the result does not move | floor |

## Operations
"""

print(HEADER)
print(_native.rules_markdown(), end="")
