"""Kernels that some Tritons reject: most as TTIR, for no short source leads to them."""

import triton
import triton.language as tl

# A product in a branch, of which Triton's passes fail up to 3.9: the other side does nothing, and
# the sum, masked by data, is an operand of another product.
BRANCH = """
module {
  tt.func public @k(%a: !tt.ptr<f32>, %m: !tt.ptr<i32>, %b: !tt.ptr<bf16>, %o: !tt.ptr<f32>,
                    %n: i32) {
    %r = tt.make_range {end = 4096 : i32, start = 0 : i32} : tensor<4096xi32>
    %r2 = tt.reshape %r : tensor<4096xi32> -> tensor<64x64xi32>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0> : tensor<64x64xi32>
    %one = arith.constant dense<1.0> : tensor<64x64xbf16>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %as = tt.splat %a : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %ap = tt.addptr %as, %r2 : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    %ms = tt.splat %m : !tt.ptr<i32> -> tensor<64x64x!tt.ptr<i32>>
    %mp = tt.addptr %ms, %r2 : tensor<64x64x!tt.ptr<i32>>, tensor<64x64xi32>
    %bs = tt.splat %b : !tt.ptr<bf16> -> tensor<64x64x!tt.ptr<bf16>>
    %bp = tt.addptr %bs, %r2 : tensor<64x64x!tt.ptr<bf16>>, tensor<64x64xi32>
    %os = tt.splat %o : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %op = tt.addptr %os, %r2 : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    %bv = tt.load %bp : tensor<64x64x!tt.ptr<bf16>>
    %av = tt.load %ap : tensor<64x64x!tt.ptr<f32>>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%x = %av) -> (tensor<64x64xf32>) : i32 {
      %xb = arith.truncf %x : tensor<64x64xf32> to tensor<64x64xbf16>
      %d = tt.dot %xb, %bv, %zero : tensor<64x64xbf16> * tensor<64x64xbf16> -> tensor<64x64xf32>
      tt.store %op, %d : tensor<64x64x!tt.ptr<f32>>
      %late = arith.cmpi sgt, %i, %c1 : i32
      %l = tt.load %bp : tensor<64x64x!tt.ptr<bf16>>
      %e = scf.if %late -> (tensor<64x64xf32>) {
        %f = tt.dot %one, %l, %zero : tensor<64x64xbf16> * tensor<64x64xbf16> -> tensor<64x64xf32>
        scf.yield %f : tensor<64x64xf32>
      } else {
        scf.yield %zero : tensor<64x64xf32>
      }
      %mv = tt.load %mp : tensor<64x64x!tt.ptr<i32>>
      %c = arith.cmpi ne, %mv, %none : tensor<64x64xi32>
      %y = arith.select %c, %x, %zero : tensor<64x64xi1>, tensor<64x64xf32>
      %w = arith.addf %y, %e : tensor<64x64xf32>
      scf.yield %w : tensor<64x64xf32>
    }
    tt.store %ap, %sum : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
"""


@triton.jit
def total_kernel(x_ptr, y_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + i[None, :])
    tl.store(y_ptr, tl.sum(tl.sum(tl.dot(x, x), axis=1), axis=0))


