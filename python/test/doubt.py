"""Doubts known launches: whatever a record runs is found the long way as well.

This holds for the launches of every test, so each of them may find a stale record.
"""

import functools


class Stale(AssertionError):
    """A record would have run something else than the long way."""


@functools.cache
def install() -> None:
    """Doubt all known launches of this process from now on."""
    from triton.backends.autodiff.launching import known, nodes

    find, launch_known = known.Known.find, nodes.launch_known

    @functools.wraps(find)
    def doubted_find(self, args, kwargs):
        found = find(self, args, kwargs)
        if found is not None:
            compiled = self._function.run(*args, grid=(1,), warmup=True, **kwargs)
            if compiled is not found[0].kernel:
                raise Stale(f"another kernel than Triton's: {args}, {kwargs}")
        return found

    def doubted_launch(record, values, wants, grid, options):
        entry = None if grid is None else record.executions.get((grid, options.atomics()))
        leaves = None if entry is None else record.pick(values)
        right = None if entry is None else _long_way(record, grid, options, leaves)
        ran, execution = launch_known(record, values, wants, grid, options)
        if ran and execution is not None:
            own = execution.state.spec.flatten(values)
            if not all(a is b for a, b in zip(leaves, own, strict=True)):
                raise Stale(f"other arguments than {own}: {leaves}")
        if ran and execution is not None and execution is not right:
            raise Stale(f"another execution than the one for grid {grid} of {leaves}")
        return ran, execution

    def _long_way(record, grid, options, leaves):
        state = nodes.KernelState.existing(record.kernel, options)
        return (
            None if state is None else state.execution(nodes._wanted(state, leaves), grid, leaves)
        )

    known.Known.find, nodes.launch_known = doubted_find, doubted_launch
