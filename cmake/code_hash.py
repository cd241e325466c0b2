"""Hashes the code of the CPU backend: the object files that it is made of, and all they refer to.

    code_hash.py OUTPUT OBJECTS NM VERSION PART...

OBJECTS is a file with the names of all object files of ours, and the backend's are those that have
a PART in their path. OUTPUT becomes a C file with the hash; VERSION is of what is not ours, LLVM's.

A kernel's object stays right as long as the hash stays. Comments are in no object file, and nor is
most of the differentiation.
"""

import hashlib
import subprocess
import sys
from pathlib import Path


def symbols(nm: str, objects: list[str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return which files define each symbol, and what each file refers to."""
    command = [nm, "-P", "-A", *objects]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    defined: dict[str, list[str]] = {}
    used: dict[str, list[str]] = {}
    for line in listed.splitlines():
        file, _, rest = line.partition(": ")
        name, kind = rest.split()[:2]
        if kind == "U":
            used.setdefault(file, []).append(name)
        elif kind in "TDBRVW":
            defined.setdefault(name, []).append(file)
    return defined, used


def reached(roots: list[str], defined, used) -> list[str]:
    """Return the files that are needed for some."""
    found, open_files = set(roots), list(roots)
    while open_files:
        for name in used.get(open_files.pop(), ()):
            for file in defined.get(name, ()):
                if file not in found:
                    found.add(file)
                    open_files.append(file)
    return sorted(found)


def main() -> None:
    output, listing, nm, version, *parts = sys.argv[1:]
    objects = sorted(Path(listing).read_text().split("\n"))
    roots = [file for file in objects if any(part in file for part in parts)]
    if not roots:
        sys.exit(f"no object file of {', '.join(parts)} in {listing}")
    digest = hashlib.sha256(version.encode())
    for file in reached(roots, *symbols(nm, objects)):
        digest.update(hashlib.sha256(Path(file).read_bytes()).digest())
    text = f'const char tadCpuCode[] = "{digest.hexdigest()[:32]}";\n'
    if not Path(output).exists() or Path(output).read_text() != text:
        Path(output).write_text(text)


if __name__ == "__main__":
    main()
