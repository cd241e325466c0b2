"""A wheel of the interpreter that runs this, for every Linux that has glibc 2.28.

    python3.12 scripts/wheel.py dist

The same sources give the same bytes, in whichever folder they are. What a wheel must be is
checked before it is written: auditwheel says for which systems it is, 15.25 MB is its limit,
and it must not name the folder that it was built in.
"""

import argparse
import base64
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# auditwheel, and libdeflate, whose streams are 3 % shorter than zlib's.
TOOLS = ["auditwheel==6.8.2", "deflate==0.9.0"]
NEWEST_GLIBC = (2, 28)
MOST_BYTES = 15_250_000
# The first moment that a zip file can name: 1980-01-01.
DATE, TIME = 0x21, 0


def install_tools() -> Path:
    """Install TOOLS for this interpreter into the build folder."""
    folder = ROOT / "build" / "wheel-tools" / sys.implementation.cache_tag
    done = folder / "done"
    if not done.exists() or done.read_text() != str(TOOLS):
        shutil.rmtree(folder, ignore_errors=True)
        pip("install", "--target", str(folder), *TOOLS)
        done.write_text(str(TOOLS))
    return folder


def pip(*arguments: str, **options) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, *arguments], check=True, **options)


def build(folder: Path) -> Path:
    """The wheel as setuptools makes it."""
    # What a C compiler writes of the folder that it runs in.
    flags = f"-g0 -ffile-prefix-map={ROOT}=. {os.environ.get('CFLAGS', '')}"
    environment = {**os.environ, "CFLAGS": flags, "SOURCE_DATE_EPOCH": "315532800"}
    pip("wheel", "--no-deps", "-w", str(folder), str(ROOT), env=environment)
    (wheel,) = folder.glob("triton_autodiff-*.whl")
    return wheel


def find_platform(wheel: Path, tools: Path) -> str:
    """The most general platform tag that auditwheel grants."""
    output = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", "--json", str(wheel)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tools)},
    ).stdout
    platform = json.loads(output)["overall_tag"]
    version = re.match(r"manylinux_(\d+)_(\d+)_", platform)
    if not version or tuple(map(int, version.groups())) > NEWEST_GLIBC:
        sys.exit(f"the wheel is for {platform}, of which auditwheel says:\n{output}")
    return platform


def hash_of(data: bytes) -> str:
    """As RECORD has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def read(wheel: Path, platform: str) -> dict[str, bytes]:
    """The files of a wheel, RECORD last, once they are tagged for the platform."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in sorted(archive.namelist())}
    for name, data in files.items():
        if str(ROOT).encode() in data:
            sys.exit(f"{name} names the folder that it was built in")
    (about,) = [name for name in files if name.endswith(".dist-info/WHEEL")]
    files[about] = files[about].replace(b"linux_x86_64", platform.encode())
    record = about.replace("WHEEL", "RECORD")
    del files[record]
    lines = [f"{name},sha256={hash_of(data)},{len(data)}" for name, data in files.items()]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    return files


def write_zip(path: Path, files: dict[str, bytes], compress) -> None:
    """A zip file of the files, in their order, without times and owners."""
    directory = b""
    with path.open("wb") as out:
        for name, data in files.items():
            body = compress(data)
            sizes = (zlib.crc32(data), len(body), len(data), len(name), 0)
            about = struct.pack("<HHHHHIIIHH", 20, 0, 8, TIME, DATE, *sizes)
            mode = 0o755 if ".so" in name else 0o644
            directory += b"PK\1\2" + struct.pack("<H", 3 << 8 | 20) + about
            directory += struct.pack("<HHHII", 0, 0, 0, (0o100000 | mode) << 16, out.tell())
            directory += name.encode()
            out.write(b"PK\3\4" + about + name.encode() + body)
        start, count = out.tell(), len(files)
        end = struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), start, 0)
        out.write(directory + b"PK\5\6" + end)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="where the wheel is put")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    tools = install_tools()
    sys.path.append(str(tools))
    import deflate

    with tempfile.TemporaryDirectory() as temporary:
        raw = build(Path(temporary))
        platform = find_platform(raw, tools)
        path = folder / raw.name.replace("linux_x86_64", platform)
        files = read(raw, platform)
    write_zip(path, files, lambda data: bytes(deflate.deflate_compress(data, 12)))
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
    if path.stat().st_size > MOST_BYTES:
        sys.exit(f"{path} has {path.stat().st_size} bytes, more than {MOST_BYTES}")
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB, sha256 {hash_of(path.read_bytes())}")


if __name__ == "__main__":
    main()
