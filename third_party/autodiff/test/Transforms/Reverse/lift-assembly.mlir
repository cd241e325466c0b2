// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-link-rules -autodiff-lift-assembly -canonicalize -cse \
// RUN:   | FileCheck %s

// The forward keeps its assembly; the copy that is differentiated has the
// arithmetic. A guard is a selection, and what runs under it reads the side
// that the guard takes. Approximations stay instructions.
// CHECK-LABEL: tt.func @softplus(
// CHECK: tt.elementwise_inline_asm "{ .reg .pred p;
// CHECK-LABEL: tt.func @softplus_framed(
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[P:.*]] = arith.cmpf ogt, %[[X]], %cst{{.*}}
// CHECK: %[[S:.*]] = arith.mulf %[[X]], %cst
// CHECK: %[[E:.*]] = tt.elementwise_inline_asm "ex2.approx.ftz.f32 $0, $1;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %[[S]]
// CHECK: %[[A:.*]] = arith.addf %[[E]], %cst
// CHECK: %[[L:.*]] = tt.elementwise_inline_asm "lg2.approx.ftz.f32 $0, $1;" {{.*}} %[[A]]
// CHECK: %[[M:.*]] = arith.mulf %[[L]], %cst
// CHECK: %[[Y:.*]] = arith.select %[[P]], %[[X]], %[[M]]
// CHECK: tt.store %{{.*}}, %[[Y]]
tt.func @softplus(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.elementwise_inline_asm "{ .reg .pred p; setp.gt.f32 p, $1, 20.; @p mov.f32 $0, $1; @!p mul.f32 $0, $1, 1.4426950408889634; @!p ex2.approx.ftz.f32 $0, $0; @!p add.f32 $0, $0, 1.0; @!p lg2.approx.ftz.f32 $0, $0; @!p mul.f32 $0, $0, 0.6931471805599453; }" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Packed elements, of which each is treated alike; in place of two registers
// there is one tile. Extended to f32 and rounded again, in pairs.
// CHECK-LABEL: tt.func @packed_framed(
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[W:.*]] = arith.extf %[[X]] : tensor<8xf16> to tensor<8xf32>
// CHECK: %[[P:.*]] = arith.mulf %[[W]], %[[W]] : tensor<8xf32>
// CHECK: %[[H:.*]] = arith.truncf %[[P]] : tensor<8xf32> to tensor<8xf16>
// CHECK: %[[Y:.*]] = math.fma %[[H]], %[[X]], %[[X]] : tensor<8xf16>
// CHECK: tt.store %{{.*}}, %[[Y]]
tt.func @packed(%qx: !tt.ptr<f16>, %qy: !tt.ptr<f16>) {
  %ps = tt.splat %qx : !tt.ptr<f16> -> tensor<8x!tt.ptr<f16>>
  %ys = tt.splat %qy : !tt.ptr<f16> -> tensor<8x!tt.ptr<f16>>
  %x = tt.load %ps : tensor<8x!tt.ptr<f16>>
  %y = tt.elementwise_inline_asm "{ .reg .b16 a, b; .reg .f32 c, d; mov.b32 {a, b}, $1; cvt.f32.f16 c, a; cvt.f32.f16 d, b; mul.f32 c, c, c; mul.f32 d, d, d; cvt.rn.f16x2.f32 $0, d, c; fma.rn.f16x2 $0, $0, $1, $1; }" {constraints = "=r,r", packed_element = 2 : i32, pure = true} %x : tensor<8xf16> -> tensor<8xf16>
  tt.store %ys, %y : tensor<8x!tt.ptr<f16>>
  tt.return
}

// -----

// Several results, and a register that is packed and taken apart.
// CHECK-LABEL: tt.func @results_framed(
// CHECK: %[[X:.*]] = tt.load %arg0
// CHECK: %[[W:.*]] = tt.load %arg1
// CHECK-DAG: %[[A:.*]] = arith.mulf %[[X]], %[[W]] : f32
// CHECK-DAG: %[[B:.*]] = arith.subf %[[W]], %[[X]] : f32
// CHECK-DAG: tt.store %arg2, %[[A]]
// CHECK-DAG: tt.store %arg3, %[[B]]
tt.func @results(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %pa: !tt.ptr<f32>, %pb: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %a, %b = tt.elementwise_inline_asm "{ .reg .b64 t; .reg .b32 u<2>; mov.b64 t, {$2, $3}; mov.b64 {u0, u1}, t; mul.f32 $0, u0, u1; sub.f32 $1, u1, u0; }" {constraints = "=f,=f,f,f", packed_element = 1 : i32, pure = true} %x, %w : f32, f32 -> f32, f32
  tt.store %pa, %a : !tt.ptr<f32>
  tt.store %pb, %b : !tt.ptr<f32>
  tt.return
}

// -----

// An integer between two pieces holds a float as it is.
// CHECK-LABEL: tt.func @bits_framed(
// CHECK: %[[X:.*]] = tt.load
// CHECK: tt.store %{{.*}}, %[[X]]
tt.func @bits(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %i = tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = "=r,f", packed_element = 1 : i32, pure = true} %x : f32 -> i32
  %y = tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = "=f,r", packed_element = 1 : i32, pure = true} %i : i32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Without a derivative to carry, nothing changes: integers, other inputs, and
// what the user has a rule for.
// CHECK-LABEL: tt.func @inactive_framed(
// CHECK: tt.elementwise_inline_asm "mov.u32 $0, %smid;"
// CHECK: tt.elementwise_inline_asm "mul.f32 $0, $1, $1; add.f32 $0, $0, $1;"
// CHECK: tt.elementwise_inline_asm "mul.f32 $0, $1, $1; sub.f32 $0, $0, $1;"
tt.func @rule(%t: f32, %x: f32, %y: f32) -> f32
    attributes {autodiff.role = "rule", autodiff.rule = "mine", autodiff.rule_asm = "mul.f32 $0, $1, $1; sub.f32 $0, $0, $1;"} {
  tt.return %t : f32
}
tt.func @inactive(%px: !tt.ptr<f32>, %n: f32, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %i = tt.elementwise_inline_asm "mov.u32 $0, %smid;" {constraints = "=r", packed_element = 1 : i32, pure = true} -> i32
  %f = arith.sitofp %i : i32 to f32
  %m = tt.elementwise_inline_asm "mul.f32 $0, $1, $1; add.f32 $0, $0, $1;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %n : f32 -> f32
  %r = tt.elementwise_inline_asm "mul.f32 $0, $1, $1; sub.f32 $0, $0, $1;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  %a = arith.addf %m, %f : f32
  %y = arith.mulf %r, %a : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
