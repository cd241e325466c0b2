"""Forward mode is the transpose of reverse mode: ⟨u, J v⟩ = ⟨Jᵀ u, v⟩, for every rule.

Both ways of a rule are made of one derivative; here they meet as kernels, on random numbers. That
the way back is right is shown elsewhere, against PyTorch.
"""

import json
import re

import pytest
import torch
from test_rules_of_ttir import RULES
from triton.backends.autodiff import AutodiffError, _native
from ttir import SIZE, count_inputs, kernel, launch

SWAPS = "tt.func(autodiff-{}-swaps)"
PUSH = f"autodiff-normalize,{SWAPS.format('raise')},autodiff-push-tangents,{SWAPS.format('lower')}"
DTYPES = {"f32": torch.float32, "f64": torch.float64}
NAN = float("nan")


def push(text: str) -> tuple[str, list[int]]:
    """Return the kernel that computes tangents, too, and the arguments that have them."""
    both = _native.run_pipeline(text, PUSH).replace("tt.func public @k(", "tt.func private @k(")
    pushed = _native.run_pipeline(both, "symbol-dce,canonicalize,cse")
    moving = [int(i) for i in re.findall(r"autodiff.tangent = (\d+)", pushed)]
    # Nothing but Triton's own dialects is compiled.
    return re.sub(r"( attributes)? \{autodiff\.[^}]*\}", "", pushed), moving


def derive(text: str) -> dict:
    """Return a plan for one program, in which no fact about stores is taken for granted."""
    plan = json.loads(_native.differentiate(text, '{"schedules": []}'))
    request = {"schedules": [], "exchange": [check["argument"] for check in plan["checks"]]}
    return json.loads(_native.differentiate(text, json.dumps(request)))


def pull(text: str, plan: dict, arguments: list, cotangents: dict) -> dict:
    """Return the gradients of the arguments that are loaded, by the plan's kernels."""
    gradients = {}
    for gradient in plan["gradients"]:
        i, dtype = gradient["argument"], DTYPES[gradient["dtype"]]
        source = cotangents[i] if gradient["init"] == "cotangent" else torch.zeros(SIZE)
        gradients[i] = source.to(dtype, copy=True)
    after = [a.clone() for a in arguments]
    pools = {
        "argument": after,
        "cotangent": {i: t.clone() for i, t in cotangents.items()},
        "gradient": gradients,
        # As many elements as any tape here has.
        "buffer": [torch.zeros(4096, dtype=torch.float64) for _ in plan["buffers"]],
    }

    def run(step):
        launch(step["ttir"], [pools[o["kind"]][o["index"]] for o in step["operands"]])

    if plan["forward"]:
        run(plan["forward"])
    else:
        launch(text, after)
    for i in plan["snapshots"]:
        after[i] = arguments[i].clone()
    for step in plan["backward"]:
        run(step)
    return gradients


def check(text: str, arguments: list) -> None:
    """Check the identity, and that the values beside the tangents are the kernel's own."""
    dtype = arguments[0].dtype
    pushed, moving = push(text)
    plan = derive(text)

    def random(numbers):
        return {i: torch.randn(SIZE, dtype=torch.float64).to(dtype) for i in numbers}

    u = random(plan["outputs"])
    gradients = pull(text, plan, arguments, u)
    v = random(gradients)
    # Nobody reads what is stored first.
    tangents = {
        i: v[i].clone() if i in v else torch.full((SIZE,), NAN, dtype=dtype) for i in moving
    }
    values = [a.clone() for a in arguments]
    launch(pushed, [*values, *tangents.values()])

    left = [u[i].double() * tangents[i].double() for i in u]
    right = [gradients[i].double() * v[i].double() for i in v]
    difference = sum(t.sum() for t in left) - sum(t.sum() for t in right)
    scale = sum(t.abs().sum() for t in [*left, *right])
    assert scale > 0
    assert difference.abs() <= 64 * torch.finfo(dtype).eps * scale

    plain = [a.clone() for a in arguments]
    launch(text, plain)
    torch.testing.assert_close(values, plain, rtol=1e-6, atol=1e-6, equal_nan=True)


