"""Texts about plans: the backward's TTIR, and how each gradient is computed, and why.

The compiler states facts (`Plan.report`, see docs/plan.md), which become sentences here. Its
remarks give the reasons.
"""

from __future__ import annotations

from functools import cached_property

from ..errors import CheckError
from ..plans.remarks import place as _place
from ..plans.remarks import remarks_for, unchecked

# Of an address, in characters.
_LONGEST = 200
_INFIX = {"add": "+", "sub": "-", "mul": "·", "div": "/", "floordiv": "/", "rem": "%"}
_SOURCES = {
    "scf.for": "the result of a loop",
    "scf.while": "the result of a loop",
    "scf.if": "the result of a branch",
    "tt.reduce": "a reduction",
    "tt.scan": "a scan",
    "tt.dot": "a matrix product",
    "tt.load": "a value that is loaded",
}


def backward_text(plans) -> str:
    """Return the TTIR of the backward kernels of `(state, plan, execution)` triples."""
    return "\n".join(kernel.ttir for _, plan, _ in plans for kernel in plan.backward)


def report(plans, verbose: bool = False) -> str:
    """Return a description of `(state, plan, execution)` triples for people.

    With `verbose`, it ends with all remarks of the compiler.
    """
    lines = []
    for n, (state, plan, execution) in enumerate(plans):
        lines += _Explanation(state.spec.names, plan, execution).lines(verbose)
        if all(other is not state for other, *_ in plans[n + 1 :]):
            lines += _higher(state, verbose)
    return "\n".join(lines)


def _higher(state, verbose: bool) -> list[str]:
    """Return what ran for tangents and second derivatives of launches of a kernel.

    Behind that come the kernels with tangents that were differentiated for it, in the same way.
    """
    if state.higher is None:
        return []
    lines, names, told = [], state.spec.names, {}
    for way in list(state.higher.tangents.values()):
        of = [names[j] for j in way.state.spec.tangents if way.state.moves(j)]
        lines.append(
            f"  tangents of {_listed(of)}, from those of {_listed(names, way.given)}: "
            f"{way.state.spec.name}, which computes values and tangents"
        )
        told[way.state] = [*told.get(way.state, ()), way.execution]
    for way in list(state.higher.second.values()):
        # Of the kernel with tangents, these may be wanted, too.
        wanted, along = _listed(way.state.spec.names, way.wanted), _listed(names, way.along)
        how = "by the plan of the gradient, whose kernels compute tangents, too: "
        if way.reason is None:
            ran = (bound.executable for program in way.programs for bound in program.sequence)
            how += ", ".join(f"{one.kernel.name}{_options(one)}" for one in ran)
        else:
            how = f"by the gradient of {way.state.spec.name}; not by the plan of the gradient: "
            how += way.reason
        told[way.state] = [*told.get(way.state, ()), way.execution]
        lines.append(f"  second derivatives by {wanted}, along {along}: {how}")
    for derived, executions in told.items():
        found = {id(e.plan): e for e in executions if e is not None}
        for execution in found.values():
            own = _Explanation(derived.spec.names, execution.shown.plan, execution)
            lines += own.lines(verbose)
        more = _higher(derived, verbose)
        if more and not found:
            lines.append(f"kernel {derived.spec.name}, which computes values and tangents")
        lines += more
    return lines


def _listed(names, places=None) -> str:
    """Return names, or those at some places, in words."""
    chosen = names if places is None else [names[i] for i in sorted(places)]
    return ", ".join(chosen) or "nothing"


def _options(executable) -> str:
    """Return the options of a kernel that the user or a measurement chose."""
    options = ", ".join(f"{name}={value}" for name, value in sorted(executable.chosen.items()))
    return f" ({options})" if options else ""


def loops_of(names, plan, kernel) -> list[str]:
    """Return the positions of the loops whose iterations are the programs of a backward kernel."""
    return _Explanation(names, plan, None).loops_of(kernel)


def _places(positions) -> str:
    return ", ".join(dict.fromkeys(map(_place, positions))) or "an unknown line"


def _cut(address: str) -> str:
    """Return an address, without the end of a long one."""
    return address if len(address) <= _LONGEST else f"{address[:_LONGEST]} …"


def _bytes(count: int) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 10240:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


_INSIDE = {
    "proof": "each write has a place of its own there",
    "mask": "a mask leaves out what is beyond",
    "check": "the launch checks that these are its elements",
    "room": "the launch computes how far they reach, and there is so much memory",
}