# An operand of products in two blocks, of which Triton's passes fail up to 3.7: only the second
# block has a product of the size that a matrix unit takes. `{first}` is the first block.
SHARED = """
module {{
  tt.func public @k(%x: !tt.ptr<f32>, %c: !tt.ptr<{type}>, %y: !tt.ptr<f32>, %z: !tt.ptr<{sum}>,
                    %n: i32) {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %runs = arith.cmpi sgt, %n, %c0 : i32
    %zero = arith.constant dense<0.0> : tensor<16x16xf32>
    %none = arith.constant dense<0.0> : tensor<16x16x{sum}>
    %r = tt.make_range {{end = 256 : i32, start = 0 : i32}} : tensor<256xi32>
    %o = tt.reshape %r : tensor<256xi32> -> tensor<16x16xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
    %xp = tt.addptr %xs, %o : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
    %cs = tt.splat %c : !tt.ptr<{type}> -> tensor<16x16x!tt.ptr<{type}>>
    %cp = tt.addptr %cs, %o : tensor<16x16x!tt.ptr<{type}>>, tensor<16x16xi32>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
    %yp = tt.addptr %ys, %o : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
    %zs = tt.splat %z : !tt.ptr<{sum}> -> tensor<16x16x!tt.ptr<{sum}>>
    %zp = tt.addptr %zs, %o : tensor<16x16x!tt.ptr<{sum}>>, tensor<16x16xi32>
    %xv = tt.load %xp : tensor<16x16x!tt.ptr<f32>>
    %turned = tt.trans %xv {{order = array<i32: 1, 0>}} : tensor<16x16xf32> -> tensor<16x16xf32>
    %a = math.exp %turned : tensor<16x16xf32>
{first}
    tt.store %yp, %u : tensor<16x16x!tt.ptr<f32>>
    scf.for %i = %c0 to %n step %c1 : i32 {{
      %b = tt.load %xp : tensor<16x16x!tt.ptr<f32>>
      %d = tt.dot %a, %b, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
      %e = arith.{convert} %d : tensor<16x16xf32> to tensor<16x16x{type}>
      %cv = tt.load %cp : tensor<16x16x!tt.ptr<{type}>>
      %f = tt.dot %e, %cv, %none
        : tensor<16x16x{type}> * tensor<16x16x{type}> -> tensor<16x16x{sum}>
      tt.store %zp, %f : tensor<16x16x!tt.ptr<{sum}>>
    }}
    tt.return
  }}
}}
"""
_PRODUCT = """      %b = tt.load %xp : tensor<16x16x!tt.ptr<f32>>
      %d = tt.dot %a, %b, %s : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>"""
FIRST = {
    "for": f"""
    %u = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<16x16xf32>) : i32 {{
{_PRODUCT}
      scf.yield %d : tensor<16x16xf32>
    }}""",
    "if": f"""
    %u = scf.if %runs -> (tensor<16x16xf32>) {{
{_PRODUCT.replace("%s", "%zero")}
      scf.yield %d : tensor<16x16xf32>
    }} else {{
      scf.yield %zero : tensor<16x16xf32>
    }}""",
    "while": f"""
    %u = scf.while (%s = %zero) : (tensor<16x16xf32>) -> tensor<16x16xf32> {{
      scf.condition(%runs) %s : tensor<16x16xf32>
    }} do {{
    ^bb0(%s: tensor<16x16xf32>):
{_PRODUCT}
      scf.yield %d : tensor<16x16xf32>
    }}""",
}
TYPES = {
    "f64": {"convert": "extf", "sum": "f64"},
    "f16": {"convert": "truncf", "sum": "f32"},
    "bf16": {"convert": "truncf", "sum": "f32"},
}


