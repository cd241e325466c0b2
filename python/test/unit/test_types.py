"""What type checkers see of the public names: all that is right, and each mistake."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "python" / "test" / "typing"
MISTAKES = [
    ("mistakes.py", number)
    for number, line in enumerate((FOLDER / "mistakes.py").read_text().splitlines(), 1)
    if re.search(r"  # \d+$", line)
]


def mypy(cache):
    """Files and lines in which mypy finds errors."""
    pytest.importorskip("mypy")
    # Other people's files stay as they are from run to run.
    kept = ROOT / "build" / "mypy"
    options = ["--ignore-missing-imports", "--check-untyped-defs", "--cache-dir", kept]
    command = [sys.executable, "-m", "mypy", *options, FOLDER]
    done = subprocess.run(command, capture_output=True, text=True, cwd=FOLDER)
    found = re.findall(r"^(.*?):(\d+): error: ", done.stdout, re.MULTILINE)
    assert found or not done.stderr, done.stderr
    return {(Path(file).name, int(line)) for file, line in found}


def pyright(cache):
    """Files and lines in which pyright finds errors."""
    for module in ("pyright", "basedpyright"):
        options = ["--outputjson", "--level", "error", "--pythonpath", sys.executable]
        command = [sys.executable, "-m", module, *options, FOLDER]
        done = subprocess.run(command, capture_output=True, text=True, cwd=cache)
        if "No module named" not in done.stderr:
            found = json.loads(done.stdout)["generalDiagnostics"]
            return {(Path(d["file"]).name, d["range"]["start"]["line"] + 1) for d in found}
    pytest.skip("needs pyright")


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_public_names_have_types(checker, tmp_path):
    assert len(MISTAKES) == 10
    assert sorted(checker(tmp_path)) == MISTAKES
