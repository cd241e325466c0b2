"""The mistakes that scripts/runtime_mutation.py makes in the runtime's Python."""

import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"


@pytest.fixture
def mistakes(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import runtime_mistakes

    yield runtime_mistakes
    del sys.modules["runtime_mistakes"]


@pytest.mark.parametrize(
    "text, kind, changed",
    [
        ("if not x:\n    raise E", "check dropped", ["if False:\n    raise E"]),
        ("if not x:\n    raise E", "not dropped", ["if (x):\n    raise E"]),
        ("if x:\n    return 1", "guard lost", ["if False:\n    return 1"]),
        ("if x:\n    f()", "condition inverted", ["if (not x):\n    f()"]),
        ("if x:\n    f()", "call dropped", ["if x:\n    pass"]),
        ("y = a and b", "operand dropped", ["y = (b)", "y = (a)"]),
        ("y = é < b", "limit shifted", ["y = (é <= b)"]),
        ("key = a, b", "key part lost", ["key = ((b,))", "key = ((a,))"]),
        ("return found.get((a, b))", "key part lost", None),
        ("y = a if c else b", "other case lost", ["y = (a)"]),
        ("y = x.clone()", "alias in place of a copy", ["y = (x)"]),
        ("f(x, deep=True)", "flag flipped", ["f(x, deep=False)"]),
        ("y = s[0]", "other index", ["y = (s[1])"]),
        ("y = s[1:]", "other elements", ["y = (s[:])"]),
        ("y = n * size", "stride lost", ["y = (n)"]),
        ("y = n + 1", "off by one", ["y = (n)"]),
        ("for i in s:\n    pass", "first left out", ["for i in list(s)[1:]:\n    pass"]),
        ("y = [i for i in s if i]", "filter lost", ["y = [i for i in s if True]"]),
        ("with lock:\n    f()", "context lost", ["if True:\n    f()"]),
        # What means nothing when it runs stays as it is.
        ('y: tuple[0] = f"{s[0]}"', "other index", []),
    ],
)
def test_kinds(mistakes, tmp_path, text, kind, changed):
    source = "def f():\n" + "".join(f"    {line}\n" for line in text.split("\n"))
    (tmp_path / "module.py").write_text(source)
    found = [m for m in mistakes.draw(tmp_path, 100, 0) if m.kind == kind]
    if changed is None:
        assert len(found) == 2
        return
    texts = [m.made_in(source.encode()).decode() for m in sorted(found, key=lambda m: m.number)]
    assert texts == [
        "def f():\n" + "".join(f"    {line}\n" for line in one.split("\n")) for one in changed
    ]


def test_sample(mistakes, tmp_path):
    (tmp_path / "module.py").write_text("def f(a, b):\n    return a < b and not a and b\n" * 3)
    names = [m.name for m in mistakes.draw(tmp_path, 100, 7)]
    assert len({*names}) == len(names) == 15
    assert [m.name for m in mistakes.draw(tmp_path, 4, 7)] == names[:4]
    # Each kind has its turn, and another seed another order.
    assert len({name.split(":")[2] for name in names[:3]}) == 3
    assert [m.name for m in mistakes.draw(tmp_path, 100, 8)] != names


def test_mistakes_without_effect_are_mistakes(mistakes, monkeypatch):
    """The list of those that change nothing has no name that none has any more."""
    runtime_mutation = pytest.importorskip("runtime_mutation")
    folder = SCRIPTS.parent / "third_party/autodiff/backend"
    names = set()
    for path in folder.rglob("*.py"):
        module = path.relative_to(folder).with_suffix("").as_posix()
        names |= {mistake.name for mistake in mistakes.of_module(path, module)}
    assert set(runtime_mutation.EQUIVALENT) <= names
