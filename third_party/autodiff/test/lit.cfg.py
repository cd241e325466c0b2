"""lit: the differentiation passes, tested as the dialect is."""

import os

config = globals()["config"]
lit_config = globals()["lit_config"]

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(os.path.dirname(here)))
lit_config.load_config(config, os.path.join(root, "test", "lit.cfg.py"))

config.name = "Autodiff"
config.test_source_root = here
config.test_exec_root = os.path.join(config.test_exec_root, "autodiff")


def differentiate(*options):
    """The library's passes on the command line, perhaps only as far as one of them."""
    return f"triton-autodiff-opt --autodiff-differentiate='{' '.join(options)}'"


config.substitutions += [
    ("%differentiate", differentiate()),
    ("%contributions", differentiate("until=autodiff-count-up") + " -print-contributions"),
    ("%interchange", differentiate("until=autodiff-interchange")),
    ("%merge", differentiate("until=autodiff-merge-contributions")),
    ("%nests", differentiate("until=autodiff-merge-nests")),
    ("%gather", differentiate("until=autodiff-merge-gathered")),
    ("%windows", differentiate("until=autodiff-gather-windows")),
    ("%persist-always", differentiate("until=autodiff-persist", "always")),
    ("%persist", differentiate("until=autodiff-persist")),
]
