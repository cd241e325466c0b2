"""Both ways of reductions and scans are transposes of one another: ⟨u, J v⟩ = ⟨Jᵀ u, v⟩."""

import pytest
from transposes import check_body

# What is combined, and a combine function of a0, a1, b0, b1 that computes c0 and c1.
COMBINERS = {
    "sum": ("%q", "%c0 = arith.addf %a0, %b0 : ELEMENT"),
    "maximum": ("%q", "%c0 = arith.maximumf %a0, %b0 : ELEMENT"),
    "minimum": ("%q", "%c0 = arith.minnumf %a0, %b0 : ELEMENT"),
    "product": ("%q", "%c0 = arith.mulf %a0, %b0 : ELEMENT"),
    "log of a sum of powers": (
        "%q",
        """%m = arith.maximumf %a0, %b0 : ELEMENT
%am = arith.subf %a0, %m : ELEMENT
%bm = arith.subf %b0, %m : ELEMENT
%ae = math.exp %am : ELEMENT
%be = math.exp %bm : ELEMENT
%s = arith.addf %ae, %be : ELEMENT
%l = math.log %s : ELEMENT
%c0 = arith.addf %l, %m : ELEMENT""",
    ),
    "larger by a branch": (
        "%q",
        """%is = arith.cmpf ogt, %a0, %b0 : ELEMENT
%c0 = scf.if %is -> (ELEMENT) {
  scf.yield %a0 : ELEMENT
} else {
  scf.yield %b0 : ELEMENT
}""",
    ),
    "recurrence": (
        "%q, %w",
        """%c0 = arith.mulf %a0, %b0 : ELEMENT
%t = arith.mulf %a1, %b0 : ELEMENT
%c1 = arith.addf %t, %b1 : ELEMENT""",
    ),
    "largest and its place": (
        "%q, %place",
        """%is = arith.cmpf ogt, %a0, %b0 : ELEMENT
%c0 = arith.select %is, %a0, %b0 : ELEMENT
%c1 = arith.select %is, %a1, %b1 : i32""",
    ),
    "maximum and product": (
        "%q, %w",
        """%c0 = arith.maximumf %a0, %b0 : ELEMENT
%c1 = arith.mulf %a1, %b1 : ELEMENT""",
    ),
    "sum and number": (
        "%q, %place",
        """%c0 = arith.addf %a0, %b0 : ELEMENT
%c1 = arith.addi %a1, %b1 : i32""",
    ),
}


def reduce_or_scan(kind: str, operands: str, code: str, axis: int, attributes: str) -> str:
    """Return code for %z, what a combine function makes of matrices, as matrices again."""
    elements = ["i32" if name == "%place" else "ELEMENT" for name in operands.split(", ")]
    count = len(elements)
    arguments = ", ".join(f"%{side}{i}: {e}" for side in "ab" for i, e in enumerate(elements))
    returned = ", ".join(f"%c{i}" for i in range(count))
    shape = {"scan": "4x4x", "reduce": "4x"}[kind]
    lines = f"""%z:{count} = "tt.{kind}"({operands}) <{{axis = {axis} : i32{attributes}}}> ({{
^bb0({arguments}):
{code}
  tt.{kind}.return {returned} : {", ".join(elements)}
}}) : ({", ".join(f"tensor<4x4x{e}>" for e in elements)})
    -> ({", ".join(f"tensor<{shape}{e}>" for e in elements)})"""
    for i, element in enumerate(elements):
        if element == "ELEMENT" and kind == "reduce":
            thin = ["tensor<1x4xELEMENT>", "tensor<4x1xELEMENT>"][axis]
            lines += f"""
%e{i} = tt.expand_dims %z#{i} {{axis = {axis} : i32}} : tensor<4xELEMENT> -> {thin}
%f{i} = tt.broadcast %e{i} : {thin} -> MATRIX"""
        elif element == "ELEMENT":
            lines += f"\n%f{i} = tt.reshape %z#{i} : MATRIX -> MATRIX"
    return lines


def combination(kind: str, name: str, axis: int, attributes: str = "") -> str:
    """Return a body that reduces or scans a matrix with a combine function."""
    operands, code = COMBINERS[name]
    thin = ["tensor<4x1xi32>", "tensor<1x4xi32>"][axis]
    both = "%f0, %f1" if operands == "%q, %w" else "%f0, %w"
    return f"""%q = tt.reshape %x0 : TILE -> MATRIX
%w = tt.reshape %x1 : TILE -> MATRIX
%count = tt.make_range {{start = 0 : i32, end = 4 : i32}} : tensor<4xi32>
%row = tt.expand_dims %count {{axis = {1 - axis} : i32}} : tensor<4xi32> -> {thin}
%place = tt.broadcast %row : {thin} -> tensor<4x4xi32>
{reduce_or_scan(kind, operands, code, axis, attributes)}
%g = arith.mulf {both} : MATRIX
%h = arith.mulf %g, %w : MATRIX
%y = tt.reshape %h : MATRIX -> TILE"""


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", COMBINERS)
def test_reduction(name, axis):
    check_body(combination("reduce", name, axis), "f64")


@pytest.mark.parametrize("reverse", ["false", "true"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", COMBINERS)
def test_scan(name, axis, reverse):
    check_body(combination("scan", name, axis, f", reverse = {reverse}"), "f64")


TIED = ["maximum", "minimum", "maximum and product", "larger by a branch", "largest and its place"]


@pytest.mark.parametrize("name", TIED)
def test_ties_in_reductions(name):
    def tie(inputs):
        inputs[0] = inputs[0].round(decimals=0)

    check_body(combination("reduce", name, 1), "f64", -1.4, 1.4, tie)


MEAN = """%half = arith.constant 5.0e-01 : ELEMENT
%t = arith.addf %a0, %b0 : ELEMENT
%c0 = arith.mulf %t, %half : ELEMENT"""


@pytest.mark.parametrize("kind, attributes", [("reduce", ""), ("scan", ", reverse = false")])
def test_equal_elements(kind, attributes):
    """The mean of equal numbers is theirs, though it is not associative."""
    body = f"""%q = tt.reshape %x0 : TILE -> MATRIX
%s = "tt.reduce"(%q) <{{axis = 1 : i32}}> ({{
^bb0(%a: ELEMENT, %b: ELEMENT):
  %c = arith.addf %a, %b : ELEMENT
  tt.reduce.return %c : ELEMENT
}}) : (MATRIX) -> tensor<4xELEMENT>
%o = tt.expand_dims %s {{axis = 1 : i32}} : tensor<4xELEMENT> -> tensor<4x1xELEMENT>
%p = tt.broadcast %o : tensor<4x1xELEMENT> -> MATRIX
{reduce_or_scan(kind, "%p", MEAN, 1, attributes)}
%v = tt.reshape %f0 : MATRIX -> TILE
%y = arith.mulf %v, %x1 : TILE"""
    check_body(body, "f64")
