"""How far each TTIR file of a folder gets.

`python -m triton_autodiff corpus DIR` prints a table of the steps: the file is *parsed*;
printed by us again it means the same to Triton (*round-tripped*); Triton compiles it (*forward*);
it is *differentiated*; Triton compiles every kernel that comes of it, with the options that the
plan has for it (*accepted*). A kernel that takes more shared memory than the device has counts as
one that does not compile. Below are the totals, and the reasons of refusals with their frequency.
Every file, a kernel or a recorded request, is examined in a process of its own, so one that crashes
or hangs costs one row.
"""

import collections
import dataclasses
import json
import os
import pathlib
import re
import tempfile
import time

from ..library import native
from ..plans.recording import REQUEST, files, read_one
from ..plans.target import beyond_memory, described, other_form, parse_target
from ..support.processes import End, run_each
from .stored_plans import request_on

STEPS = ("parsed", "round-tripped", "forward", "differentiated", "accepted")


def request_for(target):
    """Return the request for all gradients of a kernel on a device."""
    return json.dumps({**REQUEST, **described(target)})


@dataclasses.dataclass
class Row:
    """One file's results: per step, None while unknown, "" for success, else the reason.

    `gradients` counts the arguments that get one: none does in a kernel of integers. `step` is the
    one that began last.
    """

    file: str
    results: dict = dataclasses.field(default_factory=lambda: dict.fromkeys(STEPS))
    times: dict = dataclasses.field(default_factory=dict)
    kernels: int = 0
    gradients: int = 0
    seconds: float = 0.0
    step: str = STEPS[0]

    def receive(self, event):
        """Take one report; the step that did not end has the reason why the process did."""
        if isinstance(event, End):
            self.seconds = event.seconds
            if event.reason is not None:
                self.results[self.step] = event.reason
            return
        kind, value = event
        if kind == "begin":
            self.step = value
        elif kind == "counts":
            self.kernels, self.gradients = value
        elif kind == "time":
            step, self.times[step] = value
        else:
            self.results[kind] = value

    def reached(self, step):
        """Whether the file passed a step."""
        return self.results[step] == ""

    def as_json(self):
        """A plain dictionary for `--json`."""
        steps = {
            step: {"ok": reason == "", "reason": reason or None, "seconds": self.times.get(step)}
            for step, reason in self.results.items()
        }
        return {
            "file": self.file,
            **steps,
            "kernels": self.kernels,
            "gradients": self.gradients,
            "seconds": round(self.seconds, 2),
        }


def argument_names(text, kernel, count):
    """What arguments of a kernel in TTIR text are called, `arg0` and so on if that is unknown."""
    _, _, rest = text.partition(f"@{kernel}(")
    header = rest[: rest.find("{\n")]
    # Prefer the name in the source, if it is printed, to that in the text.
    found = re.findall(r'%([\w.$-]+)\s*:(?:[^%]*?\bloc\("([^"]+)"[()])?', header)
    names = [source or name for name, source in found]
    return names if len(names) == count else [f"arg{n}" for n in range(count)]


# Triton's compiler


def compile_ttir(text, target, assemble=True):
    """Compile TTIR text with Triton and return its assembly, stage by stage."""
    return dict(compiled_ttir(text, target, assemble).asm)


def compiled_ttir(text, target, assemble=True, options=None):
    """Return what Triton compiles TTIR text to, with the options.

    Without `assemble` the target's assembler is left out: the assembly text is all that
    a comparison needs, and it takes a fraction of the time.
    """
    import triton
    from triton import knobs

    def stop_at_text(backend=None, stages=None, *_):
        if stages is None:
            return "text", "text"
        for binary in ("cubin", "hsaco"):
            if binary in stages:
                stages[binary] = lambda *_: b""

    with tempfile.TemporaryDirectory() as folder:
        previous = os.getcwd()
        # Locations of text that carries none name the file: keep its name the same everywhere.
        os.chdir(folder)
        try:
            pathlib.Path("kernel.ttir").write_text(text)
            with knobs.runtime.scope(), knobs.cache.scope(), knobs.compilation.scope():
                knobs.cache.dir = folder
                knobs.compilation.disable_line_info = True
                if not assemble:
                    knobs.runtime.add_stages_inspection_hook = stop_at_text
                return triton.compile("kernel.ttir", target=target, options=options)
        finally:
            os.chdir(previous)


def assembly(asm):
    """Return the lowest-level text of a compiled kernel, without comments."""
    for stage in ("ptx", "amdgcn", "llir"):
        if stage in asm:
            return re.sub(r"\s*//.*", "", asm[stage])
    raise ValueError(f"no text among {', '.join(asm)}")


# --------------------------------------------------------------------------------------------
# One file
# --------------------------------------------------------------------------------------------


def kernels_of(plan):
    """All derived kernels of a plan in JSON, variants too."""
    derived = [k for k in (plan.get("counting"), plan.get("forward"), *plan["backward"]) if k]
    for tallied in (gradient.get("tallied") for gradient in plan["gradients"]):
        derived += [tallied[name] for name in ("tally", "clear", "round")] if tallied else []
    return [one for kernel in derived for one in (kernel, *kernel.get("variants", ()))]


