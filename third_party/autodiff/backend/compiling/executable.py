"""Generated kernels: TTIR text, compiled by Triton for the forward's target."""

from __future__ import annotations

import re
from dataclasses import replace

import triton
from triton import knobs
from triton.compiler import compile as triton_compile
from triton.runtime.errors import OutOfResources

from ..errors import AutodiffError, DoesNotFit
from ..faults.elf import check_whole
from ..faults.launchers import built_meanwhile, source_of
from ..faults.lost_sums import ensure_sums
from ..faults.misaddressed import ensure_addresses
from ..faults.miscompiled import ensure_right
from ..faults.omitted import with_all_products
from ..faults.uniform_operands import ensure_operands
from ..plans.cache import (
    accepted_file,
    accepted_form,
    comes_from,
    is_of_cache,
    note_accepted,
    reads_disk,
    replacing_entries,
    unusable,
    write_ir,
)
from ..plans.plan import Kernel
from ..plans.target import other_form, smaller_form, verify
from ..support.waiting import work
from .device_launch import launch
from .front_end import made

# Options that the backward inherits from the forward's compilation. A register limit is not among
# them: it was tuned for another kernel.
_INHERITED = (
    "num_warps",
    "num_ctas",
    "num_stages",
    "warp_size",
    "enable_fp_fusion",
    "default_dot_input_precision",
    "debug",
    "opt_level",
    "waves_per_eu",
    "matrix_instr_nonkdim",
    "kpack",
)


# The number of pipeline stages of loops that do not follow the option `num_stages`.
_STAGES = re.compile(r"(?<=tt\.num_stages = )\d+")

# Of a processor of Nvidia's, and the most that a thread has; how many may be missing before a
# kernel is compiled otherwise.
_REGISTERS, _MOST_REGISTERS, _MISSING = 1 << 16, 255, 8
# With fewer, programs are more than run side by side.
_FEWEST_REGISTERS = 32

# The most warps that are tried.
_MOST_WARPS = 16

# CUDA's answer to every call after a kernel has failed.
_LOST = re.compile(
    "illegal memory access|illegal instruction|misaligned address|unspecified launch failure"
    "|device-side assert|invalid program counter|launch timed out"
)


def inherited_options(metadata) -> dict:
    """Return the compile options of the forward that a generated kernel inherits."""
    found = {name: getattr(metadata, name, None) for name in _INHERITED}
    return {name: value for name, value in found.items() if value is not None}


def own_options(forward: dict, plan: dict, chosen: dict) -> dict:
    """Return a kernel's compile options. The plan's `least_warps` counts warps of 32 threads.

    For more than `most_stages` there is no room. Its `num_ctas` is required for a kernel with
    barriers, and overrides any choice. As many as `residents` programs are to share a processor of
    Nvidia's: `maxnreg` is what that leaves for a thread.
    """
    residents = plan.pop("residents", 1)
    least = plan.pop("least_warps", 1)
    most = plan.pop("most_stages", None)
    ctas = plan.pop("num_ctas", None)
    options = {**forward, **plan}
    if most is not None and "num_stages" in options:
        options["num_stages"] = min(options["num_stages"], most)
    if "num_warps" in options:
        enough = 32 * least // max(options.get("warp_size", 32), 32)
        options["num_warps"] = max(options["num_warps"], enough)
    options |= chosen
    registers = _REGISTERS // (32 * options.get("num_warps", 4) * residents) // 8 * 8
    if (
        1 < residents
        and _FEWEST_REGISTERS <= registers < _MOST_REGISTERS
        and options.get("maxnreg") is None
    ):
        options["maxnreg"] = registers
    if ctas is not None and "num_ctas" in options:
        options["num_ctas"] = ctas
    return options


