"""Which kernels the backwards of a test ran, and how gradients were summed."""


class Ran:
    """What the backwards of a test ran: their kernels' grids, and how gradients were summed."""

    def __init__(self):
        self.names, self.grids, self.sums = [], {}, {}

    def note(self, backward):
        self.names = [kernel.name for kernel in backward.plan.backward]
        own = [kernel.grid is not None for kernel in backward.plan.backward]
        grids = [launch[1] for launch in backward.launches]
        self.grids = {
            name: grid for name, grid, is_own in zip(self.names, grids, own, strict=True) if is_own
        }
        self.sums = {g.argument: g.accumulate for g in backward.plan.gradients}


def assert_exchanged(ran, arguments, *programs):
    """Kernels of so many programs store the gradients of these arguments, whole or in parts."""
    if ran is not None:
        assert all(ran.sums[argument] != "atomic" for argument in arguments), ran.sums
        grids = sorted(grid[0] for name, grid in ran.grids.items() if "exchanged" in name)
        assert len(grids) == len(programs), ran.grids
        # A sum in parts has a multiple of the programs, which depends on the machine.
        parts = any(ran.sums[argument] == "partial" for argument in arguments)
        for extent, count in zip(grids, sorted(programs), strict=True):
            assert extent % count == 0 if parts else extent == count, ran.grids


def assert_sums(ran, how, *arguments):
    """The gradients of these arguments are summed in this way."""
    if ran is not None:
        assert all(ran.sums[argument] == how for argument in arguments), ran.sums


def assert_atomic(ran, *arguments):
    assert_sums(ran, "atomic", *arguments)
