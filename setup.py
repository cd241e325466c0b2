"""Builds the wheel: the core library once, a thin Python module per Python.

The core (`libtriton_autodiff.so`) does not depend on Python. It is configured
and built by CMake and Ninja in `build/core` (or `$TAD_BUILD_DIR`), which is kept
between wheels, so that a wheel for another Python takes seconds.
"""

import os
import shutil
import subprocess
from pathlib import Path

from pybind11.setup_helpers import Pybind11Extension
from setuptools import find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent.resolve()
CORE_BUILD = Path(os.environ.get("TAD_BUILD_DIR", ROOT / "build" / "core"))
PYTHON = ROOT / "third_party" / "autodiff" / "python"
PACKAGE = "triton_autodiff"
BACKEND = "third_party/autodiff/backend"
CORE = "libtriton_autodiff.so"
# Functions that older C libraries lack (OldGlibc.c), of the core's build.
OLD_GLIBC = "third_party/autodiff/lib/CAPI/CMakeFiles/triton_autodiff.dir/OldGlibc.c.o"


def build_core() -> Path:
    """Build the core library and return its path."""
    configure = ["cmake", "-G", "Ninja", "-S", str(ROOT), "-B", str(CORE_BUILD)]
    configure += os.environ.get("TAD_CMAKE_ARGS", "").split()
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    jobs = os.environ.get("MAX_JOBS", str(len(os.sched_getaffinity(0))))
    subprocess.run(["ninja", "-C", str(CORE_BUILD), "-j", jobs, "triton_autodiff"], check=True)
    return CORE_BUILD / "lib" / CORE


def strip(library: Path) -> None:
    """Drop symbols that nothing needs at run time: two thirds of the file."""
    for tool in ("llvm-strip-22", "llvm-strip", "strip"):
        if shutil.which(tool):
            subprocess.run([tool, "--strip-unneeded", str(library)], check=True)
            return


class BuildPython(build_py):
    """Copies the Python files into a folder that holds nothing of earlier builds.

    All that is in it goes into the wheel: what was a file once, or a package of another name.
    """

    def run(self):
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class BuildNative(build_ext):
    """Builds the core, then the module that links to it, side by side."""

    def build_extension(self, ext):
        core = build_core()
        ext.library_dirs.append(str(core.parent))
        ext.extra_objects.append(str(CORE_BUILD / OLD_GLIBC))
        super().build_extension(ext)
        target = Path(self.get_ext_fullpath(ext.name)).with_name(CORE)
        shutil.copyfile(core, target)
        strip(target)
        strip(Path(self.get_ext_fullpath(ext.name)))


# Metadata in the source folder would shadow the installed package's for every
# Python that is started there.
METADATA = ROOT / "build" / "metadata"
METADATA.mkdir(parents=True, exist_ok=True)

setup(
    options={"egg_info": {"egg_base": str(METADATA.relative_to(ROOT))}},
    packages=[PACKAGE, *(f"{PACKAGE}.{room}" for room in find_packages(BACKEND))],
    package_dir={PACKAGE: BACKEND},
    package_data={PACKAGE: ["py.typed"], f"{PACKAGE}.faults": ["faults.json"]},
    ext_modules=[
        Pybind11Extension(
            f"{PACKAGE}._native",
            sorted(str(source.relative_to(ROOT)) for source in PYTHON.glob("*.cpp")),
            include_dirs=["third_party/autodiff/include"],
            libraries=["triton_autodiff"],
            runtime_library_dirs=["$ORIGIN"],
            # For a small wheel; what takes time is in Python's and PyTorch's libraries.
            extra_compile_args=["-Os"],
            # A C++ runtime of its own: the module runs with any other one.
            extra_link_args=[
                "-static-libstdc++",
                "-Wl,--exclude-libs,ALL,--gc-sections,-Bsymbolic,--build-id=none",
            ],
            depends=[
                "third_party/autodiff/include/autodiff-c/Autodiff.h",
                *sorted(str(header.relative_to(ROOT)) for header in PYTHON.glob("*.h")),
            ],
            cxx_std=17,
        )
    ],
    cmdclass={"build_py": BuildPython, "build_ext": BuildNative},
)