def check_body(body: str, element: str, low: float = 0.4, high: float = 1.4, change=None) -> None:
    """Check a body, on inputs between these, which `change` may change."""
    count = count_inputs(body)
    inputs = torch.rand(count, SIZE, dtype=torch.float64) * (high - low) + low
    if change:
        change(inputs)
    output = torch.full((SIZE,), NAN, dtype=DTYPES[element])
    check(kernel(body, element, count), [*inputs.to(DTYPES[element]), output])


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("rule", RULES)
def test_rule(rule, element):
    check_body(RULES[rule][0], element)


# ---------------------------------------------------------------------------------------------
# Functions
# ---------------------------------------------------------------------------------------------


def table(heading: str) -> list[list[str]]:
    """Return the rows of a table of the rules' documentation, as lists of cells."""
    text = _native.rules_markdown()
    sections = {
        "operation": text.split("## Functions")[0],
        "function": text.split("## Functions")[1],
    }
    rows = [line.split(" | ") for line in sections[heading].splitlines() if line.startswith("| `")]
    return [[cell.strip("| ") for cell in row] for row in rows]


# What takes more than one operand, or an integer, as the device library's function.
OPERANDS = {
    **dict.fromkeys(["atan2", "copysign", "fdim", "fmod", "hypot", "pow", "remainder"], 2),
    **dict.fromkeys(["rhypot", "fmax", "fmin"], 2),
    **dict.fromkeys(["norm3d", "rnorm3d", "fma"], 3),
    **dict.fromkeys(["norm4d", "rnorm4d"], 4),
}
INTEGERS = {
    "ldexp": "%x0, %n",
    "scalbn": "%x0, %n",
    "powi": "%x0, %n",
    "jn": "%n, %x0",
    "yn": "%n, %x0",
}
SYMBOLS = {"rcp": "__nv_drcp_rn"}
ABOVE_ONE = {"acosh"}
# Of these, operations.
ELSEWHERE = {
    "add": "%y = arith.addf %x0, %x1 : TILE",
    "sub": "%y = arith.subf %x0, %x1 : TILE",
    "mul": "%y = arith.mulf %x0, %x1 : TILE",
    "div": "%y = arith.divf %x0, %x1 : TILE",
    "neg": "%y = arith.negf %x0 : TILE",
    "maximum": "%y = arith.maximumf %x0, %x1 : TILE",
    "minimum": "%y = arith.minimumf %x0, %x1 : TILE",
}
# What only exists in single precision has bodies of its own.
SINGLE = {"saturate", "cvt", "mov", "double2float"}
FUNCTIONS = [row[0].strip("`") for row in table("function") if row[-1] == "partials"]


def apply(name: str) -> str:
    """Return a body that applies a function of the table."""
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    operands = ", ".join(f"%x{i}" for i in range(OPERANDS.get(name, 1)))
    types = ", ".join(["TILE"] * OPERANDS.get(name, 1))
    if name in INTEGERS:
        operands = INTEGERS[name]
        integers = f"tensor<{SIZE}xi32>"
        types = f"TILE, {integers}" if operands.endswith("%n") else f"{integers}, TILE"
    symbol = SYMBOLS.get(name, f"__nv_{name}")
    return f"""%n = arith.constant dense<3> : tensor<{SIZE}xi32>
%y = tt.extern_elementwise {operands} {{libname = "", libpath = "", pure = true, symbol = "{symbol}"}} : ({types}) -> TILE"""


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in SINGLE])
def test_function(name):
    low, high = (1.1, 3) if name in ABOVE_ONE else (0.1, 0.9)
    check_body(apply(name), "f64", low, high)


