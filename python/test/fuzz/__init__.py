"""Random, well-formed Triton programs whose gradients are compared with their values.

A program is made from a sequence of choices (`choices`), by which failing ones are shrunk
(`shrink`). `program` holds a kernel while it is written; `integers`, `expressions`, `lanes`,
`memory`, `tiles`, `layouts`, `products`, `softmax`, `control`, `grids`, `lines` and `segments`
write into it. `endless` knows what no program for a GPU may have. `oracle` checks one program: in
float64 (`differences`, `propagation`), and in other types on a device (`precision`, `noise`).
`campaign` checks many in parallel: `python -m
fuzz.campaign --help`. `faults` lists small programs that were wrong once.
"""
