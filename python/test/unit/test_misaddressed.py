"""Products that ptxas 12.8 gives wrong addresses, where it runs out of registers (misaddressed.py).

What ptxas makes of a kernel is looked at without a GPU. An H100 reads outside of shared memory.
"""

import hopper
import pytest
from triton.backends.autodiff import AutodiffError
from triton.backends.autodiff.faults import misaddressed
from triton.backends.autodiff.faults.assembler import instructions
from triton.backends.autodiff.faults.table import fault

HALF, FLOAT = "*fp16", "*fp32"


def of_vector_registers():
    """A public kernel: a descriptor is made of the stack pointer."""
    module = pytest.importorskip("fla.ops.path_attn.intra_chunk_preprocess_bwd")
    # q, k, w, w2, beta, AT, dA_local, dq, dq_new, dk, dk_new, dw, dbeta, dw1, dw2, T
    types = [HALF] * 4 + [FLOAT] + [HALF] * 4 + [FLOAT] + [HALF] * 3 + [FLOAT] * 2 + ["i32"]
    sizes = {"HQ": 3, "G": 1, "H": 3, "K": 32, "BT": 64, "BK": 32}
    constants = {"offsets": None, "indices": None, **sizes, "IS_VARLEN": False}
    kernel = module.intra_chunk_preprocess_bwd_kernel.fn
    return hopper.ttir(kernel, types, constants, multiples_of_16=True)


def of_uniform_registers():
    """A derived kernel: a descriptor is made of what another product has left."""
    module = pytest.importorskip("fla.ops.gated_delta_product.chunk_deltaproduct_h")
    # k, v, w, v_new, g, h, ht, T
    types = ["*bf16"] * 4 + [FLOAT, "*bf16", FLOAT, "i32"]
    sizes = {"num_householder": 2, "H": 2, "K": 32, "V": 32, "BT": 64, "BV": 32}
    missing = dict.fromkeys(["h0", "cu_seqlens", "chunk_offsets"])
    flags = {"USE_G": True, "STORE_FINAL_STATE": True, "SAVE_NEW_VALUE": True}
    flags |= {"USE_INITIAL_STATE": False, "IS_VARLEN": False}
    kernel = module.chunk_gated_delta_product_fwd_kernel_h_blockdim64.fn.fn
    text = hopper.ttir(kernel, types, {**missing, **sizes, **flags}, multiples_of_16=True)
    (derived,) = hopper.plan_of(text)["backward"]
    return derived["ttir"]


@pytest.fixture(scope="module", params=[of_vector_registers, of_uniform_registers])
def wrong(request):
    """A kernel that ptxas 12.8 gives wrong addresses, as often as it is asked for."""
    if not fault("wrong-addresses").affects(hopper.ptxas_version()):
        pytest.skip("this ptxas is right")
    text = request.param()

    def compiled():
        return hopper.compiled_text(text, assemble=True, num_warps=4, num_stages=3)

    assert misaddressed.is_misaddressed(compiled())
    return compiled


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))


def test_assembled_anew(wrong, monkeypatch):
    compiled = wrong()
    right = misaddressed.ensure_addresses(compiled)
    assert not misaddressed.is_misaddressed(right)
    assert right.kernel == right.asm["cubin"]
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


def test_descriptors_are_found(wrong):
    """What is looked at: sums of a register, a carry and the upper half of a descriptor."""
    cubin = misaddressed.ensure_addresses(wrong()).kernel
    assert sum(misaddressed._upper_half_of(each) is not None for each in instructions(cubin)) > 5
    assert not misaddressed.has_wrong_addresses("no product", wrong().kernel)
