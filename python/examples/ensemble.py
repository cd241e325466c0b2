"""An ensemble: several models with parameters of their own, by one call.

`torch.func.stack_module_state` stacks the parameters of models that are alike. `functional_call`
calls one with given parameters, and `vmap` does so for each. The kernel was written for one model
and serves all. Gradients of all models are `vmap` of `grad`.
"""

import torch
from beside_pytorch import are_close
from gradient_penalty import Critic, norm_layer, norm_layer_kernel, reference
from torch.func import functional_call, grad_and_value, stack_module_state, vmap
from triton_autodiff import autodiff

N_MODELS, N_IN, WIDTH = 4, 8, 24


def losses_of(model, x, goal):
    """Returns a function of stacked parameters: the gradients and the losses of all models."""

    def loss(parameters, x, goal):
        return (functional_call(model, parameters, (x,)) - goal).square().mean()

    # Each model has its own parameters and its own examples.
    each = vmap(grad_and_value(loss))
    return lambda parameters: each(parameters, x, goal)


def train(step, parameters, steps=100):
    """Trains all models at once; returns their losses before and after it."""
    optimizer = torch.optim.Adam(parameters.values(), lr=0.03)
    losses = []
    for _ in range(steps):
        gradients, loss = step(parameters)
        for name, parameter in parameters.items():
            parameter.grad = gradients[name]
        optimizer.step()
        losses.append(loss)
    return losses[0], losses[-1]


def main() -> None:
    torch.manual_seed(0)
    torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
    op = autodiff(norm_layer_kernel, norm_layer)
    models = [Critic(op, N_IN, WIDTH) for _ in range(N_MODELS)]
    parameters, _ = stack_module_state(models)
    parameters = {name: p.detach() for name, p in parameters.items()}
    x = torch.randn(N_MODELS, 32, N_IN)
    goal = torch.nn.functional.normalize(x, dim=-1)[..., :2].prod(-1)

    step = losses_of(models[0], x, goal)
    theirs = Critic(reference, N_IN, WIDTH)
    doubles = {name: p.double() for name, p in parameters.items()}
    good = are_close(
        "gradients of all models by",
        list(parameters),
        step(parameters)[0].values(),
        losses_of(theirs, x, goal)(parameters)[0].values(),
        losses_of(theirs, x.double(), goal.double())(doubles)[0].values(),
    )
    before, after = train(step, parameters)
    print("training all of them: the losses were", *(f"{loss:.2f}" for loss in before.tolist()),
          "and are", *(f"{loss:.4f}" for loss in after.tolist()))  # fmt: skip
    if not good or (after > 0.1 * before).any():
        raise SystemExit("ensemble: the gradients are wrong")


if __name__ == "__main__":
    main()
