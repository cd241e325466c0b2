"""Forward mode is the transpose of reverse mode: ⟨u, J v⟩ = ⟨Jᵀ u, v⟩, for every rule.

Both ways of a rule are made of one derivative; here they meet as kernels, on random numbers. That
the way back is right is shown elsewhere, against PyTorch. Reductions and scans have a file of their
own.
"""

import pytest
from test_rules_of_ttir import RULES
from transposes import DTYPES, check_body, push
from triton.backends.autodiff import AutodiffError, _native
from ttir import SIZE, kernel


def table(heading: str) -> list[list[str]]:
    """Return the rows of a table of the rules' documentation, as lists of cells."""
    operations, functions = _native.rules_markdown().split("## Functions")
    text = {"operation": operations, "function": functions}[heading]
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip("| ") for cell in row] for row in rows]


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("rule", RULES)
def test_rule(rule, element):
    check_body(RULES[rule][0], element)


# How many operands a function takes, if not one, or which, if one is an integer.
SEVERAL = {
    **dict.fromkeys(["atan2", "copysign", "fdim", "fmod", "hypot", "pow", "remainder"], 2),
    **dict.fromkeys(["rhypot", "fmax", "fmin"], 2),
    **dict.fromkeys(["norm3d", "rnorm3d", "fma"], 3),
    **dict.fromkeys(["norm4d", "rnorm4d"], 4),
}
INTEGER_LAST, INTEGER_FIRST = {"ldexp", "scalbn", "powi"}, {"jn", "yn"}
OPERATIONS = {
    "add": "arith.addf %x0, %x1",
    "sub": "arith.subf %x0, %x1",
    "mul": "arith.mulf %x0, %x1",
    "div": "arith.divf %x0, %x1",
    "neg": "arith.negf %x0",
    "maximum": "arith.maximumf %x0, %x1",
    "minimum": "arith.minimumf %x0, %x1",
}
FUNCTIONS = [row[0].strip("`") for row in table("function") if row[-1] == "partials"]


def call(symbol: str, operands: str, types: str) -> str:
    """Return a call of a function of the device library."""
    attributes = f'libname = "", libpath = "", pure = true, symbol = "{symbol}"'
    return f"tt.extern_elementwise {operands} {{{attributes}}} : ({types}) -> TILE"


def instruction(text: str) -> str:
    """Return inline assembly."""
    attributes = '{constraints = "=f,f", packed_element = 1 : i32, pure = true}'
    return f'tt.elementwise_inline_asm "{text} $0, $1;" {attributes} %x0 : TILE -> TILE'


def apply(name: str) -> str:
    """Return a body that applies a function of the table."""
    if name in OPERATIONS:
        return f"%y = {OPERATIONS[name]} : TILE"
    count = SEVERAL.get(name, 1)
    operands = ", ".join(f"%x{i}" for i in range(count))
    types = ", ".join(["TILE"] * count)
    if name in INTEGER_LAST:
        operands, types = "%x0, %n", "TILE, INTEGERS"
    if name in INTEGER_FIRST:
        operands, types = "%n, %x0", "INTEGERS, TILE"
    symbol = "__nv_drcp_rn" if name == "rcp" else f"__nv_{name}"
    return f"%n = arith.constant dense<3> : INTEGERS\n%y = {call(symbol, operands, types)}"


# What only exists in single precision, and casts.
SINGLE = {
    "saturate": f"%s = {call('__nv_saturatef', '%x0', 'TILE')}",
    "cvt": f"%s = {instruction('cvt.rna.tf32.f32')}",
    "mov": f"%s = {instruction('mov.f32')}",
    "double2float": f"""%d = arith.extf %x0 : TILE to tensor<{SIZE}xf64>
%s = {call("__nv_double2float_rn", "%d", f"tensor<{SIZE}xf64>")}""",
    "arith.truncf, arith.extf, tt.fp_to_fp": f"""%h = arith.truncf %x0 : TILE to tensor<{SIZE}xbf16>
%f = arith.extf %h : tensor<{SIZE}xbf16> to TILE
%e = tt.fp_to_fp %f, rounding = rtne : TILE -> tensor<{SIZE}xf8E5M2>
%s = tt.fp_to_fp %e : tensor<{SIZE}xf8E5M2> -> TILE""",
    "an exponential in double precision": f"""%d = arith.extf %x0 : TILE to tensor<{SIZE}xf64>
%e = math.exp %d : tensor<{SIZE}xf64>
%s = arith.truncf %e : tensor<{SIZE}xf64> to TILE""",
    "tt.dot in TF32": """%q = tt.reshape %x0 : TILE -> MATRIX
%w = tt.reshape %x1 : TILE -> MATRIX
%d = tt.dot %q, %w, %w, inputPrecision = tf32 : MATRIX * MATRIX -> MATRIX
%s = tt.reshape %d : MATRIX -> TILE""",
}


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in SINGLE])
def test_function(name):
    low, high = (1.1, 3) if name == "acosh" else (0.1, 0.9)
    check_body(apply(name), "f64", low, high)


