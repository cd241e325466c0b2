"""What a kernel gives up where it does not fit on a processor: stages, warps, early loads."""

import contextlib
import types
from pathlib import Path

import hopper
import pytest
from triton.backends.autodiff import AutodiffError
from triton.backends.autodiff.compiling import executable
from triton.backends.autodiff.compiling.executable import Executable
from triton.backends.autodiff.errors import DoesNotFit
from triton.backends.autodiff.inspecting import corpus
from triton.backends.autodiff.plans.plan import Kernel
from triton.backends.autodiff.plans.target import smaller_form
from triton.backends.compiler import GPUTarget
from triton.runtime.errors import OutOfResources

HOST = GPUTarget("cpu", "x86_64", 1)


@pytest.fixture
def compiler(monkeypatch):
    """A compiler for which a kernel fits if `fits(options)`; it notes what it was asked."""

    class Compiler:
        def __init__(self):
            self.tried = []
            self.error = ("shared memory", 300000, 232448)

        def compile(self, path, target, options):
            self.tried.append((options["num_stages"], options["num_warps"]))
            self.text = Path(path).read_text()

            def init():
                if not self.fits(options):
                    name, required, limit = self.error
                    raise OutOfResources(required, limit, name)

            return types.SimpleNamespace(
                asm={}, _init_handles=init, src=types.SimpleNamespace(module=1)
            )

    found = Compiler()
    monkeypatch.setattr(executable, "triton_compile", found.compile)
    # On a GPU a launcher would be built of what is no kernel.
    monkeypatch.setattr(executable, "built_meanwhile", lambda *_: contextlib.nullcontext())
    return found


def made(**chosen):
    kernel = Kernel("k_bwd", "module {}", None, ())
    return Executable(kernel, HOST, {"num_stages": 3, "num_warps": 8}, chosen)


def test_fewer_stages(compiler):
    compiler.fits = lambda options: options["num_stages"] == 1
    kernel = made()
    kernel.compile()
    assert compiler.tried == [(3, 8), (2, 8), (1, 8)]
    assert kernel.options["num_stages"] == 1


def test_fewer_warps(compiler):
    compiler.error = ("threads", 256, 128)
    compiler.fits = lambda options: options["num_warps"] <= 2
    made().compile()
    assert compiler.tried == [(3, 8), (3, 4), (3, 2)]


def test_loops_with_stages_of_their_own(compiler):
    """They give way together with the option, and are left alone where it is threads that lack."""
    kernel = Kernel("k_bwd", "{tt.num_stages = 4 : i32} {tt.num_stages = 2 : i32}", None, ())
    compiler.fits = lambda options: compiler.text.count("= 1") == 2
    Executable(kernel, HOST, {"num_stages": 2, "num_warps": 8}).compile()
    assert compiler.tried == [(2, 8), (2, 8), (2, 8), (1, 8)]
    assert compiler.text == "{tt.num_stages = 1 : i32} {tt.num_stages = 1 : i32}"
    compiler.tried.clear()
    Executable(kernel, HOST, {"num_warps": 8}, {"num_stages": 3}).compile()
    assert compiler.tried == [(3, 8)] * 4
    compiler.error = ("threads", 256, 128)
    compiler.fits = lambda options: options["num_warps"] == 4
    Executable(kernel, HOST, {"num_stages": 2, "num_warps": 8}).compile()
    assert compiler.text == kernel.ttir


def test_tiles_need_warps():
    """The forward's warps where they are enough, more where the plan says so; 64 threads count."""

    def warps(forward, chosen=None, **options):
        kernel = Kernel("k_bwd", "", None, (), (("least_warps", 8),))
        forward = {"num_warps": forward, **options}
        return Executable(kernel, HOST, forward, chosen).options["num_warps"]

    assert (warps(4), warps(8), warps(16)) == (8, 8, 16)
    assert warps(2, warp_size=64) == 4
    assert warps(4, {"num_warps": 2}) == 2


def test_more_warps(compiler, monkeypatch):
    """Where ptxas runs out of registers for addresses, unless somebody chose the warps."""

    def ensure_addresses(compiled):
        if compiler.tried[-1][1] < enough:
            raise DoesNotFit("wrong addresses")
        return compiled

    monkeypatch.setattr(executable, "ensure_addresses", ensure_addresses)
    compiler.fits, enough = lambda _: True, 16
    kernel = made()
    kernel.compile()
    assert compiler.tried == [(3, 8), (3, 16)] and kernel.options["num_warps"] == 16
    with pytest.raises(DoesNotFit, match="wrong addresses"):
        made(num_warps=8).compile()
    enough = 32
    with pytest.raises(DoesNotFit, match="wrong addresses"):
        made().compile()


@pytest.mark.parametrize("missing", [0, 2, 100])
def test_programs_share_registers(compiler, monkeypatch, missing):
    """A thread has as many as its programs leave, unless it lacks more than a few."""
    tried = []

    def loaded(kernel, path):
        tried.append(kernel.options.get("maxnreg"))
        few = 0 if tried[-1] is None else missing
        return types.SimpleNamespace(n_spills=few, src=types.SimpleNamespace())

    def of(forward=None, **chosen):
        tried.clear()
        residents = chosen.pop("residents", 2)
        options = (("num_warps", 8), ("residents", residents))
        kernel = Kernel("k_bwd", "module {}", (2, 1, 1), (), options)
        found = Executable(kernel, HOST, {"num_warps": 4, **(forward or {})}, chosen)
        found.compile()
        return list(tried)

    monkeypatch.setattr(Executable, "_loaded", loaded)
    assert of() == ([128] if missing < 8 else [128, None])
    assert of({"maxnreg": 64}) == of(maxnreg=64) == [64]
    # Two programs of four warps have all the registers that their threads can have.
    assert of(num_warps=4) == [None]
    # So many programs wait for one another; they do not share registers.
    assert of(residents=152) == [None]


