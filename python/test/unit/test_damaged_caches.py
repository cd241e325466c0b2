"""Caches that are damaged, or cannot be written to: made again, or named in an error."""

import contextlib
import copy
import errno
import os
import shutil
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import gradients
import pytest
import torch
import triton
import triton.language as tl
from torch._dynamo.exc import Unsupported
from torch.fx.experimental.proxy_tensor import make_fx
from triton import knobs
from triton.backends.autodiff import AutodiffError, differentiable
from triton.backends.autodiff.compiling.executable import Executable
from triton.backends.autodiff.faults.elf import is_whole
from triton.backends.autodiff.plans import cache


@pytest.fixture(autouse=True)
def needs_gradients():
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")


@triton.jit
def decay(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """y = w · x · exp(−x), normalized: with a forward of ours."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    total = tl.sum(x * x, 0) + 1.0
    y = tl.load(w_ptr + i, mask=i < n) * x * tl.exp(-x) / total
    tl.store(y_ptr + i, y, mask=i < n)


def run(device="cpu", kernel=decay):
    """Compare gradients of a kernel that this process has not compiled with PyTorch's."""
    cache._plans.clear()
    x, w = (torch.randn(50, device=device, requires_grad=True) for _ in range(2))
    y = torch.empty_like(x)
    differentiable(triton.jit(copy.copy(kernel.fn)))[(1,)](x, w, y, 50, BLOCK=64)
    upstream = torch.randn_like(y)
    found = torch.autograd.grad(y, (x, w), upstream)
    truth = w * x * torch.exp(-x) / ((x * x).sum() + 1)
    expected = torch.autograd.grad(truth, (x, w), upstream)
    torch.testing.assert_close(y, truth, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A cache folder of this test's own."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_plans", {})
    return tmp_path / "cache"


def _half(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _directory(file):
    file.unlink()
    file.mkdir()


DAMAGES = {
    "empty": lambda file: file.write_bytes(b""),
    "half": _half,
    "garbage": lambda file: file.write_bytes(os.urandom(1000)),
    "text": lambda file: file.write_text("{}"),
    "gone": lambda file: file.unlink(),
    "a folder": _directory,
}


def is_ours(file):
    """Whether a file of the cache is a plan, or belongs to a derived kernel."""
    return file.name.endswith(".plan.json") or "decay_" in file.name


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_file(device, folder, damage):
    """Ours are made again; a damaged forward, which is Triton's, is an error with the folder."""
    run(device)
    whole = folder.parent / "whole"
    folder.rename(whole)
    files = sorted(f.relative_to(whole) for f in whole.rglob("*") if f.is_file())
    assert sum(is_ours(f) for f in files) > 4 and sum(not is_ours(f) for f in files) > 3
    for file in files:
        if file.suffix == ".so" and damage in ("empty", "half", "garbage", "text"):
            continue  # A launcher of Triton's, which the operating system maps as it is.
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        DAMAGES[damage](folder / file)
        if is_ours(file) and damage != "a folder":
            run(device)
            # It is whole again.
            with unwritable(folder):
                run(device)
            continue
        try:
            run(device)
        except AutodiffError as error:
            assert str(folder) in str(error), file


def test_threads_that_replace_entries():
    """One that waits for another leaves Triton's cache as it was before both."""
    waits, goes_on = threading.Event(), threading.Event()

    def replace():
        waits.set()
        with cache.replacing_entries():
            goes_on.wait(60)

    with cache.replacing_entries():
        thread = threading.Thread(target=replace)
        thread.start()
        waits.wait(60)
        time.sleep(0.1)
    goes_on.set()
    thread.join()
    assert knobs.cache.manager_class is None


def test_binaries_that_were_cut_off():
    """A GPU's driver may hang on one; what ends early is seen, wherever it ends."""
    header = bytearray(64)
    header[:5] = b"\x7fELF\x02"
    struct.pack_into("<Q", header, 0x28, 80)
    struct.pack_into("<HH", header, 0x3A, 64, 2)
    sections = bytearray(128)
    struct.pack_into("<I", sections, 4, 1)
    struct.pack_into("<QQ", sections, 0x18, 64, 16)
    # The second takes no room in the file (.bss).
    struct.pack_into("<I", sections, 64 + 4, 8)
    struct.pack_into("<QQ", sections, 64 + 0x18, 64, 1 << 40)
    binary = bytes(header + bytes(16) + sections)
    assert is_whole(binary)
    assert not any(is_whole(binary[:n]) for n in range(len(binary)))
    struct.pack_into("<Q", sections, 0x20, 1000)
    assert not is_whole(bytes(header + bytes(16) + sections))
    assert not is_whole(b"") and not is_whole(b"no ELF file")
    # Segments may be the last in it.
    struct.pack_into("<Q", header, 0x20, 208)
    struct.pack_into("<HH", header, 0x36, 56, 1)
    struct.pack_into("<Q", sections, 0x20, 16)
    binary = bytes(header + bytes(16) + sections + bytes(56))
    assert is_whole(binary)
    assert not any(is_whole(binary[:n]) for n in range(len(binary)))


@contextlib.contextmanager
def unwritable(folder):
    """Let nothing be written to a folder; permissions do not stop root."""
    replace = os.replace

    def refuse(source, target):
        if str(target).startswith(str(folder)):
            raise OSError(errno.ENOSPC, "No space left")
        replace(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        yield


def test_full_disk(device, folder):
    with unwritable(folder):
        with pytest.raises(AutodiffError, match=f"cache in {folder} cannot be used.*No space left"):
            run(device)
    # The forward is there, and nothing else.
    with torch.no_grad():
        x = torch.randn(50, device=device)
        decay[(1,)](x, x, torch.empty_like(x), 50, BLOCK=64)
    with unwritable(folder):
        with pytest.raises(AutodiffError, match=f"cache in {folder} cannot be used.*No space left"):
            run(device)
    run(device)
    # All is there.
    with unwritable(folder):
        run(device)


def test_files_that_cannot_grow(tmp_path):
    """As with `ulimit -f 0`: the kernel of the operating system refuses, not a stand-in."""
    tests = os.path.dirname(__file__)
    script = (
        "import resource, sys; sys.path[:0] = [{!r}, {!r}]; import test_damaged_caches as t; {};"
        " t.run(); print('right')"
    )
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    environment["CUDA_VISIBLE_DEVICES"] = ""

    def process(what):
        text = script.format(tests, os.path.dirname(tests), what)
        command = [sys.executable, "-B", "-c", text]
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    _, said = process(limit).communicate()
    assert f"AutodiffError: Triton's cache in {tmp_path / 'cache'} cannot be used" in said, said
    # Two that fill one cache at once.
    for out, said in [p.communicate() for p in (process("pass"), process("pass"))]:
        assert out == "right\n", said
    out, said = process(limit).communicate()
    assert out == "right\n", said


def test_folder_that_is_a_file(device, folder, monkeypatch):
    folder.write_text("")
    with pytest.raises(AutodiffError, match=f"cache in {folder} cannot be used.*directory"):
        run(device)
    folder.unlink()
    run(device)
    for place in sorted({f.parent for f in folder.rglob("*_bwd*") if f.is_file()}):
        shutil.rmtree(place)
        place.write_text("")
        with pytest.raises(AutodiffError, match=f"cache in {folder} cannot be used"):
            run(device)
        place.unlink()
        run(device)


@pytest.mark.parametrize("whole", [True, False])
def test_in_a_graph(device, folder, whole):
    """A tracer says what is wrong, too: not that the kernel has no derivative."""
    folder.write_text("")
    kernel = differentiable(triton.jit(copy.copy(decay.fn)))

    def launch(x, w):
        y = torch.empty_like(x)
        kernel[(1,)](x, w, y, 50, BLOCK=64)
        return y

    x, w = (torch.randn(50, device=device, requires_grad=True) for _ in range(2))
    compiled = torch.compile(launch, backend="aot_eager", fullgraph=whole)
    with pytest.raises(Unsupported if whole else AutodiffError) as caught:
        compiled(x, w)
    assert f"cache in {folder} cannot be used" in str(caught.value)
    if whole:
        assert "Message: no graph can hold this launch" in str(caught.value)
    with pytest.raises(AutodiffError, match=f"make_fx.*cache in {folder} cannot be used"):
        make_fx(launch)(x, w)
    folder.unlink()
    torch._dynamo.reset()
    torch.testing.assert_close(compiled(x, w), launch(x, w))


def test_damaged_note_of_an_accepted_form(device, folder, monkeypatch):
    """What was noted in place of a kernel that Triton rejected is not trusted either."""
    noted = []
    compile_ = Executable._compile

    def compile(executable):
        cache.note_accepted(executable.kernel.ttir, executable.target, "module { tt.frobnicate")
        noted.append(executable)
        return compile_(executable)

    monkeypatch.setattr(Executable, "_compile", compile)
    run(device)
    assert noted


def test_what_triton_cannot_compile_is_no_damage(device, folder, monkeypatch):
    """An error that is there a second time is that of the kernel."""
    tried = []

    def loaded(executable, path):
        tried.append(Path(path).read_text())
        raise RuntimeError("PassManager::run failed")

    monkeypatch.setattr(Executable, "_loaded", loaded)
    with pytest.raises(AutodiffError, match=f"Triton rejects.*{folder}.*PassManager"):
        run(device)
    assert len(set(tried)) * 2 == len(tried)
