"""The lit tests of the differentiation; set up as those of the dialect are."""

import os

# ruff: noqa: F821  (lit provides `config` and `lit_config`)

here = os.path.dirname(os.path.realpath(__file__))
shared = os.path.join(here, "..", "..", "..", "test", "lit.cfg.py")
lit_config.load_config(config, os.path.realpath(shared))

config.name = "autodiff"
config.test_source_root = here
config.test_exec_root = os.path.join(os.path.dirname(config.test_exec_root), "autodiff")
