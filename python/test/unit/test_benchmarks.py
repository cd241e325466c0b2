"""The benchmarks run: each kind of row, at a small size, with right gradients on all sides."""

import json
import sys
import types
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
TILES = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32}


@pytest.fixture(scope="module", autouse=True)
def benchmarks():
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


def small():
    """Makers of rows, by what they are."""
    from cases import attention, elementwise, losses, norms, products, recurrences

    heads = {"tiles": {"BLOCK_M": 64, "BLOCK_N": 32}, "tuned": False}
    half = torch.float16
    return {
        "swiglu": lambda: elementwise.gated("swiglu", 5, 100, elementwise._liger_swiglu),
        "geglu": lambda: elementwise.gated("geglu", 5, 100, elementwise._liger_geglu),
        "dropout": lambda: elementwise.dropout(3000),
        "rotary": lambda: elementwise.rotary_case(2, 8, 4, 16),
        "affine": lambda: elementwise.affine(3, 8, 20),
        "channels": lambda: elementwise.channels(3, 8, 20),
        "packed": lambda: elementwise.gate_and_weights(5, 100),
        "pixels": lambda: elementwise.pixels(3, 8, 12),
        "convolution": lambda: elementwise.convolution(2, 37, 20, 4),
        "activated convolution": lambda: elementwise.convolution(2, 37, 20, 4, "tanh"),
        "maxima": lambda: elementwise.maxima(3, 9, 13),
        "stencil": lambda: elementwise.stencil(9, 37),
        "layer norm": lambda: norms.layer_norm(12, 100),
        "looped layer norm": lambda: norms.looped_layer_norm(12, 100),
        "running norm": lambda: norms.running_norm(12, 100, block=16),
        "rms norm": lambda: norms.rms_norm(12, 100),
        "group norm": lambda: norms.group_norm_case(3, 8, 32, 2),
        "softmax": lambda: norms.row_softmax("softmax", 12, 100),
        "persistent softmax": lambda: norms.persistent_softmax(12, 100, programs=5),
        "looped softmax": lambda: norms.looped_softmax(12, 100, BLOCK=16),
        "cross-entropy": lambda: losses.loss(6, 300, block=128),
        "divergence": lambda: losses.divergence(6, 300, block=128),
        "embedding": lambda: losses.embedding(20, 30, 100, 5),
        "recurrence": lambda: recurrences.gated(2, 20, 40),
        "cumsum": lambda: recurrences.cumsum(2, 20, 40),
        "product": lambda: products.product(64, 32, 96, (True, False), TILES),
        "grouped product": lambda: products.grouped(64, 32, 96, tiles=TILES),
        "gram": lambda: products.gram(64, 32, 16),
        "persistent product": lambda: products.persistent(64, 96, 32, TILES, programs=4),
        "bias": lambda: products.bias_gelu(64, 32, 96, half, TILES),
        "low rank": lambda: products.low_rank_product(64, 32, 96, 16, TILES),
        "attention": lambda: attention.attention(1, 2, 128, 16, True, half, **heads),
        "other sums": lambda: attention.other_sums(1, 2, 128, 16, "mean", tuned=False),
        "gqa": lambda: attention.shared_heads(1, 4, 2, 128, 16, **heads),
        "packed attention": lambda: attention.packed_sequences(
            (70, 20), 2, 16, True, "mixed", tiles=heads["tiles"]
        ),
        "window attention": lambda: attention.window_attention(2, 384, 16, 150, **heads),
    }


KINDS = [
    *("swiglu", "geglu", "dropout", "rotary", "affine", "channels", "packed", "pixels"),
    *("convolution", "activated convolution", "maxima", "stencil"),
    *("layer norm", "looped layer norm", "rms norm", "group norm", "softmax", "persistent softmax"),
    *("looped softmax", "cross-entropy", "divergence", "embedding"),
    *("recurrence", "cumsum", "product", "grouped product", "persistent product", "bias"),
    "low rank",
    *("attention", "gqa", "packed attention", "window attention"),
]


@pytest.fixture
def quickly(monkeypatch):
    """Take each time once: it is not what is tested."""
    import measure

    def once(function, quick):
        function()
        return 1.0

    monkeypatch.setattr(measure, "waiting_time", once)


# Whether others run at this size, on this device, in PyTorch's deterministic mode is their affair.
FOREIGN = ("liger", "fla", "fla_loop", "cudnn")