class Executable:
    """A generated kernel, compiled on its first launch.

    `options` are the forward's; the plan's own take precedence. `chosen` are options that somebody
    chose for this kernel, which are never changed. Others are reduced if the kernel does not fit.
    """

    def __init__(self, kernel: Kernel, target, options: dict, chosen=None):
        self.kernel = kernel
        self.target = target
        self.inherited = options
        self.chosen = chosen or {}
        self.options = own_options(options, dict(kernel.options), self.chosen)
        self.compiled = None
        # The text that was compiled, and whether what Triton makes of it, with these options, is
        # wrong and was repaired.
        self.text = kernel.ttir
        self.is_mended = False
        self.fits = True
        self._is_widened = False
        self.variants = tuple(Executable(v, target, options, chosen) for v in kernel.variants)

    def suitable(self, facts) -> tuple[Executable, ...]:
        """Return the variants that may be launched for these facts, as far as is known, and this
        kernel.

        The compiler prefers the first.
        """
        suitable = (v for v in self.variants if v.fits and facts.evaluate(v.kernel.when))
        return (*suitable, self)

    def suited(self, facts) -> Executable:
        """Return the kernel or variant to launch for these facts."""
        return self.suitable(facts)[0]

    def launch(self, grid, args) -> None:
        """Launch on three grid extents; `args` are the values of the TTIR function's arguments."""
        if self.compiled is None:
            self.compile()
        launch(self.compiled, grid, args)

    def compile(self) -> None:
        """Compile unless it has been compiled; raises an `AutodiffError` if it is impossible."""
        if self.compiled is None:
            with work(f"compiling kernel {self.kernel.name!r}"):
                self.compiled = self._compile()

    def _translate(self, path: str):
        """Compile a file of TTIR or of a later stage."""

        def translate(options):
            self.is_mended = options != self.options
            return triton_compile(path, target=self.target, options=dict(options))

        return with_all_products(translate, self.options)

    def _loaded(self, path: str):
        """Return the compiled kernel for a file, from Triton's cache if possible, ready to be
        launched.
        """
        with built_meanwhile(self.target, lambda: source_of(path, self.target)):
            plain = self._translate(path)
            compiled = ensure_right(plain, self._translate)
            code = compiled.asm.get("cubin")
            compiled = ensure_addresses(ensure_sums(ensure_operands(compiled)))
        self.is_mended |= compiled is not plain or compiled.asm.get("cubin") is not code
        check_whole(compiled)
        compiled._init_handles()
        if self.target.backend != "cpu":
            verify(compiled.asm["ttir"], self.kernel.name, self.target)
        return compiled

    def _load(self, path: str):
        """Return the compiled kernel for a file, without using the cache."""
        try:
            return self._loaded(path)
        except (OutOfResources, DoesNotFit):
            raise
        except Exception as error:
            # Triton does not check its cache files. Newly compiled text is not from the cache.
            compiling = comes_from(error, {Executable._translate.__code__})
            if not reads_disk() or (compiling and not is_of_cache(error)):
                raise
        try:
            with replacing_entries():
                return self._loaded(path)
        except OSError as error:
            raise unusable(repr(error)) from error

    def _compile(self):
        noted = accepted_form(self.kernel.ttir, self.target)
        ttir = noted or self._made()
        while True:
            path = accepted_file(self.kernel.ttir, self.target, ttir)
            path = path or write_ir(ttir, self.kernel.name)
            try:
                compiled = self._load(path)
            except OutOfResources as error:
                smaller = self._smaller(error, ttir)
                if smaller is None:
                    self.fits = False
                    raise DoesNotFit(self._does_not_fit(error)) from error
                ttir = smaller
            except DoesNotFit:
                if not self._widen():
                    self.fits = False
                    raise
            except AutodiffError:
                raise
            except (RuntimeError, ValueError) as error:
                if _LOST.search(str(error)):
                    raise AutodiffError(
                        f"kernel {self.kernel.name!r} cannot be loaded, as one that was launched "
                        f"before has failed: {error}. CUDA_LAUNCH_BLOCKING=1 shows which"
                    ) from error
                # The noted text may be damaged.
                again = ttir == noted
                ttir = self._made() if again else self._other_form(error, ttir, path)
                noted = None
            else:
                if self._takes_leaner(compiled):
                    noted = accepted_form(self.kernel.ttir, self.target)
                    ttir = noted or self._made()
                    continue
                if self._lacks_registers(compiled):
                    continue
                # Triton would keep the parsed module as long as the kernel.
                compiled.src.module = None
                self.text = ttir
                return compiled

    def _made(self) -> str:
        """Return the kernel after the passes that Triton runs on Python."""
        try:
            ttir = made(self.kernel.ttir, self.target, self.options)
        except (OSError, RuntimeError):
            # Whatever is wrong, it is wrong again when the kernel is compiled.
            return self.kernel.ttir
        note_accepted(self.kernel.ttir, self.target, ttir)
        return ttir

    def _other_form(self, error, ttir: str, path: str) -> str:
        """Return another form of a kernel that Triton has rejected."""
        other = other_form(ttir)
        if other is None:
            raise AutodiffError(
                f"Triton rejects the generated kernel {self.kernel.name!r} ({path}), unless a "
                f"file of its cache is damaged (delete {knobs.cache.dir}): {error}. Tiles of "
                f"another size, or a Triton after {triton.__version__}, may get around that"
            ) from error
        note_accepted(self.kernel.ttir, self.target, other)
        return other

    def _smaller(self, error: OutOfResources, ttir: str) -> str | None:
        """Reduce the resources of a kernel that did not fit, by options or in the returned text.

        Pipelining multiplies shared memory, and a derived kernel has more live tiles than the
        forward; warps share registers. Returns None if nothing is left to reduce.
        """
        if error.name == "threads":
            if self._is_widened:
                return None
            warps = self._varied("num_warps") // 2
            self._limit("num_warps", warps)
            return ttir if warps else None
        own = [int(stages) for stages in _STAGES.findall(ttir)]
        stages = max([self._varied("num_stages"), *own]) - 1
        if not stages:
            return smaller_form(ttir)
        self._limit("num_stages", stages)
        return _STAGES.sub(lambda found: str(min(int(found[0]), stages)), ttir)

    def _widen(self) -> bool:
        """Take more warps, so that a thread holds less of a tile; returns False if that is over."""
        warps = 2 * self.options.get("num_warps", 4)
        if "num_warps" in self.chosen or warps > _MOST_WARPS:
            return False
        self.options["num_warps"], self._is_widened = warps, True
        return True

    def _lacks_registers(self, compiled) -> bool:
        """Lift a limit of registers that nobody has asked for, if it is too low for a kernel."""
        is_own = "residents" in dict(self.kernel.options)
        asked = self.chosen.get("maxnreg", self.inherited.get("maxnreg"))
        if not is_own or asked is not None or self.options.get("maxnreg") is None:
            return False
        if compiled.n_spills <= _MISSING:
            return False
        del self.options["maxnreg"]
        return True

    def _takes_leaner(self, compiled) -> bool:
        """Go on with the leaner text of a kernel that has too few registers, if it has one."""
        leaner = self.kernel.leaner
        if leaner is None or compiled.n_spills <= _MISSING:
            return False
        self.kernel = replace(self.kernel, ttir=leaner, leaner=None)
        return True

    def _varied(self, name: str) -> int:
        """Return an option that may be varied; 1 if somebody chose it."""
        return 1 if name in self.chosen else self.options.get(name, 1)

    def _limit(self, name: str, most: int) -> None:
        if name not in self.chosen:
            self.options[name] = min(self.options.get(name, 1), most)

    def _does_not_fit(self, error: OutOfResources) -> str:
        chosen = ", ".join(f"{name}={value}" for name, value in self.chosen.items())
        way_out = f" without {chosen}, or" if chosen else ""
        return (
            f"the generated kernel {self.kernel.name!r} keeps more on chip than there is room "
            f"for: {error} Launch the kernel{way_out} with smaller tiles"
        )
