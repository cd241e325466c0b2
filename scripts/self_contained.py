"""Check that each C++ file includes what it uses.

Builds parse MLIR's headers once for all files (cmake/Precompiled.cmake), which hides what a file
does not include. Here each file is parsed without that: sources, and headers that no source
includes first. It takes some ten minutes of two cores; FILE names those that have changed.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIRST_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def tracked(*patterns):
    """Return the files of the repository that match."""
    listed = subprocess.check_output(["git", "ls-files", *patterns], cwd=ROOT, text=True)
    return [ROOT / name for name in listed.splitlines()]


def without_precompiled(command):
    """Return the arguments of a compiler that only parses, and parses everything."""
    arguments, result = iter(shlex.split(command)), []
    for argument in arguments:
        if argument == "-Xclang":
            clang = next(arguments)
            if clang in ("-include-pch", "-include"):
                next(arguments), next(arguments)
        elif argument == "-include":  # GCC's spelling of the same
            next(arguments)
        elif argument in ("-o", "-c"):
            next(arguments)
        elif argument != "-Winvalid-pch":
            result.append(argument)
    return [*result, "-fsyntax-only"]


def included_first(source):
    """Return how the source spells the header that it includes first, or None."""
    found = FIRST_INCLUDE.search(source.read_text())
    return found and found[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--build", default=ROOT / "build/core", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()

    commands = {}
    for entry in json.loads((options.build / "compile_commands.json").read_text()):
        source = Path(entry["file"])
        if source.suffix == ".cpp" and source.is_relative_to(ROOT):
            commands[source] = without_precompiled(entry["command"])
    commands = {source: commands[source] for source in tracked("*.cpp") if source in commands}
    checked = {(source.parent, included_first(source)) for source in commands}
    spelled = {name for _, name in checked}

    def is_checked(header):
        """Say whether a source shows that the header can be included alone."""
        return (header.parent, header.name) in checked or any(
            name and header.as_posix().endswith("/" + name) for name in spelled
        )

    def find_command(header):
        """Return how the library that the header belongs to is compiled."""
        near = [s for s in commands if s.parent == header.parent]
        return commands[near[0] if near else next(iter(commands))]

    files = dict(commands)
    for header in tracked("*.h"):
        if not is_checked(header) and not header.name.startswith("Precompiled"):
            files[header] = [*find_command(header), "-x", "c++"]
    if options.files:
        wanted = {Path(name).resolve() for name in options.files}
        files = {file: command for file, command in files.items() if file in wanted}

    def check(item):
        file, command = item
        return file, subprocess.run(
            [*command, str(file)], cwd=options.build, capture_output=True, text=True
        )

    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for file, result in pool.map(check, files.items()):
            if result.returncode:
                failed += 1
                print(f"{file.relative_to(ROOT)}:\n{result.stderr}", flush=True)
    print(f"{len(files)} files, {failed} that do not include what they use")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