@pytest.mark.parametrize("kind", KINDS)
def test_row(kind, quickly):
    from measure import measure
    from report import markdown

    row = json.loads(json.dumps(measure(small()[kind](), True, False, kind == "product")))
    for who, entry in row.items():
        if not isinstance(entry, dict):
            continue
        if who in FOREIGN and "us" not in entry:
            continue
        assert entry.get("us") == 1.0, (who, entry)
        if "difference" in entry:
            assert entry["difference"] < 2e-2, (who, entry)
    assert row["ours"]["differentiate_ms"] > 0 and row["ours"]["first_backward_ms"] > 0
    assert ("tuned" in row) == (kind == "product")
    assert row["name"] in markdown([row], "a machine", 3e12)


def test_names_are_distinct():
    from cases import all_cases

    names = [case.name for case in all_cases()]
    assert len(set(names)) == len(names)
    quick = all_cases(quick=True)
    families = {case.family for case in all_cases()}
    assert {case.family for case in quick} == families and {c.name for c in quick} <= set(names)


def test_a_gradient_that_is_no_number_shows():
    from measure import _difference

    good, bad = torch.ones(2), torch.tensor([1.0, float("nan")])
    assert _difference([good, bad], [good, good]) != 0.0
    assert _difference([good, good], [good, good]) == 0.0


def test_absent_packages_and_failures(quickly):
    """They are told in the table, and the row goes on."""
    import dataclasses

    from measure import measure
    from report import markdown

    def absent():
        raise ImportError("No module named 'rival'")

    def fails(x):
        raise ValueError("no such size\nand more")

    case = small()["softmax"]()
    case = dataclasses.replace(case, rivals={"liger": absent, "fla": lambda: fails})
    row = measure(case, True, False, False)
    text = markdown([row, {"name": "broken", "error": "the worker process ended"}], "a machine")
    assert "absent" in text and "- absent: No module named 'rival'" in text
    assert "- softmax 12x100, fla: ValueError: no such size" in text
    assert "- broken: the worker process ended" in text and row["ours"]["us"] == 1.0


def test_a_run_is_resumed(tmp_path, monkeypatch):
    """Rows that are there are left out, if they are of this machine."""
    import run

    asked = []

    def measured(names, flags):
        asked.append(list(names))
        return [({"name": name, "ours": {"us": 1.0}}, 3e12) for name in names]

    monkeypatch.setattr(run, "_measure_all", measured)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a device")
    chosen = {"output": tmp_path, "quick": False, "compile": False, "tune": False}
    run._run(["a"], types.SimpleNamespace(**chosen, resume=False))
    run._run(["a", "b"], types.SimpleNamespace(**chosen, resume=True))
    assert asked == [["a"], ["b"]]
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert [row["name"] for row in rows] == ["a", "b"]
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "another")
    with pytest.raises(SystemExit, match="a device.*and this is another"):
        run._run(["c"], types.SimpleNamespace(**chosen, resume=True))


def test_first_calls(capsys, monkeypatch):
    """A row has both sides and their ratio; of one that fails, it has the reason."""
    import first_call

    first_call.main(["--only", "matmul", "--small"])
    *_, ours, theirs = capsys.readouterr().out.splitlines()
    forward, backward, both, compiler, ratio = map(float, ours.split(" | ")[1:])
    assert min(forward, backward, compiler, ratio) > 0 and abs(both - forward - backward) <= 1
    assert theirs.startswith("matmul, handwritten | ")
    monkeypatch.setitem(first_call.ROWS, "matmul", "nobody")
    monkeypatch.setattr(
        first_call, "_first", lambda name, who, small: {"error": f"KeyError: {who}"}
    )
    first_call.main(["--only", "matmul", "--small"])
    assert "matmul, nobody | KeyError: nobody | " in capsys.readouterr().out


def test_products_by_hand_are_right():
    import first_call

    case = first_call._cases(True)["matmul"]
    a, b = (x.detach().float().requires_grad_() for x in case.inputs())
    y = first_call._product_by_hand(case)(a, b)
    upstream = torch.randn_like(y)
    expected = torch.autograd.grad(torch.matmul(a, b), (a, b), upstream)
    torch.testing.assert_close(torch.autograd.grad(y, (a, b), upstream), expected)