SINGLE_BODIES = {
    "saturate": f"""%s = tt.extern_elementwise %x0 {{libname = "", libpath = "", pure = true, symbol = "__nv_saturatef"}} : (TILE) -> TILE
%y = arith.mulf %s, %x1 : TILE""",
    "cvt": """%s = tt.elementwise_inline_asm "cvt.rna.tf32.f32 $0, $1;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x0 : TILE -> TILE
%y = arith.mulf %s, %x1 : TILE""",
    "mov": """%s = tt.elementwise_inline_asm "mov.f32 $0, $1;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x0 : TILE -> TILE
%y = arith.mulf %s, %x1 : TILE""",
    "double2float": f"""%d = arith.extf %x0 : TILE to tensor<{SIZE}xf64>
%s = tt.extern_elementwise %d {{libname = "", libpath = "", pure = true, symbol = "__nv_double2float_rn"}} : (tensor<{SIZE}xf64>) -> TILE
%y = arith.mulf %s, %x1 : TILE""",
    "casts": f"""%h = arith.truncf %x0 : TILE to tensor<{SIZE}xbf16>
%f = arith.extf %h : tensor<{SIZE}xbf16> to TILE
%e = tt.fp_to_fp %f, rounding = rtne : TILE -> tensor<{SIZE}xf8E5M2>
%g = tt.fp_to_fp %e : tensor<{SIZE}xf8E5M2> -> TILE
%y = arith.mulf %g, %x1 : TILE""",
    "through double": f"""%d = arith.extf %x0 : TILE to tensor<{SIZE}xf64>
%e = math.exp %d : tensor<{SIZE}xf64>
%f = arith.truncf %e : tensor<{SIZE}xf64> to TILE
%y = arith.mulf %f, %x1 : TILE""",
    "half products": f"""%q = tt.reshape %x0 : TILE -> tensor<4x4xf32>
%w = tt.reshape %x1 : TILE -> tensor<4x4xf32>
%d = tt.dot %q, %w, %w, inputPrecision = tf32 : tensor<4x4xf32> * tensor<4x4xf32> -> tensor<4x4xf32>
%y = tt.reshape %d : tensor<4x4xf32> -> TILE""",
}


@pytest.mark.parametrize("case", SINGLE_BODIES)
def test_single_precision(case):
    check_body(SINGLE_BODIES[case], "f32", 0.1, 0.9)


# ---------------------------------------------------------------------------------------------
# Reductions and scans
# ---------------------------------------------------------------------------------------------

# A combine function: what its arguments are, what it does, and what it returns.
COMBINERS = {
    "sum": ("%q", "%c = arith.addf %a0, %b0 : ELEMENT"),
    "maximum": ("%q", "%c = arith.maximumf %a0, %b0 : ELEMENT"),
    "minimum": ("%q", "%c = arith.minnumf %a0, %b0 : ELEMENT"),
    "product": ("%q", "%c = arith.mulf %a0, %b0 : ELEMENT"),
    "log of a sum of powers": (
        "%q",
        """%m = arith.maximumf %a0, %b0 : ELEMENT
%am = arith.subf %a0, %m : ELEMENT
%bm = arith.subf %b0, %m : ELEMENT
%ae = math.exp %am : ELEMENT
%be = math.exp %bm : ELEMENT
%s = arith.addf %ae, %be : ELEMENT
%l = math.log %s : ELEMENT
%c = arith.addf %l, %m : ELEMENT""",
    ),
    "larger by a branch": (
        "%q",
        """%is = arith.cmpf ogt, %a0, %b0 : ELEMENT
%c = scf.if %is -> (ELEMENT) {
  scf.yield %a0 : ELEMENT
} else {
  scf.yield %b0 : ELEMENT
}""",
    ),
    "recurrence": (
        "%q, %w",
        """%c = arith.mulf %a0, %b0 : ELEMENT
%t = arith.mulf %a1, %b0 : ELEMENT
%c1 = arith.addf %t, %b1 : ELEMENT""",
    ),
    "largest and its place": (
        "%q, %place",
        """%is = arith.cmpf ogt, %a0, %b0 : ELEMENT
%c = arith.select %is, %a0, %b0 : ELEMENT
%c1 = arith.select %is, %a1, %b1 : i32""",
    ),
    "maximum and product": (
        "%q, %w",
        """%c = arith.maximumf %a0, %b0 : ELEMENT
%c1 = arith.mulf %a1, %b1 : ELEMENT""",
    ),
    "sum and number": (
        "%q, %place",
        """%c = arith.addf %a0, %b0 : ELEMENT
%c1 = arith.addi %a1, %b1 : i32""",
    ),
}


