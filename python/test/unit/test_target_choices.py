"""Derived kernels for devices that are not here: Triton compiles them, and they fit."""

import json

import hopper
import pytest
import test_matrix_instructions as attention
import triton
from kernels import large_tiles, matmul
from test_corpus import SAMPLES
from test_tiles import chunk_sizes
from triton.backends.autodiff import __main__ as command
from triton.backends.autodiff import _native
from triton.backends.autodiff.inspecting import corpus
from triton.backends.autodiff.plans.target import beyond_memory

# Bytes of shared memory that a program may have, as the vendors say.
MEMORY = {
    "cuda:80": 163 * 1024,
    "cuda:86": 99 * 1024,
    "cuda:89": 99 * 1024,
    "cuda:90": 227 * 1024,
    "cuda:100": 227 * 1024,
    "cuda:120": 99 * 1024,
    "hip:gfx942": 64 * 1024,
}


def _attention(dim, causal=True):
    return hopper.ttir(*attention._attention(dim, causal), multiples_of_16=True)


def _chunk(dtype):
    rows, keys, values, block = chunk_sizes("one program", dtype == "fp16")
    keys, values = (triton.next_power_of_2(n) for n in (keys, block or values))
    constants = {"ROWS": rows, "KEYS": keys, "VALUES": values, "PRECISION": "tf32"}
    return hopper.ttir(large_tiles.chunk_kernel, [f"*{dtype}"] * 6 + ["i32"] * 2, constants)


def _product(rows, columns, advance):
    tile = {"BLOCK_M": rows, "BLOCK_N": columns, "BLOCK_K": advance, "PRECISION": "ieee"}
    strides = {"stride_ak": 1, "stride_bn": 1, "stride_cn": 1}
    types = ["*bf16"] * 3 + ["i32"] * 6
    return hopper.ttir(matmul.matmul_kernel, types, {**tile, **strides}, multiples_of_16=True)


FORMS = {
    "attention 64": lambda: _attention(64),
    "attention 128": lambda: _attention(128),
    "products of one tile": lambda: _chunk("fp16"),
    "products of one tile in float32": lambda: _chunk("fp32"),
    "product": lambda: _product(128, 128, 32),
    "product in long steps": lambda: _product(64, 64, 128),
}


def _plan(text, target):
    request = corpus.request_for(corpus.parse_target(target))
    return json.loads(_native.differentiate(text, request, "kernel.ttir"))


def _refused(text, target, assemble=False):
    """Why derived kernels are none for the device, by name."""
    device = corpus.parse_target(target)
    reasons = {
        kernel["name"]: corpus.why_not_compiled(
            kernel["ttir"], device, assemble, kernel.get("options")
        )
        for kernel in corpus.kernels_of(_plan(text, target))
    }
    assert reasons
    return {name: reason for name, reason in reasons.items() if reason}


@pytest.mark.parametrize("target", MEMORY)
def test_memory_of_targets(target):
    device = corpus.parse_target(target)
    assert beyond_memory(MEMORY[target], device) == ""
    assert f"at most {MEMORY[target]} are" in beyond_memory(MEMORY[target] + 1, device)


@pytest.mark.parametrize("target", ["cuda:89", "cuda:120", "hip:gfx942"])
def test_little_memory(target):
    """What is left of an attention's choices for sm_90 where there is less memory."""
    assert _refused(_attention(128), target) == {}


@pytest.mark.slow
@pytest.mark.parametrize("target", MEMORY)
@pytest.mark.parametrize("form", FORMS)
def test_derived_kernels_fit(form, target):
    assert _refused(FORMS[form](), target, assemble=target.startswith("cuda")) == {}


@pytest.mark.slow
@pytest.mark.parametrize("target", [*MEMORY, "cpu"])
def test_samples_compile(target):
    """Where Triton compiles a kernel for a device, it compiles what is derived from it."""
    rows = corpus.run_corpus(SAMPLES, target, ("parsed", "forward", "differentiated", "accepted"))
    compiled = [row for row in rows if row.reached("forward") and row.reached("differentiated")]
    assert len(compiled) > len(rows) // 2
    assert {row.file: row.results for row in compiled if not row.reached("accepted")} == {}


def test_table_of_choices(tmp_path, capsys):
    """It counts the kernels for which something is chosen otherwise."""
    (tmp_path / "product.ttir").write_text(_product(128, 128, 32))
    (tmp_path / "short.ttir").write_text((SAMPLES / "loads_and_stores.ttir").read_text())
    path = tmp_path / "plans"
    targets = ["cuda:90", "cuda:89", "cpu"]
    assert (
        command.main(["corpus", str(tmp_path), "--record", str(path), "--targets", *targets]) == 0
    )
    capsys.readouterr()
    assert command.main(["corpus", "--choices", str(path)]) == 0
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in capsys.readouterr().out.splitlines()
    ]
    assert rows[0] == ["2 kernels", "sm_89", "cpu"]
    table = {row[0]: row[1:] for row in rows[2:]}
    assert table["stages of products"] == ["1", "0"]
    assert int(table["any of these"][0]) >= 1
    assert {row[1] for row in table.values()} == {"0"}
