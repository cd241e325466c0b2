"""lit: run as `lit -Dbuild=BUILD_FOLDER test third_party/autodiff/test`."""

import os
import sys

import lit.formats

# lit executes this file with these two names in its globals.
config = globals()["config"]
lit_config = globals()["lit_config"]

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(here)
build = lit_config.params.get("build", os.path.join(root, "build", "core"))
llvm = lit_config.params.get("llvm", "/usr/lib/llvm-22")

config.name = "Triton dialect"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".ttir", ".ll", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = here
config.test_exec_root = os.path.join(build, "test")

# Ours first, then FileCheck, not and split-file.
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(build, "bin"), os.path.join(llvm, "bin"), os.environ["PATH"]]
)
config.substitutions += [("%python", sys.executable), ("%root", root), ("%build", build)]
