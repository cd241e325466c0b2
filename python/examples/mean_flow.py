"""A mean flow with attention: a loss that contains a tangent of the network.

A mean flow (Geng et al., "Mean Flows for One-step Generative Modeling") learns the mean velocity
u(z, r, t) between times r and t. It obeys u = v - (t - r) du/dt, where v is the velocity at t and
du/dt the tangent of the network along (v, 0, 1). `torch.func.jvp` computes u and du/dt. Training
differentiates the loss.
"""

import torch
from beside_pytorch import is_close
from flash_attention_v2 import attention, attention_kernel
from triton_autodiff import autodiff

FEATURES, HEADS, HEAD_DIM = 2, 2, 16
WIDTH = HEADS * HEAD_DIM


class Flow(torch.nn.Module):
    """One block of a transformer, whose attention is `attend(q, k, v)`."""

    def __init__(self, attend):
        super().__init__()
        self.attend = attend
        self.embed = torch.nn.Linear(FEATURES + 2, WIDTH)
        self.project = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.mix = torch.nn.Linear(WIDTH, WIDTH)
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.SiLU(), torch.nn.Linear(2 * WIDTH, WIDTH)
        )
        self.out = torch.nn.Linear(WIDTH, FEATURES)

    def forward(self, z, r, t):
        """z is (batch, tokens, features); r and t are (batch, 1, 1)."""
        times = torch.cat([r, t - r], -1).expand(-1, z.shape[1], -1)
        h = self.embed(torch.cat([z, times], -1))
        heads = self.project(h).unflatten(-1, (3, HEADS, HEAD_DIM)).permute(2, 0, 3, 1, 4)
        attended = self.attend(*heads)
        h = h + self.mix(attended.transpose(1, 2).flatten(-2))
        return self.out(h + self.mlp(h))


def attend(kernel, q, k, v):
    """The stub: flash attention, where each token sees all others."""
    return attention(kernel, q, k, v, False, HEAD_DIM**-0.5, BLOCK_M=32, BLOCK_N=32)


def reference(q, k, v):
    """The same as formulas of PyTorch."""
    return (HEAD_DIM**-0.5 * q @ k.transpose(-1, -2)).softmax(-1) @ v


def loss_of(flow, data, noise, r, t, stops=True):
    """The loss of a mean flow. It `stops` the gradient of its target, as its authors do."""
    z, v = (1 - t) * data + t * noise, noise - data
    u, slope = torch.func.jvp(flow, (z, r, t), (v, torch.zeros_like(r), torch.ones_like(t)))
    target = v - (t - r) * slope
    return (u - (target.detach() if stops else target)).square().mean()


def gradients(flow, dtype, given, stops):
    """The gradients of the loss by the network's parameters."""
    loss = loss_of(flow.to(dtype), *(x.to(dtype) for x in given), stops)
    return torch.autograd.grad(loss, flow.parameters())


def batch(size=16, tokens=24):
    """Data, noise and two times: the tokens of an example are points of a circle."""
    angles = torch.rand(size, 1) + torch.arange(tokens) / tokens
    data = torch.polar(torch.ones(()), 2 * torch.pi * angles)
    times = torch.rand(2, size, 1, 1).sort(0).values
    return torch.view_as_real(data), torch.randn(size, tokens, 2), *times


def check(flow) -> bool:
    """The gradients of the loss, beside PyTorch's."""
    theirs = Flow(reference)
    theirs.load_state_dict(flow.state_dict())
    given, good = batch(), True
    # On a GPU, Triton's products of float32 are in tf32.
    allowed = 1e-2 if torch.cuda.is_available() else 1e-5
    for stops, name in ((True, "the loss"), (False, "the loss with its target")):
        ours = gradients(flow, torch.float32, given, stops)
        torchs, truths = (
            gradients(theirs, t, given, stops) for t in (torch.float32, torch.float64)
        )
        whole = (torch.cat([g.flatten() for g in gs]) for gs in (ours, torchs, truths))
        good &= is_close(f"gradient of {name}", *whole, allowed)
    return good


def train(flow, steps=60) -> tuple[float, float]:
    """Returns the loss of one batch before and after training."""
    optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3)
    given, losses = batch(), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(flow, *given)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[0], losses[-1]


def main() -> None:
    torch.manual_seed(0)
    torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
    flow = Flow(autodiff(attention_kernel, attend))
    good = check(flow)
    before, after = train(flow)
    print(f"training with it: the loss was {before:.2f} and is {after:.2f}")
    if not good or after > 0.8 * before:
        raise SystemExit("mean_flow: the gradients are wrong")


if __name__ == "__main__":
    main()