# A row that is used as a row and then as a tile, of which Triton's passes fail up to 3.6: both are
# computed a second time in the layout of what is added to memory. No product is needed.
ROW = """
module {
  tt.func public @k(%x: !tt.ptr<f64> {tt.divisibility = 16 : i32},
                    %y: !tt.ptr<f64> {tt.divisibility = 16 : i32},
                    %z: !tt.ptr<f64> {tt.divisibility = 16 : i32}, %n: i32, %runs: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %all = arith.constant dense<true> : tensor<16x4xi1>
    %zero = arith.constant dense<0.0> : tensor<16x4xf64>
    %one = arith.constant dense<1.0> : tensor<16x4xf64>
    %none = arith.constant dense<0.0> : tensor<4xf64>
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %j = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
    %ic = tt.expand_dims %i {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %jr = tt.expand_dims %j {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
    %ns = tt.splat %n : i32 -> tensor<16x1xi32>
    %in = arith.muli %ic, %ns : tensor<16x1xi32>
    %ib = tt.broadcast %in : tensor<16x1xi32> -> tensor<16x4xi32>
    %jb = tt.broadcast %jr : tensor<1x4xi32> -> tensor<16x4xi32>
    %o = arith.addi %ib, %jb : tensor<16x4xi32>
    %xs = tt.splat %x : !tt.ptr<f64> -> tensor<16x4x!tt.ptr<f64>>
    %xp = tt.addptr %xs, %o : tensor<16x4x!tt.ptr<f64>>, tensor<16x4xi32>
    %ys = tt.splat %y : !tt.ptr<f64> -> tensor<16x4x!tt.ptr<f64>>
    %yp = tt.addptr %ys, %o : tensor<16x4x!tt.ptr<f64>>, tensor<16x4xi32>
    %zs = tt.splat %z : !tt.ptr<f64> -> tensor<16x4x!tt.ptr<f64>>
    %xv = tt.load %xp : tensor<16x4x!tt.ptr<f64>>
    %u = scf.for %k = %c0 to %n step %c1 iter_args(%s = %one) -> (tensor<16x4xf64>) : i32 {
      scf.yield %xv : tensor<16x4xf64>
    }
    %m = arith.cmpf ogt, %u, %one : tensor<16x4xf64>
    %v = tt.atomic_rmw exch, relaxed, gpu, %zs, %zero, %m
      : (tensor<16x4x!tt.ptr<f64>>, tensor<16x4xf64>, tensor<16x4xi1>) -> tensor<16x4xf64>
    %w = scf.for %k = %c0 to %n step %c1 iter_args(%s = %v) -> (tensor<16x4xf64>) : i32 {
      scf.yield %zero : tensor<16x4xf64>
    }
    %most = "tt.reduce"(%xv) <{axis = 0 : i32}> ({
    ^bb0(%p: f64, %q: f64):
      %r = arith.maxnumf %p, %q : f64
      tt.reduce.return %r : f64
    }) : (tensor<16x4xf64>) -> tensor<4xf64>
    %c = arith.cmpf uno, %most, %most : tensor<4xf64>
    %rs = tt.splat %runs : i1 -> tensor<4xi1>
    %d = arith.andi %c, %rs : tensor<4xi1>
    %e = arith.select %d, %most, %none : tensor<4xi1>, tensor<4xf64>
    %cr = tt.expand_dims %c {axis = 0 : i32} : tensor<4xi1> -> tensor<1x4xi1>
    %cb = tt.broadcast %cr : tensor<1x4xi1> -> tensor<16x4xi1>
    %f = arith.select %cb, %one, %zero : tensor<16x4xi1>, tensor<16x4xf64>
    %count = "tt.reduce"(%f) <{axis = 0 : i32}> ({
    ^bb0(%p: f64, %q: f64):
      %r = arith.addf %p, %q : f64
      tt.reduce.return %r : f64
    }) : (tensor<16x4xf64>) -> tensor<4xf64>
    %g = arith.divf %e, %count : tensor<4xf64>
    %gr = tt.expand_dims %g {axis = 0 : i32} : tensor<4xf64> -> tensor<1x4xf64>
    %gb = tt.broadcast %gr : tensor<1x4xf64> -> tensor<16x4xf64>
    %h = arith.addf %w, %gb : tensor<16x4xf64>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %yp, %h, %all
      : (tensor<16x4x!tt.ptr<f64>>, tensor<16x4xf64>, tensor<16x4xi1>) -> tensor<16x4xf64>
    tt.return
  }
}
"""


@triton.jit
def widened_kernel(x_ptr, w_ptr, y_ptr):
    """A product in float64 of what is in fewer bits in memory."""
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    x, w = tl.load(x_ptr + at).to(tl.float64), tl.load(w_ptr + at)
    tl.store(y_ptr + at, tl.dot(x, w, input_precision="ieee", out_dtype=tl.float64))


# A loop that never runs, of which Triton's passes fail up to 3.6: no value reaches what it loads.
NEVER = """
module {
  tt.func public @k(%x: !tt.ptr<f32>) {
    %no = arith.constant false
    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %xp = tt.addptr %xs, %i : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %s = tt.load %xp : tensor<128x!tt.ptr<f32>>
    %y, %z = scf.while (%v = %s, %q = %xp)
      : (tensor<128xf32>, tensor<128x!tt.ptr<f32>>)
      -> (tensor<128xf32>, tensor<128x!tt.ptr<f32>>) {
      scf.condition(%no) %v, %q : tensor<128xf32>, tensor<128x!tt.ptr<f32>>
    } do {
    ^bb0(%v: tensor<128xf32>, %q: tensor<128x!tt.ptr<f32>>):
      %r = tt.addptr %q, %i : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
      %w = tt.load %r : tensor<128x!tt.ptr<f32>>
      %u = arith.addf %w, %v : tensor<128xf32>
      scf.yield %u, %r : tensor<128xf32>, tensor<128x!tt.ptr<f32>>
    }
    tt.store %xp, %y : tensor<128x!tt.ptr<f32>>
    tt.return
  }
}
"""
