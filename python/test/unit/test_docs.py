"""What the documentation says is what the code does.

Every block of code has a language. Python runs as it stands, each block as a program of its own;
shell commands are parsed, and what they name exists. Text is what a program prints, or a picture.
"""

import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import forked
import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
FENCE = re.compile(r"^```(?P<language>\S*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
# What a block begins with that cannot run everywhere.
NEEDS_GPU = "# needs a GPU"
# The first example says what has a gradient; this says which.
GRADIENTS = """
torch.testing.assert_close(x.grad, w.detach() * x.detach().exp())
torch.testing.assert_close(w.grad, x.detach().exp().sum()[None])
"""
# What programs write.
WRITTEN = {"benchmarks/results/results.md"}


def name_of(page):
    return str(page.relative_to(ROOT))


def blocks(language):
    """The blocks of code in a language, named by page and line."""
    found = []
    for page in PAGES:
        text = page.read_text()
        for block in FENCE.finditer(text):
            if block["language"] == language:
                line = text.count("\n", 0, block.start()) + 1
                found.append(pytest.param(block["code"], id=f"{name_of(page)}:{line}"))
    return found


def prose():
    """The pages without their blocks of code."""
    return [pytest.param(page, FENCE.sub("", page.read_text()), id=name_of(page)) for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_have_a_language(page):
    text = page.read_text()
    languages = {block["language"] for block in FENCE.finditer(text)}
    assert languages <= {"python", "sh", "json", "text"}
    assert text.count("```") == 2 * len(FENCE.findall(text))


@pytest.mark.parametrize("code", blocks("python"))
def test_python(code, tmp_path, request):
    if request.config.getoption("--forward-only"):
        pytest.skip("nothing to see in the forward pass")
    compile(code, "example.py", "exec")
    if code.startswith(NEEDS_GPU) and not torch.cuda.is_available():
        pytest.skip("needs a GPU: it is only compiled")
    program = tmp_path / "example.py"
    first = request.node.callspec.id.startswith("README.md")
    program.write_text(code + GRADIENTS if first else code)
    run = forked.run(program)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("code", blocks("python"))
def test_tensors_are_where_kernels_run(code):
    """On the GPU, if there is one: a block says so, as no machine without one would notice."""
    makes_tensors = re.search(r"torch\.(rand|tensor|empty|zeros|ones|full|arange)", code)
    assert not makes_tensors or "torch.set_default_device(" in code or code.startswith(NEEDS_GPU)


@pytest.mark.parametrize("code", blocks("json"))
def test_json(code):
    json.loads(code)


def targets():
    return set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def check_command(words):
    """Whether what a command names exists; `words` are those of one line."""
    while words and re.fullmatch(r"\w+=.*", words[0]):
        words = words[1:]
    name, *arguments = words
    if name == "make":
        named = [word for word in arguments if "=" not in word and not word.startswith("-")]
        assert named and set(named) <= targets(), words
    elif name in ("python", "python3"):
        if arguments[0] == "-m":
            module = arguments[1]
            command = [
                sys.executable,
                "-c",
                f"import importlib.util as i; i.find_spec({module!r}).name",
            ]
            subprocess.run(command, check=True, cwd=ROOT / "benchmarks")
        else:
            assert (ROOT / arguments[0]).is_file(), words
            # An option may be as wrong as a program.
            text = (ROOT / arguments[0]).read_text()
            assert all(f'"{w}"' in text for w in arguments if w.startswith("--")), words
    else:
        assert shutil.which(name) or (ROOT / name).is_file() or name.startswith("build/"), words


@pytest.mark.parametrize("code", blocks("sh"))
def test_shell(code):
    subprocess.run(["bash", "-n"], input=code, text=True, check=True)
    for line in code.splitlines():
        words = shlex.split(line, comments=True)
        if words:
            check_command(words)


@pytest.mark.parametrize("page, text", prose())
def test_commands_in_the_text(page, text):
    for command in re.findall(r"`((?:\w+=\S+ )*(?:make|python|python3) [^`]+)`", text):
        check_command(shlex.split(command))


@functools.cache
def files():
    """The files of the project, from the root; nothing that was built or installed."""
    found = []
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [name for name in inner if name not in ("build", "dist") and name[0] != "."]
        found += [f"/{Path(folder, name).relative_to(ROOT)}" for name in names]
    return found


@pytest.mark.parametrize("page, text", prose())
def test_files_in_the_text(page, text):
    """They are paths from the root, or the end of one."""
    known = files()
    for name in set(re.findall(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|sh|md|cpp|h|td))`", text)):
        assert name in WRITTEN or any(path.endswith(f"/{name}") for path in known), name


def anchor(title):
    """What a heading is linked by."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


@pytest.mark.parametrize("page, text", prose())
def test_links(page, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", text)):
        if "://" in target:
            continue
        name, _, section = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), target
        if section:
            titles = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
            assert section in map(anchor, titles), target


def test_rules_are_the_compilers():
    generated = subprocess.run(
        [sys.executable, ROOT / "scripts" / "rules.py"], check=True, capture_output=True, text=True
    )
    assert (ROOT / "docs" / "rules.md").read_text() == generated.stdout, "run `make docs`"


def test_results_are_the_published_ones():
    generated = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "results.py"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert (ROOT / "docs" / "results.md").read_text() == generated.stdout, "run `make docs`"


DECISIONS = sorted(
    set((ROOT / "docs" / "decisions").glob("*.md")) - {ROOT / "docs/decisions/README.md"}
)
MOST_WORDS = 300


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_decisions_are_short(page):
    """A question, what was measured and what was decided, in few words; tables do not count."""
    text = page.read_text()
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    assert titles[1:] == ["Question", "Measurement", "Decision"]
    prose = re.sub(r"^\|.*$", "", text, flags=re.MULTILINE)
    assert len(prose.split()) <= MOST_WORDS


def test_decisions_are_listed():
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    listed = re.findall(r"^- \[.*?\]\(([\w-]+)\.md\)", index, re.MULTILINE)
    assert sorted(listed) == [page.stem for page in DECISIONS]


def test_decisions_in_the_code_exist():
    """What a constant's comment names is a page."""
    named = {}
    for name in files():
        if name.endswith((".h", ".cpp", ".td", ".py")):
            for page in re.findall(r"docs/decisions/([\w-]+\.md)", (ROOT / name[1:]).read_text()):
                named[page] = name
    missing = {
        page: name for page, name in named.items() if not (ROOT / "docs/decisions" / page).is_file()
    }
    assert named and not missing


def test_measured_constants_name_their_decision():
    text = (ROOT / "third_party/autodiff/include/autodiff/Support/Target.h").read_text()
    comments = re.findall(r"(?:^ *///.*\n)+", text, re.MULTILINE)
    measured = [comment for comment in comments if re.search("Measured|confirmed by", comment)]
    assert measured
    assert [comment for comment in measured if "docs/decisions/" not in comment] == []


EXPONENTIAL = """
tt.func public @exp(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %i = tt.get_program_id x : i32
  %from = tt.addptr %x, %i : !tt.ptr<f32>, i32
  %to = tt.addptr %y, %i : !tt.ptr<f32>, i32
  %a = tt.load %from : !tt.ptr<f32>
  %b = math.exp %a : f32
  tt.store %to, %b : !tt.ptr<f32>
  tt.return
}
"""


def test_the_smallest_plan():
    """Keys of a plan are documented, and the kernel at the beginning of the page is this one."""
    from triton_autodiff import _native

    page = (ROOT / "docs" / "plan.md").read_text()
    plan = json.loads(_native.differentiate(EXPONENTIAL, "{}"))
    parts = [plan, *plan["gradients"], *plan["checks"], *plan["stores"], *plan["live"]]
    keys = {key for part in parts for key in part} | set(plan["report"])
    assert [key for key in sorted(keys) if f"`{key}`" not in page and f'"{key}"' not in page] == []
    example = page[page.index("```text") :].split("```")[1]
    shown = re.findall(r'\{"kind": "\w+", "index": \d\}', example)
    assert list(map(json.loads, shown)) == plan["backward"][0]["operands"]