def combination(kind: str, name: str, axis: int, reverse: bool = False) -> str:
    """Return a body that reduces or scans a matrix with a combine function."""
    operands, code = COMBINERS[name]
    pair = "," in operands
    second = "i32" if "%place" in operands else "ELEMENT"
    elements = ["ELEMENT", second][: 1 + pair]
    arguments = ", ".join(f"%{side}{i}: {e}" for side in "ab" for i, e in enumerate(elements))
    returned = ", ".join(["%c", "%c1"][: 1 + pair])
    tiles = ", ".join(f"tensor<4x4x{e}>" for e in elements)
    results = tiles if kind == "scan" else ", ".join(f"tensor<4x{e}>" for e in elements)
    attributes = f"axis = {axis} : i32" + (
        f", reverse = {str(reverse).lower()}" if kind == "scan" else ""
    )
    number = ":2" if pair else ""
    lines = f"""%q = tt.reshape %x0 : TILE -> tensor<4x4xELEMENT>
%w = tt.reshape %x1 : TILE -> tensor<4x4xELEMENT>
%count = tt.make_range {{start = 0 : i32, end = 4 : i32}} : tensor<4xi32>
%row = tt.expand_dims %count {{axis = {1 - axis} : i32}} : tensor<4xi32> -> tensor<{"1x4" if axis else "4x1"}xi32>
%place = tt.broadcast %row : tensor<{"1x4" if axis else "4x1"}xi32> -> tensor<4x4xi32>
%z{number} = "tt.{kind}"({operands}) <{{{attributes}}}> ({{
^bb0({arguments}):
{code}
  tt.{kind}.return {returned} : {", ".join(elements)}
}}) : ({tiles}) -> ({results})
"""
    first = "%z#0" if pair else "%z"
    if kind == "reduce":
        lines += f"""%e = tt.expand_dims {first} {{axis = {axis} : i32}} : tensor<4xELEMENT> -> tensor<{"4x1" if axis else "1x4"}xELEMENT>
%f = tt.broadcast %e : tensor<{"4x1" if axis else "1x4"}xELEMENT> -> tensor<4x4xELEMENT>
"""
        first = "%f"
    if pair and second == "ELEMENT":
        last = "%z#1"
        if kind == "reduce":
            lines += f"""%e1 = tt.expand_dims %z#1 {{axis = {axis} : i32}} : tensor<4xELEMENT> -> tensor<{"4x1" if axis else "1x4"}xELEMENT>
%f1 = tt.broadcast %e1 : tensor<{"4x1" if axis else "1x4"}xELEMENT> -> tensor<4x4xELEMENT>
"""
            last = "%f1"
        lines += f"%both = arith.mulf {first}, {last} : tensor<4x4xELEMENT>\n"
        first = "%both"
    return (
        lines
        + f"""%g = arith.mulf {first}, %w : tensor<4x4xELEMENT>
%y = tt.reshape %g : tensor<4x4xELEMENT> -> TILE"""
    )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", COMBINERS)
def test_reduction(name, axis):
    check_body(combination("reduce", name, axis), "f64")


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", [n for n in COMBINERS if "number" not in n])
def test_scan(name, axis, reverse):
    check_body(combination("scan", name, axis, reverse), "f64")


TIED = ["maximum", "minimum", "maximum and product", "larger by a branch", "largest and its place"]


@pytest.mark.parametrize("name", TIED)
def test_ties_in_reductions(name):
    def tie(inputs):
        inputs[0] = inputs[0].round(decimals=0)

    check_body(combination("reduce", name, 1), "f64", -1.4, 1.4, tie)