# Two products whose operands are loaded before both.
OPERANDS_FIRST = """
module {
  tt.func public @k_jvp(%pa: !tt.ptr<f32>, %pc: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tt.expand_dims %i {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %width = arith.constant dense<128> : tensor<128x1xi32>
    %none = arith.constant dense<0.0> : tensor<128x128xf32>
    %starts = arith.muli %rows, %width : tensor<128x1xi32>
    %down = tt.broadcast %starts : tensor<128x1xi32> -> tensor<128x128xi32>
    %right = tt.broadcast %columns : tensor<1x128xi32> -> tensor<128x128xi32>
    %at = arith.addi %down, %right : tensor<128x128xi32>
    %a0 = tt.splat %pa : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
    %a1 = tt.addptr %a0, %at : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
    %a = tt.load %a1 : tensor<128x128x!tt.ptr<f32>>
    %c0 = tt.splat %pc : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
    %c1 = tt.addptr %c0, %at : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
    %c = tt.load %c1 : tensor<128x128x!tt.ptr<f32>>
    %d1 = tt.addptr %c1, %at : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
    %d = tt.load %d1 : tensor<128x128x!tt.ptr<f32>>
    %e1 = tt.addptr %d1, %at : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
    %e = tt.load %e1 : tensor<128x128x!tt.ptr<f32>>
    %y = tt.dot %a, %c, %none, inputPrecision = tf32 :
        tensor<128x128xf32> * tensor<128x128xf32> -> tensor<128x128xf32>
    %z = tt.dot %d, %e, %y, inputPrecision = tf32 :
        tensor<128x128xf32> * tensor<128x128xf32> -> tensor<128x128xf32>
    %y0 = tt.splat %py : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
    %y1 = tt.addptr %y0, %at : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
    tt.store %y1, %z : tensor<128x128x!tt.ptr<f32>>
    tt.return
  }
}
"""


def test_loads_beside_products(compiler):
    """What does not fit with one stage loads its tiles one after the other, if that is enough."""
    kernel = Kernel("k_jvp", OPERANDS_FIRST, None, ())
    options = {"num_stages": 2, "num_warps": 8}
    compiler.fits = lambda _: compiler.text.rindex("tt.load") > compiler.text.index("tt.dot")
    found = Executable(kernel, HOST, dict(options))
    found.compile()
    assert compiler.tried == [(2, 8), (1, 8), (1, 8)] and found.text == compiler.text
    compiler.fits = lambda _: False
    with pytest.raises(AutodiffError, match="'k_jvp'.*shared memory.*with smaller tiles"):
        Executable(kernel, HOST, dict(options)).compile()


@pytest.mark.every_triton
def test_loads_beside_products_take_less():
    """Triton keeps an operand from its load to its product."""
    taken = [
        corpus.compiled_ttir(text, hopper.TARGET, False, {"num_stages": 1}).metadata.shared
        for text in (OPERANDS_FIRST, smaller_form(OPERANDS_FIRST))
    ]
    assert taken[0] > hopper.SHARED_MEMORY > taken[1]


def test_stages_that_leave_room():
    """Those of a kernel with tangents are no more; somebody's own choice stays."""

    def stages(forward, chosen=None):
        kernel = Kernel("k_jvp", "", None, (), (("most_stages", 2),))
        return Executable(kernel, HOST, {"num_stages": forward}, chosen).options["num_stages"]

    assert (stages(1), stages(2), stages(4)) == (1, 2, 2)
    assert stages(4, {"num_stages": 3}) == 3


def test_nothing_fits(compiler):
    compiler.fits = lambda options: False
    with pytest.raises(AutodiffError, match="'k_bwd'.*shared memory.*with smaller tiles"):
        made().compile()
    assert len(compiler.tried) == 3


def test_chosen_options_stay(compiler):
    """What the user asked for is not replaced by something else."""
    compiler.fits = lambda options: options["num_stages"] < 3
    with pytest.raises(AutodiffError, match="without num_stages=3, or with smaller tiles"):
        made(num_stages=3).compile()
    assert compiler.tried == [(3, 8)]


@pytest.mark.parametrize("missing", [0, 2, 100])
def test_a_leaner_text(compiler, monkeypatch, missing):
    """It is compiled where more than a few registers are missing, and then there is no other."""
    texts = []

    def loaded(kernel, path):
        texts.append(kernel.kernel.ttir)
        return types.SimpleNamespace(n_spills=missing, src=types.SimpleNamespace())

    monkeypatch.setattr(Executable, "_loaded", loaded)
    kernel = Kernel("k_jvp", "module {}", (2, 1, 1), (), leaner="module { }")
    found = Executable(kernel, HOST, {"num_warps": 4})
    found.compile()
    assert texts == (["module {}"] if missing < 8 else ["module {}", "module { }"])
    assert found.kernel.ttir == texts[-1]
