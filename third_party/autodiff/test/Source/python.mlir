// RUN: triton-autodiff-translate --ttir-to-python -split-input-file %s | FileCheck %s

// Single numbers and shorter axes are extended where they are used; constants
// are written where they are used, too.
// CHECK: import triton
// CHECK-NEXT: import triton.language as tl
// CHECK: # x_ptr: tl.pointer_type(tl.float32), a multiple of 16
// CHECK-NEXT: # arg1: tl.pointer_type(tl.float32)
// CHECK-NEXT: # n: tl.int32
// CHECK-NEXT: @triton.jit
// CHECK-NEXT: def scale(x_ptr, arg1, n):
// CHECK-NEXT:     i = tl.program_id(0) * 64 + tl.arange(0, 64)
// CHECK-NEXT:     mask = i < n
// CHECK-NEXT:     x = tl.load(x_ptr + i, mask, 0.0)
// CHECK-NEXT:     y = tl.where(x > 0.5, x, 0.25)
// CHECK-NEXT:     pointers = arg1 + i
// CHECK-NEXT:     tl.store(pointers, -(y * x) + x, mask)
#loc = loc(unknown)
module {
  tt.func public @scale(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x_ptr"(#loc)), %q: !tt.ptr<f32>, %n: i32 loc("n"(#loc))) {
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32>
    %half = arith.constant dense<0.5> : tensor<64xf32>
    %quarter = arith.constant dense<0.25> : tensor<64xf32>
    %pid = tt.get_program_id x : i32 loc("i"(#loc))
    %start = arith.muli %pid, %c64 : i32 loc("i"(#loc))
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32> loc("i"(#loc))
    %starts = tt.splat %start : i32 -> tensor<64xi32> loc("i"(#loc))
    %i = arith.addi %starts, %range : tensor<64xi32> loc("i"(#loc))
    %ns = tt.splat %n : i32 -> tensor<64xi32> loc("mask"(#loc))
    %mask = arith.cmpi slt, %i, %ns : tensor<64xi32> loc("mask"(#loc))
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>> loc("x"(#loc))
    %ats = tt.addptr %ps, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32> loc("x"(#loc))
    %x = tt.load %ats, %mask, %zero : tensor<64x!tt.ptr<f32>> loc("x"(#loc))
    %c = arith.cmpf ogt, %x, %half : tensor<64xf32>
    %y = arith.select %c, %x, %quarter : tensor<64xi1>, tensor<64xf32> loc("y"(#loc))
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %qts = tt.addptr %qs, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %z = arith.mulf %y, %x : tensor<64xf32>
    %w = arith.negf %z : tensor<64xf32>
    %v = arith.addf %w, %x : tensor<64xf32>
    tt.store %qts, %v, %mask : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// What loops carry are variables that each iteration assigns at once. A combine
// function is one of the module, and equal ones are one.
// CHECK: def combine(a, b):
// CHECK-NEXT:     return -(a * b)
// CHECK-NOT: def combine_1
// CHECK: def sums(p, q, n):
// CHECK-NEXT:     [[X:[a-z_0-9]+]] = tl.load(p + tl.arange(0, 16))
// CHECK-NEXT:     [[A:[a-z_0-9]+]] = 0.0
// CHECK-NEXT:     [[B:[a-z_0-9]+]] = 1.0
// CHECK-NEXT:     for i in tl.range(n, num_stages=2):
// CHECK-NEXT:         [[A]], [[B]] = [[B]], tl.reduce([[X]], 0, combine) * tl.reduce([[X]], 0, combine) + [[A]]
// CHECK-NEXT:     if n > 3:
// CHECK-NEXT:         [[R:[a-z_0-9]+]] = [[A]]
// CHECK-NEXT:     else:
// CHECK-NEXT:         [[R]] = [[B]]
// CHECK-NEXT:     tl.store(q, [[R]])
module {
  tt.func public @sums(%p: !tt.ptr<f32> loc("p"), %q: !tt.ptr<f32> loc("q"), %n: i32 loc("n")) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %ats = tt.addptr %ps, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %x = tt.load %ats : tensor<16x!tt.ptr<f32>>
    %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %other = %one) -> (f32, f32) : i32 {
      %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %product = arith.mulf %a, %b : f32
        %t = arith.negf %product : f32
        tt.reduce.return %t : f32
      }) : (tensor<16xf32>) -> f32
      %u = "tt.reduce"(%x) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %product = arith.mulf %a, %b : f32
        %t = arith.negf %product : f32
        tt.reduce.return %t : f32
      }) : (tensor<16xf32>) -> f32
      %v = arith.mulf %s, %u : f32
      %w = arith.addf %v, %acc : f32
      scf.yield %other, %w : f32, f32
    } {tt.num_stages = 2 : i32} loc("acc")
    %c = arith.cmpi sgt, %n, %c3 : i32
    %chosen = scf.if %c -> f32 {
      scf.yield %r#0 : f32
    } else {
      scf.yield %r#1 : f32
    }
    tt.store %q, %chosen : !tt.ptr<f32>
    tt.return
  }
}

// -----

// What Triton's library reduces or scans in the same way is called so; numbers
// of less than 32 bits it would convert first.
// CHECK: def combine(a, b):
// CHECK-NEXT:     return a + b
// CHECK: def library(p, r):
// CHECK: tl.store(p, tl.sum([[Q:.*]], 0))
// CHECK: tl.store(p, tl.max([[Q]], 0))
// CHECK: tl.store({{.*}}, tl.cumsum([[Q]], 0, reverse=True))
// CHECK: tl.store(r, tl.reduce({{.*}}, 0, combine))
module {
  tt.func public @library(%p: !tt.ptr<f32> loc("p"), %r: !tt.ptr<f16> loc("r")) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %ats = tt.addptr %ps, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %q = tt.load %ats : tensor<16x!tt.ptr<f32>>
    %h = arith.truncf %q : tensor<16xf32> to tensor<16xf16>
    %sum = "tt.reduce"(%q) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<16xf32>) -> f32
    tt.store %p, %sum : !tt.ptr<f32>
    %max = "tt.reduce"(%q) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<16xf32>) -> f32
    tt.store %p, %max : !tt.ptr<f32>
    %sums = "tt.scan"(%q) <{axis = 0 : i32, reverse = true}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.scan.return %c : f32
    }) : (tensor<16xf32>) -> tensor<16xf32>
    tt.store %ats, %sums : tensor<16x!tt.ptr<f32>>
    %half = "tt.reduce"(%h) <{axis = 0 : i32}> ({
    ^bb0(%a: f16, %b: f16):
      %c = arith.addf %a, %b : f16
      tt.reduce.return %c : f16
    }) : (tensor<16xf16>) -> f16
    tt.store %r, %half : !tt.ptr<f16>
    tt.return
  }
}

// -----

// Triton has the results of a branch in the order of the alphabet, and compares
// a literal, which it takes for 32 bits, with what it extends to them.
// CHECK: def branch(p, n, q, r):
// CHECK: mask = tl.load({{.*}}) != tl.full([], 0, tl.int8)
// CHECK: if {{.*}}:
// CHECK-NEXT:     a_second, b_first = 2.0, 1.0
// CHECK-NEXT: else:
// CHECK-NEXT:     a_second, b_first = 1.0, 2.0
// CHECK: tl.full([], 3.0, tl.float32).to(tl.float16)
module {
  tt.func public @branch(%p: !tt.ptr<i8> loc("p"), %n: i32 loc("n"), %q: !tt.ptr<f16> loc("q"), %r: !tt.ptr<f32> loc("r")) {
    %zero = arith.constant 0 : i8
    %none = arith.constant 0 : i32
    %one = arith.constant 1.0 : f32 loc("first")
    %two = arith.constant 2.0 : f32 loc("second")
    %three = arith.constant 3.0 : f32
    %x = tt.load %p : !tt.ptr<i8>
    %mask = arith.cmpi ne, %x, %zero : i8 loc("mask")
    %positive = arith.cmpi sgt, %n, %none : i32
    %both = arith.andi %mask, %positive : i1
    %again = arith.ori %mask, %both : i1
    %y:2 = scf.if %again -> (f32, f32) {
      scf.yield %two, %one : f32, f32
    } else {
      scf.yield %one, %two : f32, f32
    }
    tt.store %r, %y#0 : !tt.ptr<f32>
    tt.store %r, %y#1 : !tt.ptr<f32>
    %half = arith.truncf %three : f32 to f16
    tt.store %q, %half : !tt.ptr<f16>
    tt.return
  }
}

// -----

// What debugs, and what has more columns than a line.
// CHECK: def debugged(
// CHECK-NEXT:     p,  # tl.pointer_type(tl.int32)
// CHECK-NEXT:     first_long_parameter,  # tl.int32
// CHECK: ):
// CHECK:     tl.device_print(" x: ", {{.*}}, {{.*}}.to(tl.uint32), hex=True)
// CHECK-NEXT:     condition = first_long_parameter > 0
// CHECK-NEXT:     tl.device_assert(condition, "not \x22positive\x22")
// CHECK-NEXT:     tl.assume(condition)
// CHECK-NEXT:     tl.store({{.*}}, tl.histogram({{.*}}, 8))
module {
  tt.func public @debugged(%p: !tt.ptr<i32> loc("p"), %a: i32 loc("first_long_parameter"), %b: i32 loc("second_long_parameter"), %c: i32 loc("third_long_parameter"), %d: i32 loc("fourth_long_parameter")) {
    %zero = arith.constant 0 : i32
    %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
    %ats = tt.addptr %ps, %i : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    %x = tt.load %ats : tensor<8x!tt.ptr<i32>>
    tt.print " x: " {hex = true, isSigned = array<i32: 1, 0>} : %x, %a : tensor<8xi32>, i32
    %is = arith.cmpi sgt, %a, %zero : i32
    tt.assert %is, "not \22positive\22" : i1
    llvm.intr.assume %is : i1
    %h = tt.histogram %x : tensor<8xi32> -> tensor<8xi32>
    tt.store %ats, %h : tensor<8x!tt.ptr<i32>>
    tt.return
  }
}

// -----

// Triton is told of numbers that it would not take for what they are.
// CHECK: # count: tl.int64, a multiple of 16
// CHECK: def told(p, count: tl.int64, scale: tl.float64):
module {
  tt.func public @told(%p: !tt.ptr<f64> loc("p"), %n: i64 {tt.divisibility = 16 : i32} loc("count"), %s: f64 loc("scale")) {
    %x = arith.sitofp %n : i64 to f64
    %y = arith.mulf %x, %s : f64
    tt.store %p, %y : !tt.ptr<f64>
    tt.return
  }
}

// -----

// A function that kernels call takes and returns tiles. What no derivative goes
// through is called so.
// CHECK: from triton_autodiff.custom import stop_gradient
// CHECK: # x: tl.float32[4, 8]
// CHECK-NEXT: # n: tl.int32
// CHECK-NEXT: @triton.jit
// CHECK-NEXT: def squares(x, n):
// CHECK-NEXT:     return x * stop_gradient(x), tl.full([], 1.0, tl.float32)
module {
  tt.func public @squares(%x: tensor<4x8xf32> loc("x"), %n: i32 loc("n")) -> (tensor<4x8xf32>, f32) {
    %one = arith.constant 1.0 : f32
    %s = autodiff.stop_gradient %x : tensor<4x8xf32>
    %y = arith.mulf %x, %s : tensor<4x8xf32>
    tt.return %y, %one : tensor<4x8xf32>, f32
  }
}

// -----

// A loop may hand on a part of what it carries.
// CHECK: def carried(p, x):
// CHECK:     [[N:[a-z_0-9]+]] = 0
// CHECK-NEXT:     [[A:[a-z_0-9]+]] = x
// CHECK-NEXT:     [[C:[a-z_0-9]+]] = condition
// CHECK-NEXT:     while [[C]]:
// CHECK:         [[N]], [[A]], [[C]] =
// CHECK-NEXT:     tl.store(p, [[A]])
module {
  tt.func public @carried(%p: !tt.ptr<f32> loc("p"), %x: f32 loc("x")) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1.0 : f32
    %c = arith.cmpf ogt, %x, %one : f32
    %r:2 = scf.while (%n = %zero, %a = %x, %more = %c) : (i32, f32, i1) -> (f32, i32) {
      scf.condition(%more) %a, %n : f32, i32
    } do {
    ^bb0(%a: f32, %n: i32):
      %i = arith.constant 1 : i32
      %m = arith.addi %n, %i : i32
      %root = math.sqrt %a : f32
      %again = arith.cmpf ogt, %root, %one : f32
      scf.yield %m, %root, %again : i32, f32, i1
    }
    tt.store %p, %r#0 : !tt.ptr<f32>
    tt.return
  }
}

// -----

// A function that is not inlined is one of the module, called so in the user's
// source. Numbers that it is given are arguments, not constants.
// CHECK: @triton.jit(noinline=True)
// CHECK-NEXT: def inner(x):
// CHECK-NEXT:     return x * x
// CHECK: @triton.jit(noinline=True)
// CHECK-NEXT: def scaled(x, factor):
// CHECK-NEXT:     if factor > 4.0:
// CHECK-NEXT:         return x, factor
// CHECK-NEXT:     return x * inner(factor), x + factor
// CHECK: @triton.jit(noinline=True)
// CHECK-NEXT: def stored(p, n):
// CHECK-NEXT:     tl.store(p, n)
// CHECK: def calls(arg0, arg1):
// CHECK-NEXT:     [[A:[a-z_0-9]+]], [[B:[a-z_0-9]+]] = scaled(arg1, tl.full([], 2.0, tl.float32))
// CHECK-NEXT:     stored(arg0, inner([[A]] - [[B]]))
module {
  tt.func public @calls(%p: !tt.ptr<f32>, %x: f32) {
    %two = arith.constant 2.0 : f32
    %y:2 = tt.call @names.scaled__fp32_fp32__(%x, %two) : (f32, f32) -> (f32, f32)
    %d = arith.subf %y#0, %y#1 : f32
    %z = tt.call @"names.Of.<locals>.inner__fp32__"(%d) : (f32) -> f32
    tt.call @names.stored__Pfp32_fp32__(%p, %z) : (!tt.ptr<f32>, f32) -> ()
    tt.return
  }
  tt.func private @names.scaled__fp32_fp32__(%x: f32 loc("x"), %f: f32 loc("factor")) -> (f32, f32) attributes {noinline = true} {
    %four = arith.constant 4.0 : f32
    %large = arith.cmpf ogt, %f, %four : f32
    cf.cond_br %large, ^bb1, ^bb2
  ^bb1:
    tt.return %x, %f : f32, f32
  ^bb2:
    %g = tt.call @"names.Of.<locals>.inner__fp32__"(%f) : (f32) -> f32
    %y = arith.mulf %x, %g : f32
    %z = arith.addf %x, %f : f32
    tt.return %y, %z : f32, f32
  }
  tt.func private @"names.Of.<locals>.inner__fp32__"(%x: f32 loc("x")) -> f32 attributes {noinline = true} {
    %y = arith.mulf %x, %x : f32
    tt.return %y : f32
  }
  tt.func private @names.stored__Pfp32_fp32__(%p: !tt.ptr<f32> loc("p"), %n: f32 loc("n")) attributes {noinline = true} {
    tt.store %p, %n : !tt.ptr<f32>
    tt.return
  }
}

// -----

// The user's statement, of which rules made adjoints, stands above the first of
// them; what computes their addresses says nothing.
// CHECK: def adjoints(arg0, arg1):
// CHECK-NEXT:     pointers = arg1 + 1
// CHECK-NEXT:     tl.store(pointers, arg0)
// CHECK-NEXT:     # k.py:12
// CHECK-NEXT:     #     exp: x̄ += ȳ·y; sin: x̄ += ȳ·cos x
// CHECK-NEXT:     tl.store(pointers, arg0 * arg0 * arg0)
#line = loc("/nowhere/k.py":12:4)
#other = loc("/nowhere/k.py":12:9)
#exp = loc(fused<"exp: x̄ += ȳ·y">[#line])
#sin = loc(fused<"sin: x̄ += ȳ·cos x">[#other])
module {
  tt.func public @adjoints(%x: f32, %p: !tt.ptr<f32>) {
    %one = arith.constant 1 : i32
    %at = tt.addptr %p, %one : !tt.ptr<f32>, i32 loc(#exp)
    tt.store %at, %x : !tt.ptr<f32>
    %y = arith.mulf %x, %x : f32 loc(#exp)
    %z = arith.mulf %y, %x : f32 loc(#sin)
    tt.store %at, %z : !tt.ptr<f32>
    tt.return
  }
}

// -----

// Triton extends single values in loops, too, smaller tiles that are extended
// directly before, and masks to addresses.
// CHECK: def rows(p, n):
// CHECK-NEXT:     [[C:[a-z_0-9]+]] = tl.arange(0, 16)
// CHECK-NEXT:     [[R:[a-z_0-9]+]] = [[C]][:, None]
// CHECK-NEXT:     [[D:[a-z_0-9]+]] = [[C]][None, :]
// CHECK-NEXT:     mask = [[R]] < n
// CHECK-NEXT:     for i in range(n):
// CHECK-NEXT:         x = tl.where(i + [[R]] > [[D]], n, 0)
// CHECK-NEXT:         tl.store(p + x, x, mask)
#x = loc("x"(unknown))
module {
  tt.func public @rows(%p: !tt.ptr<i32> loc("p"), %n: i32 loc("n")) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0> : tensor<16x16xi32>
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %r = tt.expand_dims %i {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %c = tt.expand_dims %i {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %ns = tt.splat %n : i32 -> tensor<16x16xi32>
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<16x16x!tt.ptr<i32>>
    %n1 = tt.splat %n : i32 -> tensor<16x1xi32>
    %m = arith.cmpi slt, %r, %n1 : tensor<16x1xi32>
    %cs = tt.broadcast %c : tensor<1x16xi32> -> tensor<16x16xi32>
    %ms = tt.broadcast %m : tensor<16x1xi1> -> tensor<16x16xi1>
    scf.for %k = %c0 to %n step %c1 : i32 {
      %k1 = tt.splat %k : i32 -> tensor<16x1xi32> loc(#x)
      %kr = arith.addi %k1, %r : tensor<16x1xi32> loc(#x)
      %krs = tt.broadcast %kr : tensor<16x1xi32> -> tensor<16x16xi32> loc(#x)
      %q = arith.cmpi sgt, %krs, %cs : tensor<16x16xi32> loc(#x)
      %x = arith.select %q, %ns, %zero : tensor<16x16xi1>, tensor<16x16xi32> loc(#x)
      %at = tt.addptr %ps, %x : tensor<16x16x!tt.ptr<i32>>, tensor<16x16xi32>
      tt.store %at, %x, %ms : tensor<16x16x!tt.ptr<i32>>
    }
    tt.return
  }
}

// -----

// A branch chooses a descriptor: `tl.where` takes tiles alone.
// CHECK: def chosen(
// CHECK-NEXT:     [[X:[a-z_0-9]+]] = tl.make_tensor_descriptor(arg0,
// CHECK-NEXT:     [[Z:[a-z_0-9]+]] = tl.make_tensor_descriptor(arg1,
// CHECK:     if {{.*}}:
// CHECK-NEXT:         [[D:[a-z_0-9]+]] = [[X]]
// CHECK-NEXT:     else:
// CHECK-NEXT:         [[D]] = [[Z]]
// CHECK-NEXT:     {{.*}}[[D]].load([0, 0]) + [[X]].load([0, 0])
module {
  tt.func public @chosen(%p: !tt.ptr<f16>, %q: !tt.ptr<f16>, %r: !tt.ptr<f16>, %n: i32 loc("n"), %s: i64) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i64
    %x = tt.make_tensor_descriptor %p, [%n, %n], [%s, %one] : <f16>, <tensor<16x16xf16>>
    %z = tt.make_tensor_descriptor %q, [%n, %n], [%s, %one] : <f16>, <tensor<16x16xf16>>
    %o = tt.make_tensor_descriptor %r, [%n, %n], [%s, %one] : <f16>, <tensor<16x16xf16>>
    %c = arith.cmpi sgt, %n, %zero : i32
    %d = arith.select %c, %x, %z : !tt.tensordesc<tensor<16x16xf16>>
    %y = tt.descriptor_load %d[%zero, %zero] : !tt.tensordesc<tensor<16x16xf16>> -> tensor<16x16xf16>
    %t = tt.descriptor_load %x[%zero, %zero] : !tt.tensordesc<tensor<16x16xf16>> -> tensor<16x16xf16>
    %w = arith.addf %y, %t : tensor<16x16xf16>
    tt.descriptor_store %o[%zero, %zero], %w : !tt.tensordesc<tensor<16x16xf16>>, tensor<16x16xf16>
    tt.return
  }
}

// -----

// Where a comparison is true of NaN, the opposite one is inverted. A volatile
// load stays one. Bounds of 64 bits, which literals are not, make such counters.
// CHECK: def waits(p, q):
// CHECK:     tl.load(p, volatile=True)
// CHECK:     for i in range(tl.full([], 0, tl.int64), tl.full([], 4, tl.int64), tl.full([], 1, tl.int64)):
// CHECK:         tl.where(({{.*}} >= {{.*}}) ^ True,
module {
  tt.func public @waits(%p: !tt.ptr<f32> loc("p"), %q: !tt.ptr<f32> loc("q")) {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %four = arith.constant 4 : i64
    %x = tt.load %p {isVolatile = true} : !tt.ptr<f32>
    scf.for %i = %zero to %four step %one : i64 {
      %at = tt.addptr %q, %i : !tt.ptr<f32>, i64
      %y = tt.load %at : !tt.ptr<f32>
      %less = arith.cmpf ult, %x, %y : f32
      %z = arith.select %less, %x, %y : f32
      tt.store %at, %z : !tt.ptr<f32>
    }
    tt.return
  }
}

// -----

// Conversions toward zero say so. A sum that starts at -0.0 is not one that
// starts at 0.0.
// CHECK: def rounds(p, q, r):
// CHECK:     .to(tl.float8e5, fp_downcast_rounding="rtz")
// CHECK:     tl.dot(x, x, tl.full([16, 16], -0.0, tl.float32))
// CHECK:     tl.dot(x, x))
module {
  tt.func public @rounds(%p: tensor<16x16x!tt.ptr<f16>> loc("p"), %q: tensor<16x16x!tt.ptr<f8E5M2>> loc("q"), %r: tensor<16x16x!tt.ptr<f32>> loc("r")) {
    %positive = arith.constant dense<0.0> : tensor<16x16xf32>
    %negative = arith.constant dense<-0.0> : tensor<16x16xf32>
    %x = tt.load %p : tensor<16x16x!tt.ptr<f16>>
    %cut = tt.fp_to_fp %x, rounding = rtz : tensor<16x16xf16> -> tensor<16x16xf8E5M2>
    tt.store %q, %cut : tensor<16x16x!tt.ptr<f8E5M2>>
    %y = tt.dot %x, %x, %negative : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    tt.store %r, %y : tensor<16x16x!tt.ptr<f32>>
    %z = tt.dot %x, %x, %positive : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    tt.store %r, %z : tensor<16x16x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// Triton's frontend takes two variables that begin as one tensor for one.
// CHECK-LABEL: def shift(
// CHECK: [[X:[a-z_0-9]+]] = tl.load(
// CHECK: [[A:[a-z_0-9]+]] = [[X]]
// CHECK-NEXT: [[B:[a-z_0-9]+]] = tl.where(True, [[X]], [[X]])
// CHECK: for
// CHECK: [[A]], [[B]] = [[B]],
module {
  tt.func public @shift(%p: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f32
    %x = tt.load %p : !tt.ptr<f32>
    %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %x, %b = %x) -> (f32, f32) : i32 {
      tt.store %p, %a : !tt.ptr<f32>
      scf.yield %b, %zero : f32, f32
    }
    tt.store %p, %r#0 : !tt.ptr<f32>
    tt.return
  }
}
