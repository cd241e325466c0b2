"""The package's folders: what must not be lost when files move."""

import pickle
import shutil
import sys
from pathlib import Path

import pytest
import triton_autodiff
from kernels import objects
from triton_autodiff import compiler, pickling

PACKAGE = Path(triton_autodiff.__file__).parent
SOURCES = Path(__file__).resolve().parents[3] / "third_party/autodiff/backend"
FILES = sorted(path.relative_to(SOURCES) for path in SOURCES.rglob("*.py"))
ROOMS = sorted({path.parent for path in FILES})


def test_installed():
    """Every file is there."""
    assert len(ROOMS) > 10
    assert [path for path in FILES if not (PACKAGE / path).is_file()] == []


@pytest.mark.parametrize("room", ROOMS, ids=str)
def test_a_change_is_seen(room, tmp_path, monkeypatch):
    """Triton compiles again after a file of any room has changed, come or gone."""
    copy = tmp_path / "package"
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(PACKAGE, copy, symlinks=False, ignore=ignored)
    monkeypatch.setattr(compiler, "__file__", str(copy / "compiler.py"))

    def hash_now():
        return compiler.sources_hash.__wrapped__()

    hashes = [hash_now()]
    file = copy / next(path for path in FILES if path.parent == room)
    file.write_text(file.read_text() + "\n# Changed.\n")
    hashes.append(hash_now())
    file.rename(file.with_name("another.py"))
    hashes.append(hash_now())
    (file.parent / "new.py").write_text("")
    hashes.append(hash_now())
    assert len(set(hashes)) == len(hashes)


def test_pickles_of_before(needs_gradients):
    """They name `triton_autodiff.pickling.restore`, with these arguments."""
    assert pickling.restore.__module__ == "triton_autodiff.pickling"
    place = ("kernels.objects", "decorated", 0)
    before = (pickling.restore, (1, "0.1.0", "named", place))
    assert objects.decorated.__reduce__() == before
    assert sys.modules[pickling.restore.__module__] is pickling
    text = pickle.dumps(objects.decorated, protocol=0)
    assert b"ctriton_autodiff.pickling\nrestore\n" in text
    assert pickle.loads(text) is objects.decorated
