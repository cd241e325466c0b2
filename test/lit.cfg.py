"""How the lit tests run: `lit -Dbuild=BUILD_FOLDER test third_party/autodiff/test`."""

import os
import shutil

import lit.formats

# ruff: noqa: F821  (lit provides `config` and `lit_config`)

here = os.path.dirname(os.path.realpath(__file__))
root = os.path.dirname(here)
build = lit_config.params.get("build", os.path.join(root, "build", "core"))
tools = os.path.join(build, "bin")
llvm = lit_config.params.get("llvm", "/usr/lib/llvm-22/bin")

if not os.path.isfile(os.path.join(tools, "triton-autodiff-opt")):
    lit_config.fatal(f"no triton-autodiff-opt in {tools}; pass -Dbuild=FOLDER")


def tool(name):
    """The path of an LLVM tool, under its plain or its versioned name."""
    for candidate in (os.path.join(llvm, name), name, f"{name}-22"):
        if path := shutil.which(candidate):
            return path
    lit_config.fatal(f"{name} is needed (Debian: llvm-22-tools)")


config.name = "dialect"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".ttir"]
config.test_source_root = here
config.test_exec_root = os.path.join(build, "lit", "dialect")
config.substitutions += [
    (r"\bFileCheck\b", tool("FileCheck")),
    (r"\bnot\b", tool("not")),
    (r"%tad-opt\b|\btriton-autodiff-opt\b", os.path.join(tools, "triton-autodiff-opt")),
]