class _Explanation:
    """The sentences about one plan."""

    def __init__(self, names, plan, execution):
        self._names = names
        self._plan = plan
        self._objections = {} if execution is None else execution.objections
        self._unsuited = [] if execution is None else self._breaks(execution)
        self._wanted = () if execution is None else execution.wanted
        self._planned = None if execution is None else execution.planned
        # Sizes are known after a launch.
        self._sizes = None if execution is None else execution.shown.buffers
        self._based = () if execution is None else execution.based
        launches = () if execution is None else execution.shown.launches
        self._ran = [executable for executable, *_ in launches]
        facts = plan.report
        self._gradients = {g["argument"]: g for g in facts.get("gradients", ())}
        self._buffers = {b["buffer"]: b for b in facts.get("buffers", ())}
        self._reads = facts.get("reads", ())
        self._inactive = facts.get("inactive", ())

    @cached_property
    def _remarks(self):
        return () if self._plan.asked is None else remarks_for(self._plan.asked)

    def lines(self, verbose: bool = False) -> list[str]:
        plan, names = self._plan, self._names
        inputs, outputs = _listed(names, plan.inputs), _listed(names, plan.outputs)
        lines = [f"kernel {plan.kernel}: gradients of {inputs}; writes {outputs}"]
        forward = "the kernel itself"
        if plan.forward is not None:
            saves = any(buffer.kind == "saved" for buffer in plan.buffers)
            purpose = "keeps elements in order"
            if saves:
                purpose = "saves what the backward needs"
            elif plan.forward.accesses is not None:
                purpose = "checks its accesses"
            forward = f"{plan.forward.name}, which {purpose}"
        lines.append(f"  forward: {forward}")
        if self._planned is not None:
            those = _listed(names, self._planned)
            lines.append(
                f"  planned for upstream gradients of {those} alone, as they came so far; should "
                "others come, a backward for all computes again what is not saved for it"
            )
        lines += [] if plan.launch is None else self._launch(plan.launch)
        lines += self._unsuited
        lines += [self._kernel(n, kernel) for n, kernel in enumerate(plan.backward)]
        for gradient in plan.gradients:
            lines += self._gradient(gradient)
        for n, buffer in enumerate(plan.buffers):
            lines.append(self._buffer(n, buffer))
        for i in plan.snapshots:
            lines.append(f"  {names[i]} is copied before the launch, which overwrites it")
        lines += [self._read(read) for read in self._reads]
        lines += [self._inactive_line(entry) for entry in self._inactive]
        lines += self._without_history()
        if verbose:
            lines.append("  what keeps writes inside of memory:")
            lines += dict.fromkeys(line for kernel in plan.kernels for line in self._writes(kernel))
            lines.append("  what was tried:")
            lines += [f"    {remark.line()}" for remark in self._remarks]
        return lines

    def _launch(self, launch) -> list[str]:
        lines = []
        if launch.position:
            grid = ", ".join(map(self._expr, launch.grid))
            place = _place(launch.position)
            lines.append(
                f"  programs: each iteration of the loop at {place} is one, in a grid of ({grid})"
            )
        if launch.batched:
            places = _places(launch.batched)
            lines.append(
                f"  loops: all iterations of those at {places} are in one tile, on an axis of "
                f"{launch.axes[0]}"
            )
        if launch.unraveled:
            lengths = "×".join(map(str, reversed(launch.axes)))
            place = _place(launch.unraveled)
            lines.append(f"  positions: taken apart, as at {place}, in tiles of {lengths}")
        return lines

    def _breaks(self, execution) -> list[str]:
        """Return why the launch is not for a plan that would take it apart."""
        launch, facts = execution.unsuited, execution.facts
        if launch is None or not (launch.unraveled or launch.batched):
            return []
        what, place = "loops: not in one tile", launch.batched
        if launch.unraveled:
            what, place = "positions: not taken apart", [launch.unraveled]
        try:
            broken = launch.first_broken(facts.scalars, facts.grid)
        except CheckError as error:
            reason = str(error)
        else:
            reason = "programs of this launch would overlap"
            if broken is not None:
                reason = f"for that, {self._limit(broken)}"
        return [f"  {what}, as at {_places(place)}: {reason}"]

    def _limit(self, expr) -> str:
        """Return in words what an expression says that must not be negative."""
        if isinstance(expr, int):
            return "no launch of this kernel has such a form"
        if expr[0] != "sub":
            return f"{self._expr(expr)} has to be at least 0"
        most, limited = expr[1:]
        if most == 0 and isinstance(limited, list) and limited[0] == "rem":
            number, divisor = map(self._expr, limited[1:])
            return f"{number} has to be a multiple of {divisor}"
        return f"{self._expr(limited)} has to be at most {self._expr(most)}"

    def _kernel(self, n: int, kernel) -> str:
        text = f"  backward kernel: {kernel.name}{self._programs(kernel)}"
        if not self._ran:
            return text
        ran = self._ran[n]
        if ran.kernel.name != kernel.name:
            text += f"; {ran.kernel.name} for launches like this one"
        return text + _options(ran)

    def _writes(self, kernel):
        """Yield what keeps the stores and atomics of a kernel inside of the memory for them."""
        gradients = {g.argument: g for g in self._plan.gradients}
        for place, said in kernel.writes:
            kind, index = kernel.operands[place]
            what = kind
            if kind in ("gradient", "rounded"):
                what = f"the gradient of {self._names[index]}"
                said = gradients[index].keeps_inside(said)
            elif kind == "buffer":
                what = f"buffer {self._plan.buffers[index].name}"
            elif kind == "argument":
                what = self._names[index]
            yield f"    {kernel.name}, {what}: {_INSIDE[said]}"

    def _programs(self, kernel) -> str:
        if kernel.grid is None:
            return ""
        if loops := self.loops_of(kernel):
            return f", whose programs are iterations of the loop at {_places(loops)}"
        return ", whose programs each do the work of several"

    def loops_of(self, kernel) -> list[str]:
        if kernel.grid is None:
            return []
        stored = [g for g in self._plan.gradients if ("gradient", g.argument) in kernel.operands]
        summed = [g for g in stored if self._summed(g)]
        return [position for g in summed for position in self._loops(g)]

    # Gradients.

    def _terms(self, gradient, *kinds) -> list:
        loads = self._gradients.get(gradient.argument, {"loads": ()})["loads"]
        return [t for load in loads for t in load["terms"] or () if t["kind"] in kinds]

    def _loops(self, gradient) -> list[str]:
        return [term["position"] for term in self._terms(gradient, "loop", "index")]

    def _summed(self, gradient) -> str:
        """Return, in words, in which numbers programs differ that add to the same elements."""
        used = [term["number"] for term in self._terms(gradient, "program")]
        numbers = []
        for check in gradient.checks:
            programs = check.programs or ()
            if check.moves:
                numbers += programs[: check.summed]
            else:
                numbers += [number for number in programs if number not in used]
        return " and ".join(self._expr(number) for number in numbers)

    def _gradient(self, gradient) -> list[str]:
        name = self._names[gradient.argument]
        if not gradient.returned:
            how = f"a copy in {gradient.dtype}, from which each element is taken once, atomically"
            return [f"  upstream gradient of {name}: {how}", *self._schedules(gradient)]
        if gradient.overwritten:
            rest = ", the upstream gradient elsewhere" if gradient.init == "cotangent" else ""
            return [f"  gradient of {name} before the launch: zero where it is stored to{rest}"]
        facts = self._gradients.get(gradient.argument, {"loads": ()})
        a_turn = " a turn" if len(gradient.checks) > 1 else ""
        how = {
            "store": f"plain stores, each element once{a_turn}",
            "partial": f"partial sums in {gradient.dtype}, added up at the end",
            "atomic": f"atomic adds in {gradient.dtype}",
        }[gradient.accumulate]
        start = {
            "none": "",
            "zero": ", from zero",
            "cotangent": ", on top of the upstream gradient",
        }
        rounded = ""
        if gradient.tallied is not None:
            rounded = "; if few elements are touched, parts with one contribution are stored"
        lines = [
            f"  gradient of {name}: {how}{start[gradient.init]}{rounded}",
            *self._schedules(gradient),
        ]
        if gradient.confined == "all":
            lines.append("    masked where the kernel reads beyond the tensor, which may be far")
        if gradient.argument in self._based:
            lines.append("    that of what is read around it goes to the tensor it is a view of")
        return lines + [f"    loaded at {self._access(load)}" for load in facts["loads"]]

    def _schedules(self, gradient) -> list[str]:
        """Return which schedules were used; if sums are atomic, why the others were not."""
        argument = gradient.argument
        meets = gradient.accumulate == "atomic" or gradient.remainder or not gradient.returned
        remarks = self._remarks
        failed = argument in self._objections and self._plan.asked is not None
        if failed:
            # The reasons against schedules other than the one whose check failed.
            before = remarks_for(unchecked(self._plan.asked))
            remarks = [remark for remark in before if not remark.taken]
        about = [r for r in remarks if r.argument == argument and (meets or r.taken)]
        lines = dict.fromkeys(f"    {remark.line()}" for remark in about)
        if failed:
            objection = self._objections[argument]
            lines[f"    plain-stores: no: a check of the addresses fails: {objection}"] = None
        return list(lines)

    def _access(self, load) -> str:
        shape = "×".join(map(str, load["shape"])) or "1"
        text = f"{_place(load['position'])}, {shape} at a time"
        if load["terms"] is None:
            return text
        terms = [self._term(term) for term in load["terms"]]
        if load["constant"] != 0 or not terms:
            terms.append(self._expr(load["constant"]))
        return f"{text}: element {_cut(' + '.join(terms))}"

    def _term(self, term) -> str:
        if term["kind"] == "axis":
            what = f"(0 … {term['extent'] - 1})"
        elif term["kind"] == "loop":
            what = f"iteration of the loop at {_place(term['position'])}"
        elif term["kind"] == "index":
            what = f"counter of the loop at {_place(term['position'])}"
        else:
            what = self._expr(term["number"])
        return what if term["coefficient"] == 1 else f"{self._expr(term['coefficient'])}·{what}"

    def _expr(self, expr) -> str:
        if not isinstance(expr, list):
            return str(expr)
        kind, *rest = expr
        if kind == "arg":
            return self._names[rest[0]]
        if kind == "pid":
            return f"program_id({rest[0]})"
        if kind == "grid":
            return f"num_programs({rest[0]})"
        if kind == "element":
            return f"{self._names[rest[0]]}[{self._expr(rest[1])}]"
        parts = [self._expr(part) for part in rest]
        if kind in _INFIX:
            return f"({f' {_INFIX[kind]} '.join(parts)})"
        return f"{kind}({', '.join(parts)})"

    # Memory.

    def _buffer(self, n: int, buffer) -> str:
        facts = self._buffers.get(n, {})
        size = ""
        if self._sizes is not None:
            _, dtype, elements = self._sizes[n]
            size = ", as many as a counting kernel finds"
            if not elements.is_counted:
                size = f", {_bytes(elements.get(None) * dtype.itemsize)}"
        shape = "×".join(map(str, facts.get("shape", ()))) or "1"
        where = f" at {_place(facts['position'])}" if facts.get("position") else ""
        if facts.get("variable"):
            where = f" of {facts['variable']!r}{where}"
        each = f"{shape} {buffer.dtype}"
        if buffer.kind == "handover":
            users = [k.name for k in self._plan.backward if ("buffer", n) in k.operands]
            return (
                f"  handed over: {users[0]} leaves the value{where}, {each} a program{size}, for "
                + " and ".join(users[1:])
            )
        if buffer.kind == "tally":
            return f"  counted: how many contributions parts of a sum get{size}"
        if buffer.kind == "tape":
            return (
                f"  taped: each value{where}, {each} an iteration{size}; the backward needs them "
                "in reverse order"
            )
        source = _SOURCES.get(facts.get("source"), "a value that is dear to compute")
        if buffer.name.startswith("factor"):
            source = "a factor"
        return (
            f"  saved: {source}{where}, {each} a program{size}; the backward would have to "
            "repeat it"
        )

    def _read(self, read) -> str:
        name, places = self._names[read["argument"]], _places(read["positions"])
        if read["argument"] in self._plan.snapshots:
            return f"  reads again: the copy of {name} (as at {places})"
        if read["argument"] in self._plan.outputs:
            return f"  reads back: {name}, which the forward has stored (at {places})"
        return f"  reads again: {name} (as at {places})"

    def _without_history(self) -> list[str]:
        history = self._plan.history
        # Without a launch, any input may have one.
        known = self._plan.with_history(self._wanted or {i for s in history.values() for i in s})
        return [
            f"  {self._names[j]} has no history: no float that requires a gradient reaches it, "
            "other than through comparisons and integers"
            for j in history
            if j not in known
        ]

    def _inactive_line(self, entry) -> str:
        reasons = {
            "integer": "it holds integers",
            "unwanted": "none was asked for (requires_grad is False)",
            "independent": "no output with an upstream gradient depends on it, so it is zero",
        }
        argument, reason = entry["argument"], entry["reason"]
        # The backward may have dropped an argument that it does not store to.
        if reason == "unwanted" and argument in self._wanted:
            reason = "independent"
        return f"  no gradient of {self._names[argument]}: {reasons[reason]}"
