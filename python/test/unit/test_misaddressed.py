"""Products that ptxas 12.8 gives wrong addresses, where it runs out of registers (misaddressed.py).

What ptxas makes of a kernel is looked at without a GPU. An H100 reads outside of shared memory.
"""

import subprocess

import hopper
import pytest
from triton import knobs
from triton.backends.autodiff import AutodiffError, misaddressed
from triton.backends.autodiff.assembler import instructions

HEADS, WIDTH, CHUNK = 3, 32, 64
HALF, FLOAT = "*fp16", "*fp32"
# q, k, w, w2, beta, AT, dA_local, dq, dq_new, dk, dk_new, dw, dbeta, dw1, dw2, T
TYPES = [HALF] * 4 + [FLOAT] + [HALF] * 4 + [FLOAT] + [HALF] * 3 + [FLOAT] * 2 + ["i32"]


@pytest.fixture(scope="module")
def wrong():
    """A public kernel that ptxas 12.8 gives wrong addresses."""
    if [int(part) for part in knobs.nvidia.ptxas.version.split(".")] >= [12, 9]:
        pytest.skip("ptxas is right from 12.9 on")
    module = pytest.importorskip("fla.ops.path_attn.intra_chunk_preprocess_bwd")
    sizes = {"HQ": HEADS, "G": 1, "H": HEADS, "K": WIDTH, "BT": CHUNK, "BK": WIDTH}
    constants = {"offsets": None, "indices": None, **sizes, "IS_VARLEN": False}
    kernel = module.intra_chunk_preprocess_bwd_kernel.fn
    text = hopper.ttir(kernel, TYPES, constants, multiples_of_16=True)

    def compiled():
        return hopper.compiled_text(text, assemble=True, num_warps=4, num_stages=3)

    assert misaddressed.is_misaddressed(compiled())
    return compiled


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))


def _shown(cubin, folder):
    """The instructions of a cubin as text."""
    file = folder / "kernel.cubin"
    file.write_bytes(cubin)
    command = [knobs.nvidia.nvdisasm.path, "-c", str(file)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_assembled_anew(wrong, tmp_path, monkeypatch):
    compiled = wrong()
    assert "R1, -0x7fffffe0" in _shown(compiled.asm["cubin"], tmp_path)
    right = misaddressed.ensure_addresses(compiled)
    assert not misaddressed.is_misaddressed(right)
    assert right.kernel == right.asm["cubin"]
    assert "R1, -0x7fffffe0" not in _shown(right.kernel, tmp_path)
    # It is there the next time.
    monkeypatch.setattr(misaddressed, "assembled_by_newer", None)
    assert misaddressed.ensure_addresses(wrong()).kernel == right.kernel


def test_what_cannot_be_mended_is_refused(wrong, monkeypatch):
    compiled = wrong()
    monkeypatch.setattr(misaddressed, "assembled_by_newer", lambda kernel: kernel.asm["cubin"])
    with pytest.raises(AutodiffError, match="wrong addresses.*TRITON_PTXAS_PATH"):
        misaddressed.ensure_addresses(compiled)
    with pytest.warns(UserWarning, match="products of kernel 'k' wrong addresses"):
        misaddressed.warn_of_misaddressed(compiled, "k")


def test_arrays_of_a_kernel_s_own(wrong):
    """Their addresses are made of the stack pointer, too, but not the upper halves of these."""
    cubin = wrong().asm["cubin"]
    lower, upper = filter(misaddressed._reads_stack_pointer, instructions(cubin))
    assert not misaddressed._carries_into_stack_pointer(lower)
    assert misaddressed._carries_into_stack_pointer(upper)
    assert misaddressed._is_misaddressed("wgmma .local", cubin)
    assert not misaddressed._is_misaddressed(".local", cubin)