@pytest.mark.parametrize("kind", ["reduce", "scan"])
def test_equal_elements(kind):
    """The mean of equal numbers is theirs, though it is not associative."""
    result = {"reduce": "tensor<4xELEMENT>", "scan": "tensor<4x4xELEMENT>"}[kind]
    attributes = "axis = 1 : i32" + (", reverse = false" if kind == "scan" else "")
    back = {
        "reduce": """%e = tt.expand_dims %m {axis = 1 : i32} : tensor<4xELEMENT> -> tensor<4x1xELEMENT>
%f = tt.broadcast %e : tensor<4x1xELEMENT> -> tensor<4x4xELEMENT>
%v = tt.reshape %f : tensor<4x4xELEMENT> -> TILE""",
        "scan": "%v = tt.reshape %m : tensor<4x4xELEMENT> -> TILE",
    }[kind]
    body = f"""%q = tt.reshape %x0 : TILE -> tensor<4x4xELEMENT>
%s = "tt.reduce"(%q) <{{axis = 1 : i32}}> ({{
^bb0(%a: ELEMENT, %b: ELEMENT):
  %c = arith.addf %a, %b : ELEMENT
  tt.reduce.return %c : ELEMENT
}}) : (tensor<4x4xELEMENT>) -> tensor<4xELEMENT>
%o = tt.expand_dims %s {{axis = 1 : i32}} : tensor<4xELEMENT> -> tensor<4x1xELEMENT>
%p = tt.broadcast %o : tensor<4x1xELEMENT> -> tensor<4x4xELEMENT>
%m = "tt.{kind}"(%p) <{{{attributes}}}> ({{
^bb0(%a: ELEMENT, %b: ELEMENT):
  %half = arith.constant 5.0e-01 : ELEMENT
  %t = arith.addf %a, %b : ELEMENT
  %c = arith.mulf %t, %half : ELEMENT
  tt.{kind}.return %c : ELEMENT
}}) : (tensor<4x4xELEMENT>) -> {result}
{back}
%y = arith.mulf %v, %x1 : TILE"""
    check_body(body, "f64")


# ---------------------------------------------------------------------------------------------
# Everything else
# ---------------------------------------------------------------------------------------------

