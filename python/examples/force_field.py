"""A small force field: the energy of atoms is a kernel, all else are its derivatives.

A pair of atoms has the energy of Lennard and Jones, with a depth and a width for each species.
Forces are first derivatives. Training on forces differentiates them by depths and widths. The
Hessian of a molecule at rest says how it vibrates. Six of its eigenvalues are zero, since nothing
changes if the whole moves or turns. The others are positive.
"""

import torch
import triton
import triton.language as tl
from beside_pytorch import are_close, is_close
from triton_autodiff import autodiff


@triton.jit
def energy_kernel(
    x_ptr, species_ptr, depth_ptr, width_ptr, energy_ptr, n_atoms, BLOCK: tl.constexpr
):
    """The energy of each atom: half of that of its pairs."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    has_i = i < n_atoms
    x_i = tl.load(x_ptr + 3 * i, mask=has_i, other=0.0)
    y_i = tl.load(x_ptr + 3 * i + 1, mask=has_i, other=0.0)
    z_i = tl.load(x_ptr + 3 * i + 2, mask=has_i, other=0.0)
    species_i = tl.load(species_ptr + i, mask=has_i, other=0)
    depth_i = tl.load(depth_ptr + species_i)
    width_i = tl.load(width_ptr + species_i)
    energy = tl.zeros_like(x_i)
    for start in range(0, n_atoms, BLOCK):
        j = start + tl.arange(0, BLOCK)
        has_j = j < n_atoms
        dx = x_i[:, None] - tl.load(x_ptr + 3 * j, mask=has_j, other=0.0)[None, :]
        dy = y_i[:, None] - tl.load(x_ptr + 3 * j + 1, mask=has_j, other=0.0)[None, :]
        dz = z_i[:, None] - tl.load(x_ptr + 3 * j + 2, mask=has_j, other=0.0)[None, :]
        species_j = tl.load(species_ptr + j, mask=has_j, other=0)
        depth = tl.sqrt(depth_i[:, None] * tl.load(depth_ptr + species_j)[None, :])
        width = (width_i[:, None] + tl.load(width_ptr + species_j)[None, :]) / 2
        is_pair = has_i[:, None] & has_j[None, :] & (i[:, None] != j[None, :])
        square = tl.where(is_pair, dx * dx + dy * dy + dz * dz, 1.0)
        q = width * width / square
        q = q * q * q
        energy += tl.sum(tl.where(is_pair, 2 * depth * (q * q - q), 0.0), axis=1)
    tl.store(energy_ptr + i, energy, mask=has_i)


def energies(kernel, x, species, depth, width):
    """The stub: x is (atoms, 3), species a number for each atom."""
    energy = x.new_empty(len(x))
    kernel[(triton.cdiv(len(x), 16),)](
        x.contiguous(), species, depth, width, energy, len(x), BLOCK=16
    )
    return energy


def reference(x, species, depth, width):
    """The same as formulas of PyTorch."""
    is_same = torch.eye(len(x), dtype=torch.bool, device=x.device)
    square = (x[:, None] - x[None]).square().sum(-1).masked_fill(is_same, 1.0)
    depth, width = depth[species], width[species]
    q = (((width[:, None] + width[None]) / 2).square() / square) ** 3
    pairs = 2 * (depth[:, None] * depth[None]).sqrt() * (q.square() - q)
    return pairs.masked_fill(is_same, 0.0).sum(1)


def forces(op, x, species, depth, width):
    """What pulls at each atom, so that it can be differentiated."""
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(
        op(x, species, depth, width).sum(), x, create_graph=depth.requires_grad
    )
    return -slope


def crystal(n, spacing=1.15):
    """Atoms on a lattice, each a little off its place."""
    places = torch.cartesian_prod(*(torch.arange(n),) * 3) * spacing
    return places + 0.03 * torch.randn_like(places)


def check_training(op, x, species, true) -> bool:
    """The gradients of the error of forces by depths and widths, beside PyTorch's."""
    goal = forces(reference, x.double(), species, *(p.double() for p in true))

    def gradients(function, dtype):
        guess = [torch.ones_like(p, dtype=dtype, requires_grad=True) for p in true]
        found = forces(function, x.to(dtype), species, *guess)
        return torch.autograd.grad((found - goal.to(dtype)).square().mean(), guess)

    theirs, truths = gradients(reference, torch.float32), gradients(reference, torch.float64)
    ours = gradients(op, torch.float32)
    what = "gradient of the error of forces by"
    return are_close(what, ("depth", "width"), ours, theirs, truths)


def minimise(loss, parameters) -> None:
    """Changes parameters so that the loss is least."""
    optimizer = torch.optim.LBFGS(
        parameters, max_iter=300, tolerance_grad=1e-12, tolerance_change=0,
        line_search_fn="strong_wolfe",
    )  # fmt: skip

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    optimizer.step(closure)


def train(op, x, species, true) -> float:
    """Learns depths and widths from forces; returns how far they are from the true ones."""
    goal = forces(op, x, species, *true)
    guess = [torch.ones_like(p, requires_grad=True) for p in true]
    minimise(lambda: (forces(op, x, species, *guess) - goal).square().mean(), guess)
    off = max((g - p).abs().max().item() for g, p in zip(guess, true, strict=True))
    print(f"training on forces: depths and widths are off by {off:.1e}")
    return off


def check_hessian(op, species, true) -> bool:
    """The Hessian of a molecule of seven atoms, in float64."""
    depth, width = (p.double() for p in true)
    species = species[:7]
    x = crystal(2)[:7].double().requires_grad_()
    minimise(lambda: op(x, species, depth, width).sum(), [x])
    x = x.detach()
    hessian = torch.func.hessian(lambda x: op(x, species, depth, width).sum())(x).view(21, 21)
    truth = torch.func.hessian(lambda x: reference(x, species, depth, width).sum())(x).view(21, 21)
    good = is_close("Hessian at rest", hessian, truth, truth, allowed=1e-10)
    values = torch.linalg.eigvalsh(hessian)
    zeros, others = values[:6], values[6:]
    print(f"its eigenvalues: six zeros, but for {zeros.abs().max().item():.0e}, and 15 between "
          f"{others.min().item():.1f} and {others.max().item():.1f}")  # fmt: skip
    return good and zeros.abs().max() < 1e-5 and others.min() > 0.1


def main() -> None:
    torch.manual_seed(0)
    torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
    op = autodiff(energy_kernel, energies)
    x = crystal(3)
    species = torch.arange(len(x), dtype=torch.int32) // 2 % 2  # in pairs, so that like meets like
    true = torch.tensor([0.8, 1.3]), torch.tensor([1.05, 0.95])
    good = check_training(op, x, species, true)
    good &= train(op, x, species, true) < 1e-2
    if not (check_hessian(op, species, true) and good):
        raise SystemExit("force_field: a derivative is wrong")


if __name__ == "__main__":
    main()