@pytest.mark.parametrize("case", SINGLE)
def test_single_precision(case):
    check_body(f"{SINGLE[case]}\n%y = arith.mulf %s, %x1 : TILE", "f32", 0.1, 0.9)


MASK = """%bound = arith.constant dense<11> : INTEGERS
%m = arith.cmpi slt, %r, %bound : INTEGERS
"""
NUMBERS = """%pid = tt.get_program_id x : i32
%c0 = arith.constant 0 : i32
%c1 = arith.constant 1 : i32
%c5 = arith.constant 5 : i32
%first = arith.cmpi eq, %pid, %c0 : i32
%second = arith.cmpi eq, %pid, %c1 : i32
"""
STRUCTURE = {
    "tt.trans, tt.dot": """%q = tt.reshape %x0 : TILE -> MATRIX
%w = tt.reshape %x1 : TILE -> MATRIX
%t = tt.trans %w {order = array<i32: 1, 0>} : MATRIX -> MATRIX
%square = arith.mulf %q, %q : MATRIX
%d = tt.dot %q, %t, %square : MATRIX * MATRIX -> MATRIX
%y = tt.reshape %d : MATRIX -> TILE""",
    "tt.splat, tt.expand_dims, tt.broadcast": """%q = tt.reshape %x0 : TILE -> tensor<1x16xELEMENT>
%s = "tt.reduce"(%q) <{axis = 1 : i32}> ({
^bb0(%a: ELEMENT, %b: ELEMENT):
  %c = arith.addf %a, %b : ELEMENT
  tt.reduce.return %c : ELEMENT
}) : (tensor<1x16xELEMENT>) -> tensor<1xELEMENT>
%u = tt.unsplat %s : tensor<1xELEMENT>
%row = tt.splat %u : ELEMENT -> tensor<4xELEMENT>
%e = tt.expand_dims %row {axis = 0 : i32} : tensor<4xELEMENT> -> tensor<1x4xELEMENT>
%f = tt.broadcast %e : tensor<1x4xELEMENT> -> MATRIX
%g = tt.reshape %f : MATRIX -> TILE
%y = arith.mulf %g, %x1 : TILE""",
    "tt.gather": """%c7 = arith.constant dense<7> : INTEGERS
%k = arith.muli %r, %c7 : INTEGERS
%l = arith.constant dense<5> : INTEGERS
%j = arith.andi %k, %l : INTEGERS
%g = tt.gather %x0[%j] {axis = 0 : i32} : (TILE, INTEGERS) -> TILE
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
    + """%s = arith.select %m, %x0, %x1 : CONDITIONS, TILE
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
%old = tt.atomic_rmw fadd, acq_rel, gpu, %p0, %e, %m : (POINTERS, TILE, CONDITIONS) -> TILE
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
%a, %s, %k = scf.for %i = %c0 to %c5 step %c1
    iter_args(%v = %x0, %sum = %zero, %j = %c0) -> (TILE, TILE, i32) : i32 {
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
    + """%step = arith.constant dense<1> : INTEGERS
%zero = arith.constant dense<0.0> : TILE
%a, %q = scf.for %i = %c0 to %c1 step %c1
    iter_args(%v = %x1, %p = %p0) -> (TILE, POINTERS) : i32 {
  %l = tt.load %p : POINTERS
  %u = arith.mulf %v, %l : TILE
  %next = tt.addptr %p, %step : POINTERS, INTEGERS
  scf.yield %u, %next : TILE, POINTERS
}
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
%masked = arith.select %m, %x0, %infinity : CONDITIONS, TILE
%scaled = arith.mulf %masked, %x1 : TILE
%e = math.exp %scaled : TILE
%y = arith.addf %e, %x1 : TILE"""
    )
    check_body(body, "f64")


ROW, THIN = "tensor<4xELEMENT>", "tensor<4x1xELEMENT>"


def across(name: str, source: str) -> str:
    """Return code that repeats a row of numbers along the other axis of a matrix."""
    return f"""%{name}_thin = tt.expand_dims %{source} {{axis = 1 : i32}} : {ROW} -> {THIN}
%{name} = tt.broadcast %{name}_thin : {THIN} -> MATRIX"""


def fold(name: str, operation: str, source: str) -> str:
    """Return code that combines the elements of a matrix along its last axis."""
    return f"""%{name} = "tt.reduce"(%{source}) <{{axis = 1 : i32}}> ({{
^bb0(%left: ELEMENT, %right: ELEMENT):
  %both = {operation} %left, %right : ELEMENT
  tt.reduce.return %both : ELEMENT
}}) : (MATRIX) -> {ROW}"""


ATTENTION = f"""{NUMBERS}%q = tt.reshape %x0 : TILE -> MATRIX
%k = tt.reshape %x1 : TILE -> MATRIX
%zero = arith.constant dense<0.0> : MATRIX
%none = arith.constant dense<0.0> : {ROW}
%start = arith.constant dense<0xFFF0000000000000> : {ROW}
%masked = arith.constant dense<0xFFF0000000000000> : MATRIX
%range = tt.make_range {{start = 0 : i32, end = 4 : i32}} : tensor<4xi32>
%column_thin = tt.expand_dims %range {{axis = 0 : i32}} : tensor<4xi32> -> tensor<1x4xi32>
%column = tt.broadcast %column_thin : tensor<1x4xi32> -> tensor<4x4xi32>
%m, %l, %sum = scf.for %i = %c0 to %c5 step %c1
    iter_args(%m0 = %start, %l0 = %none, %sum0 = %zero) -> ({ROW}, {ROW}, MATRIX) : i32 {{
  %number = arith.sitofp %i : i32 to ELEMENT
  %factor = tt.splat %number : ELEMENT -> MATRIX
  %v = arith.mulf %k, %factor : MATRIX
  %scores = tt.dot %q, %v, %zero : MATRIX * MATRIX -> MATRIX
  %limit = tt.splat %i : i32 -> tensor<4x4xi32>
  %seen = arith.cmpi sle, %column, %limit : tensor<4x4xi32>
  %s = arith.select %seen, %scores, %masked : tensor<4x4xi1>, MATRIX
  {fold("largest", "arith.maximumf", "s")}
  %m1 = arith.maximumf %m0, %largest : {ROW}
  {across("m_all", "m1")}
  %shifted = arith.subf %s, %m_all : MATRIX
  %p = math.exp %shifted : MATRIX
  {fold("total", "arith.addf", "p")}
  %step = arith.subf %m0, %m1 : {ROW}
  %scale = math.exp %step : {ROW}
  %l_scaled = arith.mulf %l0, %scale : {ROW}
  %l1 = arith.addf %l_scaled, %total : {ROW}
  {across("scale_all", "scale")}
  %sum_scaled = arith.mulf %sum0, %scale_all : MATRIX
  %sum1 = tt.dot %p, %v, %sum_scaled : MATRIX * MATRIX -> MATRIX
  scf.yield %m1, %l1, %sum1 : {ROW}, {ROW}, MATRIX
}}
{across("l_all", "l")}
%mean = arith.divf %sum, %l_all : MATRIX
%y = tt.reshape %mean : MATRIX -> TILE"""


def test_attention():
    """All of it together: a softmax as it runs, with masks, whose maxima carry no gradient."""
    check_body(ATTENTION, "f64")


@pytest.mark.parametrize(
    "operation, called", [("max", "tl.atomic_max"), ("exch", "tl.atomic_xchg")]
)
def test_atomics_that_choose_are_refused(operation, called):
    body = f"""%true = arith.constant dense<true> : CONDITIONS
%old = tt.atomic_rmw {operation}, acq_rel, gpu, %p0, %x1, %true : (POINTERS, TILE, CONDITIONS)
    -> TILE
%y = arith.mulf %x1, %x1 : TILE"""
    with pytest.raises(AutodiffError, match=f"no forward-mode rule for '{called}' on"):
        push(kernel(body, "f32", 2))


def test_every_rule_is_here():
    """Rules are all exercised above, or where elements are combined."""
    bodies = [*STRUCTURE, *STRUCTURE.values(), *SINGLE, *(body for body, _ in RULES.values())]
    exercised = "\n".join([*bodies, "tt.reduce tt.scan tt.load tt.store"])
    operations = [row[0].strip("`") for row in table("operation")]
    # These are no part of a user's kernel; of the first, only the compiler's own have tangents.
    beside = ["autodiff.custom_vjp", "autodiff.once", "autodiff.residual"]
    assert [name for name in operations if name not in exercised] == beside