MASK = f"""%bound = arith.constant dense<11> : tensor<{SIZE}xi32>
%m = arith.cmpi slt, %r, %bound : tensor<{SIZE}xi32>
"""
NUMBERS = """%pid = tt.get_program_id x : i32
%c0 = arith.constant 0 : i32
%c1 = arith.constant 1 : i32
%c5 = arith.constant 5 : i32
%first = arith.cmpi eq, %pid, %c0 : i32
%second = arith.cmpi eq, %pid, %c1 : i32
"""
STRUCTURE = {
    "tt.splat, tt.broadcast, tt.expand_dims, tt.trans, tt.dot": """%q = tt.reshape %x0 : TILE -> tensor<4x4xELEMENT>
%w = tt.reshape %x1 : TILE -> tensor<4x4xELEMENT>
%t = tt.trans %w {order = array<i32: 1, 0>} : tensor<4x4xELEMENT> -> tensor<4x4xELEMENT>
%square = arith.mulf %q, %q : tensor<4x4xELEMENT>
%d = tt.dot %q, %t, %square : tensor<4x4xELEMENT> * tensor<4x4xELEMENT> -> tensor<4x4xELEMENT>
%y = tt.reshape %d : tensor<4x4xELEMENT> -> TILE""",
    "tt.gather": f"""%c7 = arith.constant dense<7> : tensor<{SIZE}xi32>
%k = arith.muli %r, %c7 : tensor<{SIZE}xi32>
%l = arith.constant dense<5> : tensor<{SIZE}xi32>
%j = arith.andi %k, %l : tensor<{SIZE}xi32>
%g = tt.gather %x0[%j] {{axis = 0 : i32}} : (TILE, tensor<{SIZE}xi32>) -> TILE
%y = arith.mulf %g, %x1 : TILE""",
    "autodiff.swap": """%q = tt.reshape %x0 : TILE -> tensor<8x2xELEMENT>
%i = tt.bitcast %q : tensor<8x2xELEMENT> -> tensor<8x2xBITS>
%z = "tt.reduce"(%i) <{axis = 1 : i32}> ({
^bb0(%a: BITS, %b: BITS):
  %c = arith.xori %a, %b : BITS
  tt.reduce.return %c : BITS
}) : (tensor<8x2xBITS>) -> tensor<8xBITS>
%o = tt.expand_dims %z {axis = 1 : i32} : tensor<8xBITS> -> tensor<8x1xBITS>
%p = tt.broadcast %o : tensor<8x1xBITS> -> tensor<8x2xBITS>
%j = arith.xori %i, %p : tensor<8x2xBITS>
%s = tt.bitcast %j : tensor<8x2xBITS> -> tensor<8x2xELEMENT>
%v = tt.reshape %s : tensor<8x2xELEMENT> -> TILE
%y = arith.mulf %v, %x1 : TILE""",
    "arith.select": MASK
    + """%s = arith.select %m, %x0, %x1 : tensor<16xi1>, TILE
%y = arith.mulf %s, %x1 : TILE""",
    "tt.map_elementwise": """%y, %z = "tt.map_elementwise"(%x0, %x1) <{pack = 1 : i32}> ({
^bb0(%a: ELEMENT, %b: ELEMENT):
  %is = arith.cmpf ogt, %a, %b : ELEMENT
  %s = scf.if %is -> (ELEMENT) {
    %u = arith.mulf %a, %b : ELEMENT
    scf.yield %u : ELEMENT
  } else {
    %u = math.exp %a : ELEMENT
    scf.yield %u : ELEMENT
  }
  tt.map_elementwise.return %s, %a : ELEMENT, ELEMENT
}) : (TILE, TILE) -> (TILE, TILE)""",
    "a load with something else where masked": MASK
    + """%other = math.exp %x1 : TILE
%l = tt.load %p0, %m, %other : POINTERS
%y = arith.mulf %l, %x1 : TILE""",
    "a load that is masked": MASK
    + """%zero = arith.constant dense<0.0> : TILE
%l = tt.load %p0, %m, %zero : POINTERS
%y = arith.mulf %l, %x1 : TILE""",
    "a store under a mask, in place": MASK
    + """%e = math.exp %x0 : TILE
tt.store %p0, %e, %m : POINTERS
%y = arith.mulf %x0, %x1 : TILE""",
    "a constant stored in place": MASK
    + """%one = arith.constant dense<1.0> : TILE
tt.store %p0, %one, %m : POINTERS
%l = tt.load %p0 : POINTERS
%y = arith.mulf %l, %x1 : TILE""",
    "what is stored and loaded again": """%e = arith.mulf %x0, %x1 : TILE
tt.store %p0, %e : POINTERS
%l = tt.load %p0 : POINTERS
%y = arith.mulf %l, %l : TILE""",
    "tt.atomic_rmw": MASK
    + """%e = arith.mulf %x0, %x1 : TILE
%old = tt.atomic_rmw fadd, acq_rel, gpu, %p0, %e, %m : (POINTERS, TILE, tensor<16xi1>) -> TILE
%y = arith.mulf %x0, %x1 : TILE""",
    "scf.if": NUMBERS
    + """%e, %n = scf.if %first -> (TILE, i32) {
  %u = arith.mulf %x0, %x1 : TILE
  scf.yield %u, %c1 : TILE, i32
} else {
  scf.yield %x1, %c0 : TILE, i32
}
%f = scf.if %second -> (TILE) {
  %u = arith.mulf %e, %x1 : TILE
  scf.yield %u : TILE
} else {
  %zero = arith.constant dense<2.0> : TILE
  scf.yield %zero : TILE
}
%y = arith.mulf %e, %f : TILE""",
    "a store in a branch": NUMBERS
    + """scf.if %first {
  %u = arith.mulf %x0, %x1 : TILE
  tt.store %p0, %u : POINTERS
}
%y = arith.mulf %x0, %x1 : TILE""",
    "scf.for": NUMBERS
    + """%zero = arith.constant dense<0.0> : TILE
%a, %s, %k = scf.for %i = %c0 to %c5 step %c1 iter_args(%v = %x0, %sum = %zero, %j = %c0) -> (TILE, TILE, i32) : i32 {
  %u = arith.mulf %v, %x1 : TILE
  %t = arith.addf %sum, %u : TILE
  %j1 = arith.addi %j, %i : i32
  scf.yield %u, %t, %j1 : TILE, TILE, i32
}
%y = arith.mulf %a, %s : TILE""",
    "a loop that has no iteration": NUMBERS
    + """%a = scf.for %i = %c5 to %c0 step %c1 iter_args(%v = %x0) -> (TILE) : i32 {
  %u = arith.mulf %v, %x1 : TILE
  scf.yield %u : TILE
}
%y = arith.mulf %a, %x1 : TILE""",
    "a loop that carries its pointers": NUMBERS
    + f"""%step = arith.constant dense<1> : tensor<{SIZE}xi32>
%zero = arith.constant dense<0.0> : TILE
%a, %q = scf.for %i = %c0 to %c1 step %c1 iter_args(%v = %x1, %p = %p0) -> (TILE, POINTERS) : i32 {{
  %l = tt.load %p : POINTERS
  %u = arith.mulf %v, %l : TILE
  %next = tt.addptr %p, %step : POINTERS, tensor<{SIZE}xi32>
  scf.yield %u, %next : TILE, POINTERS
}}
%y = arith.mulf %a, %x1 : TILE""",
    "scf.while": NUMBERS
    + """%limit = arith.constant 3.0e+01 : ELEMENT
%two = arith.constant dense<2.0> : TILE
%w = scf.while (%v = %x0) : (TILE) -> TILE {
  %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%a: ELEMENT, %b: ELEMENT):
    %c = arith.addf %a, %b : ELEMENT
    tt.reduce.return %c : ELEMENT
  }) : (TILE) -> ELEMENT
  %go = arith.cmpf olt, %s, %limit : ELEMENT
  scf.condition(%go) %v : TILE
} do {
^bb0(%v: TILE):
  %u = arith.addf %v, %x1 : TILE
  scf.yield %u : TILE
}
%y = arith.mulf %w, %x1 : TILE""",
}


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("case", STRUCTURE)
def test_structure(case, element):
    check_body(STRUCTURE[case].replace("BITS", element.replace("f", "i")), element)


