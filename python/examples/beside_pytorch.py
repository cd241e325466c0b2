"""What the examples print of a derivative: its error beside PyTorch's, by float64."""


def is_close(what: str, ours, theirs, truth, allowed: float = 1e-5) -> bool:
    """Prints both errors, relative to the true value; whether ours is as small as PyTorch's, or as
    what is always allowed.
    """
    error, bound = (((x - truth).norm() / truth.norm()).item() for x in (ours, theirs))
    print(f"{what}: relative error against float64 {error:.1e} (PyTorch: {bound:.1e})")
    return error <= 4 * bound + allowed


def are_close(what: str, names, ours, theirs, truths) -> bool:
    """The same for several, of which each has a name."""
    parts = zip(names, ours, theirs, truths, strict=True)
    return all([is_close(f"{what} {name}", *values) for name, *values in parts])
