"""Which kernels the backwards of a test ran, and how gradients were summed."""


class Ran:
    """What the backwards of a test ran: their kernels' grids, and how gradients were summed."""

    def __init__(self):
        self.names, self.grids, self.sums, self.gradients = [], {}, {}, ()
        self.batch = 0  # the length of the axis that iterations have become
        self.spread = False  # whether iterations of a loop over the grid have become programs
        self.unraveled = ()  # those that digits of positions have become, the lowest first

    def note(self, backward):
        kernels = [launch[0].kernel for launch in backward.launches]
        self.names = [kernel.name for kernel in kernels]
        self.grids = {
            kernel.name: launch[1]
            for kernel, launch in zip(kernels, backward.launches, strict=True)
            if kernel.grid is not None
        }
        self.gradients = backward.plan.gradients
        self.sums = {g.argument: g.accumulate for g in self.gradients}
        launch = backward.plan.launch
        self.spread = launch is not None and bool(launch.position)
        self.batch = launch.axes[0] if launch is not None and launch.batched else 0
        self.unraveled = launch.axes if launch is not None and launch.unraveled else ()


def assert_interchanged(ran, arguments, *programs):
    """Kernels of so many programs store the gradients of these arguments, whole or in parts."""
    if ran is not None:
        assert all(ran.sums[argument] != "atomic" for argument in arguments), ran.sums
        grids = {name: grid[0] for name, grid in ran.grids.items() if "interchanged" in name}
        assert len(grids) == len(programs), ran.grids
        # A sum in parts has a multiple of the programs, which depends on the machine.
        parts = any(ran.sums[argument] == "partial" for argument in arguments)
        left = list(programs)
        for name, extent in sorted(grids.items(), key=lambda item: "_wide" in item[0]):

            def fits(count, wide="_wide" in name, extent=extent):
                # Longer tiles need fewer programs.
                divides = wide and count % extent == 0
                return divides or extent == count or (parts and extent % count == 0)

            found = [count for count in left if fits(count)]
            assert found, (ran.grids, programs)
            left.remove(found[0])


def assert_sums(ran, how, *arguments):
    """The gradients of these arguments are summed in this way."""
    if ran is not None:
        assert all(ran.sums[argument] == how for argument in arguments), ran.sums


def assert_no_atomics(ran):
    """No gradient is added atomically."""
    assert ran is None or "atomic" not in ran.sums.values(), ran.sums


def assert_atomic(ran, *arguments):
    assert_sums(ran, "atomic", *arguments)