def test_padding_does_not_move():
    """An infinity that a mask has put stays one, whatever it is multiplied by."""
    body = (
        MASK
        + """%infinity = arith.constant dense<0xFFF0000000000000> : TILE
%masked = arith.select %m, %x0, %infinity : tensor<16xi1>, TILE
%scaled = arith.mulf %masked, %x1 : TILE
%e = math.exp %scaled : TILE
%y = arith.addf %e, %x1 : TILE"""
    )
    check_body(body, "f64")


# ---------------------------------------------------------------------------------------------
# What there is no way forward for
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["max", "exch"])
def test_atomics_that_choose_are_refused(operation):
    body = f"""%true = arith.constant dense<true> : tensor<16xi1>
%old = tt.atomic_rmw {operation}, acq_rel, gpu, %p0, %x1, %true : (POINTERS, TILE, tensor<16xi1>) -> TILE
%y = arith.mulf %x1, %x1 : TILE"""
    with pytest.raises(
        AutodiffError, match=f"no forward-mode rule for 'tt.atomic_rmw {operation}'"
    ):
        push(kernel(body, "f32", 2))


def test_every_rule_is_here():
    """Rules that give a way forward are all exercised above."""
    bodies = [*STRUCTURE.values(), *SINGLE_BODIES.values(), *(body for body, _ in RULES.values())]
    exercised = "\n".join([*bodies, *STRUCTURE, "tt.reduce tt.scan tt.load tt.store"])
    operations = [row[0].strip("`") for row in table("operation") if row[-1] != "pullback"]
    # A residual is no part of a user's kernel.
    assert [name for name in operations if name not in exercised] == ["autodiff.residual"]
    assert SINGLE <= set(SINGLE_BODIES)
