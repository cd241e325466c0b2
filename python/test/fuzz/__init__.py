"""Random, well-formed Triton programs whose gradients are checked by finite differences.

A program is made from a sequence of choices (`choices`), by which failing ones are shrunk
(`shrink`). `program` holds a kernel while it is written; `integers`, `expressions`, `tiles`,
`memory`, `control` and `grids` write into it. `oracle` checks one program, `campaign` many in
parallel: `python -m fuzz.campaign --help`.
"""