def why_not_compiled(text, target, assemble=True, options=None):
    """Return why Triton cannot compile a kernel, or the device cannot run it; "" if all is well.

    The options are a plan's.
    """
    # Which imports PyTorch; most of what is here does without.
    from ..compiling.executable import own_options

    usual = {"num_warps": 4, "warp_size": target.warp_size}
    options = own_options(usual, dict(options or {}), {})
    del options["warp_size"]
    while True:
        try:
            compiled = compiled_ttir(text, target, assemble, options)
            break
        except (RuntimeError, ValueError):
            # As in a launch.
            text = other_form(text)
            if text is None:
                raise
    return beyond_memory(compiled.metadata.shared, target)


def compare_round_trip(text, printed, target):
    """Why Triton compiles `printed` to something else than `text`; "" if it does not."""
    if printed.strip() == text.strip():
        return ""
    if assembly(compile_ttir(text, target, False)) == assembly(
        compile_ttir(printed, target, False)
    ):
        return ""
    return "compiles to different assembly"


def first_line(error):
    """The part of an exception that fits into a table."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or [type(error).__name__])[0][:300]


def examine(path, target, steps, report, assemble=True):
    """Take one file as far as it gets, calling `report(step, reason)` after each step."""
    asked = read_one(pathlib.Path(path))
    text = asked.ttir
    state = {}

    def parse():
        state["printed"] = native().run_pipeline(text, "", str(path))
        return ""

    def round_trip():
        return compare_round_trip(text, state["printed"], target)

    def forward():
        return why_not_compiled(text, target, assemble)

    def differentiate():
        request = json.dumps(request_on(asked, target))
        plan = json.loads(native().differentiate(text, request, str(path)))
        state["kernels"] = kernels_of(plan)
        gradients = sum(gradient.get("returned", True) for gradient in plan["gradients"])
        report("counts", (len(state["kernels"]), gradients))
        return ""

    def accept():
        for kernel in state["kernels"]:
            try:
                why = why_not_compiled(kernel["ttir"], target, assemble, kernel.get("options"))
            except Exception as error:
                why = first_line(error)
            if why:
                return f"{kernel['name']}: {why}"
        return ""

    needs = {"accepted": "differentiated"}
    passed = set()
    runs = (parse, round_trip, forward, differentiate, accept)
    for step, run in zip(STEPS, runs, strict=True):
        if step not in steps or (step in needs and needs[step] not in passed):
            continue
        report("begin", step)
        start = time.monotonic()
        try:
            reason = run()
        except Exception as error:
            reason = first_line(error)
        report("time", (step, round(time.monotonic() - start, 3)))
        report(step, reason)
        if not reason:
            passed.add(step)
        elif step == "parsed":
            return


def _examine(send, path, target, steps, assemble):
    """Call `examine` by name, so that tests can replace it."""
    examine(path, parse_target(target), steps, lambda *event: send(event), assemble)


# --------------------------------------------------------------------------------------------
# Many files
# --------------------------------------------------------------------------------------------


def run_corpus(
    folder,
    target="cuda:90",
    steps=STEPS,
    workers=2,
    timeout=600.0,
    progress=None,
    start_method="forkserver",
    assemble=True,
):
    """Examine every `*.ttir` and `*.json` under `folder`; return the rows in order of their names.

    Without `assemble`, the target's assembler is left out.
    """
    folder = pathlib.Path(folder)
    paths = files(folder)
    parse_target(target)
    names = [str(path.relative_to(folder)) if folder.is_dir() else path.name for path in paths]
    rows = {str(path): Row(name) for path, name in zip(paths, names, strict=True)}
    tasks = [(path, target, steps, assemble) for path in rows]
    for (path, *_), event in run_each(tasks, _examine, workers, timeout, start_method):
        rows[path].receive(event)
        if progress and isinstance(event, End):
            progress(rows[path])
    return sorted(rows.values(), key=lambda row: row.file)


def general(reason):
    """Return a reason without the details of one file: the place, and the kernel's name."""
    return re.sub(r"^(\S*:\d+:\d+: |\w+: (?=\S*:\d+:\d+: ))*(error: )?", "", reason)


def count_reasons(rows):
    """How often each step failed for each general reason, the most frequent first."""
    reasons = collections.Counter()
    for row in rows:
        reasons.update((step, general(why)) for step, why in row.results.items() if why)
    return reasons.most_common()


def format_table(rows, steps=STEPS):
    """The rows as text: a mark per step, a line per reason, the totals, and all reasons again."""
    marks = {None: "-", "": "yes"}
    width = max([len(row.file) for row in rows] + [4])
    lines = ["  ".join([f"{'file':{width}}", *steps, "seconds"])]
    for row in rows:
        cells = [f"{marks.get(row.results[step], 'no'):{len(step)}}" for step in steps]
        lines.append("  ".join([f"{row.file:{width}}", *cells, f"{row.seconds:7.1f}"]))
        lines += [f"    {step}: {row.results[step]}" for step in steps if row.results[step]]
    totals = [f"{sum(row.reached(step) for row in rows)} {step}" for step in steps]
    lines.append(f"{len(rows)} files: " + ", ".join(totals))
    if "differentiated" in steps:
        idle = sum(row.reached("differentiated") and not row.gradients for row in rows)
        lines.append(f"{idle} of those differentiated have no gradient to compute")
    if {"forward", "accepted"} <= set(steps):
        worse = sum(row.reached("forward") and not row.reached("accepted") for row in rows)
        lines.append(f"{worse} compile, and what is derived from them does not")
    lines += [f"{count:5} {step}: {why}" for (step, why), count in count_reasons(rows)]
    return "\n".join(lines)
