// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// D = A·B + C: Ā = D̄·Bᵀ, B̄ = Aᵀ·D̄, C̄ = D̄, in the primal's precision.
// CHECK-LABEL: tt.func @dot_bwd(
// CHECK: %[[A:.*]] = tt.load {{.*}} : tensor<16x32x!tt.ptr<f32>>
// CHECK: %[[B:.*]] = tt.load {{.*}} : tensor<32x64x!tt.ptr<f32>>
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<16x64xf32>
// CHECK: %[[BT:.*]] = tt.trans %[[B]] {order = array<i32: 1, 0>}
// CHECK: %[[DA:.*]] = tt.dot %[[T]], %[[BT]], %{{.*}}, inputPrecision = tf32 : {{.*}} -> tensor<16x32xf32>
// CHECK: %[[AT:.*]] = tt.trans %[[A]] {order = array<i32: 1, 0>}
// CHECK: %[[DB:.*]] = tt.dot %[[AT]], %[[T]], %{{.*}}, inputPrecision = tf32 : {{.*}} -> tensor<32x64xf32>
// CHECK: autodiff.accumulate {{.*}}, %[[T]] {argument = 2 : i32
// CHECK: autodiff.accumulate {{.*}}, %[[DB]] {argument = 1 : i32
// CHECK: autodiff.accumulate {{.*}}, %[[DA]] {argument = 0 : i32
tt.func @dot(%pa: !tt.ptr<f32>, %pb: !tt.ptr<f32>, %pc: !tt.ptr<f32>, %pd: !tt.ptr<f32>) {
  %0 = tt.splat %pa : !tt.ptr<f32> -> tensor<16x32x!tt.ptr<f32>>
  %a = tt.load %0 : tensor<16x32x!tt.ptr<f32>>
  %1 = tt.splat %pb : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>>
  %b = tt.load %1 : tensor<32x64x!tt.ptr<f32>>
  %2 = tt.splat %pc : !tt.ptr<f32> -> tensor<16x64x!tt.ptr<f32>>
  %c = tt.load %2 : tensor<16x64x!tt.ptr<f32>>
  %d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x32xf32> * tensor<32x64xf32> -> tensor<16x64xf32>
  %3 = tt.splat %pd : !tt.ptr<f32> -> tensor<16x64x!tt.ptr<f32>>
  tt.store %3, %d : tensor<16x64x!tt.ptr<f32>>
  tt.return
}

// -----

// A batch stays in front. Half-precision operands take a half-precision
// cotangent and accumulate in f32.
// CHECK-LABEL: tt.func @batched_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<2x16x16xf32>
// CHECK: %[[H:.*]] = arith.truncf %[[T]] : tensor<2x16x16xf32> to tensor<2x16x16xf16>
// CHECK: %[[BT:.*]] = tt.trans %{{.*}} {order = array<i32: 0, 2, 1>} : tensor<2x32x16xf16>
// CHECK: %[[DA:.*]] = tt.dot %[[H]], %[[BT]], {{.*}} -> tensor<2x16x32xf32>
// CHECK: %[[AT:.*]] = tt.trans %{{.*}} {order = array<i32: 0, 2, 1>} : tensor<2x16x32xf16>
// CHECK: %[[DB:.*]] = tt.dot %[[AT]], %[[H]], {{.*}} -> tensor<2x32x16xf32>
// CHECK: autodiff.accumulate {{.*}}, %[[DB]] {argument = 1 : i32
// CHECK: autodiff.accumulate {{.*}}, %[[DA]] {argument = 0 : i32
tt.func @batched(%pa: !tt.ptr<f16>, %pb: !tt.ptr<f16>, %pd: !tt.ptr<f16>) {
  %c = arith.constant dense<0.0> : tensor<2x16x16xf32>
  %0 = tt.splat %pa : !tt.ptr<f16> -> tensor<2x16x32x!tt.ptr<f16>>
  %a = tt.load %0 : tensor<2x16x32x!tt.ptr<f16>>
  %1 = tt.splat %pb : !tt.ptr<f16> -> tensor<2x32x16x!tt.ptr<f16>>
  %b = tt.load %1 : tensor<2x32x16x!tt.ptr<f16>>
  %d = tt.dot %a, %b, %c : tensor<2x16x32xf16> * tensor<2x32x16xf16> -> tensor<2x16x16xf32>
  %e = arith.truncf %d : tensor<2x16x16xf32> to tensor<2x16x16xf16>
  %3 = tt.splat %pd : !tt.ptr<f16> -> tensor<2x16x16x!tt.ptr<f16>>
  tt.store %3, %e : tensor<2x16x16x!tt.ptr<f16>>
  tt.return
}

// -----

// Two products of the same tile: the second adjoint accumulates onto the
// first.
// CHECK-LABEL: tt.func @shared_bwd(
// CHECK-DAG: %[[K:.*]] = arith.constant dense<2.000000e+00>
// CHECK-DAG: %[[L:.*]] = arith.constant dense<3.000000e+00>
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: %[[DA:.*]] = tt.dot %[[T]], %[[L]], {{.*}} -> tensor<16x16xf32>
// CHECK: %[[DAA:.*]] = tt.dot %[[T]], %[[K]], %[[DA]] :
// CHECK: autodiff.accumulate {{.*}}, %[[DAA]] {argument = 0 : i32
tt.func @shared(%pa: !tt.ptr<f32>, %pd: !tt.ptr<f32>) {
  %c = arith.constant dense<0.0> : tensor<16x16xf32>
  %k = arith.constant dense<2.0> : tensor<16x16xf32>
  %l = arith.constant dense<3.0> : tensor<16x16xf32>
  %0 = tt.splat %pa : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %a = tt.load %0 : tensor<16x16x!tt.ptr<f32>>
  %d = tt.dot %a, %k, %c : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %e = tt.dot %a, %l, %d : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %3 = tt.splat %pd : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  tt.store %3, %e : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// 8-bit operands are too coarse for a cotangent: f16 instead.
// CHECK-LABEL: tt.func @fp8_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<16x16xf32>
// CHECK: %[[H:.*]] = arith.truncf %[[T]] : tensor<16x16xf32> to tensor<16x16xf16>
// CHECK: %[[W:.*]] = tt.fp_to_fp %{{.*}} : tensor<32x16xf8E4M3FN> -> tensor<32x16xf16>
// CHECK: %[[WT:.*]] = tt.trans %[[W]] {order = array<i32: 1, 0>}
// CHECK: %[[DX:.*]] = tt.dot %[[H]], %[[WT]], {{.*}} : tensor<16x16xf16> * tensor<16x32xf16> -> tensor<16x32xf32>
// CHECK: %[[XT:.*]] = tt.trans %{{.*}} {order = array<i32: 1, 0>} : tensor<16x32xf16>
// CHECK: %[[DW:.*]] = tt.dot %[[XT]], %[[H]], {{.*}} -> tensor<32x16xf32>
// CHECK: autodiff.accumulate {{.*}}, %[[DW]] {argument = 1 : i32
// CHECK: autodiff.accumulate {{.*}}, %[[DX]] {argument = 0 : i32
tt.func @fp8(%pa: !tt.ptr<f8E4M3FN>, %pb: !tt.ptr<f8E4M3FN>, %pd: !tt.ptr<f16>) {
  %c = arith.constant dense<0.0> : tensor<16x16xf32>
  %0 = tt.splat %pa : !tt.ptr<f8E4M3FN> -> tensor<16x32x!tt.ptr<f8E4M3FN>>
  %a = tt.load %0 : tensor<16x32x!tt.ptr<f8E4M3FN>>
  %1 = tt.splat %pb : !tt.ptr<f8E4M3FN> -> tensor<32x16x!tt.ptr<f8E4M3FN>>
  %b = tt.load %1 : tensor<32x16x!tt.ptr<f8E4M3FN>>
  %d = tt.dot %a, %b, %c : tensor<16x32xf8E4M3FN> * tensor<32x16xf8E4M3FN> -> tensor<16x16xf32>
  %e = arith.truncf %d : tensor<16x16xf32> to tensor<16x16xf16>
  %3 = tt.splat %pd : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  tt.store %3, %e : tensor<16x16x!tt.ptr<f16>>
  tt.return
}

// -----

// Rows of A that nobody stores may hold anything: Aᵀ·D̄ sums over them, and
// selects zeros for them. D̄·Bᵀ does not, and columns are all stored.
// CHECK-LABEL: tt.func @dead_rows_bwd(
// CHECK: %[[COLUMN:.*]] = arith.cmpi slt, {{.*}} : tensor<16x1xi32>
// CHECK: %[[E:.*]] = math.exp
// CHECK: %[[B:.*]] = tt.load
// CHECK: %[[BT:.*]] = tt.trans %[[B]]
// CHECK: tt.dot %{{.*}}, %[[BT]]
// CHECK: %[[LIVE:.*]] = tt.broadcast %[[COLUMN]]
// CHECK: %[[KEPT:.*]] = arith.select %[[LIVE]], %[[E]], %{{.*}} : tensor<16x16xi1>
// CHECK: %[[AT:.*]] = tt.trans %[[KEPT]]
// CHECK: tt.dot %[[AT]]
tt.func @dead_rows(%pa: !tt.ptr<f32>, %pb: !tt.ptr<f32>, %pd: !tt.ptr<f32>, %n: i32) {
  %c = arith.constant dense<0.0> : tensor<16x32xf32>
  %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %row = tt.expand_dims %range {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %end = tt.splat %n : i32 -> tensor<16x1xi32>
  %live = arith.cmpi slt, %row, %end : tensor<16x1xi32>
  %mask = tt.broadcast %live : tensor<16x1xi1> -> tensor<16x32xi1>
  %0 = tt.splat %pa : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<16x16x!tt.ptr<f32>>
  %a = math.exp %x : tensor<16x16xf32>
  %1 = tt.splat %pb : !tt.ptr<f32> -> tensor<16x32x!tt.ptr<f32>>
  %b = tt.load %1 : tensor<16x32x!tt.ptr<f32>>
  %d = tt.dot %a, %b, %c : tensor<16x16xf32> * tensor<16x32xf32> -> tensor<16x32xf32>
  %3 = tt.splat %pd : !tt.ptr<f32> -> tensor<16x32x!tt.ptr<f32>>
  tt.store %3, %d, %mask : tensor<16x32x!tt.ptr<f32>>
  tt.return
}

// -----

// A zero upstream gradient is no mask: rows are not looked at for one.
// CHECK-LABEL: tt.func @zero_upstream_bwd(
// CHECK: arith.cmpf oeq
// CHECK-NOT: tt.reduce
// CHECK: tt.return
tt.func @zero_upstream(%pa: !tt.ptr<f32>, %pb: !tt.ptr<f32>, %pd: !tt.ptr<f32>) {
  %c = arith.constant dense<0.0> : tensor<16x16xf32>
  %0 = tt.splat %pa : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<16x16x!tt.ptr<f32>>
  %a = math.exp %x : tensor<16x16xf32>
  %1 = tt.splat %pb : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %b = tt.load %1 : tensor<16x16x!tt.ptr<f32>>
  %d = tt.dot %a, %b, %c : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %l = math.log %d : tensor<16x16xf32>
  %3 = tt.splat %pd : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  tt.store %3, %l : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// A product with zeros and ones is a sum; so is its adjoint, as exact as sums.
// CHECK-LABEL: tt.func @sum_bwd(
// CHECK: tt.dot {{.*}}, inputPrecision = tf32x3 : {{.*}} -> tensor<16x16xf32>
tt.func @sum(%pb: !tt.ptr<f32>, %pd: !tt.ptr<f32>) {
  %zeros = arith.constant dense<0.0> : tensor<16x16xf32>
  %ones = arith.constant dense<1.0> : tensor<16x16xf32>
  %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %er = tt.expand_dims %range {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %ec = tt.expand_dims %range {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %rows = tt.broadcast %er : tensor<16x1xi32> -> tensor<16x16xi32>
  %columns = tt.broadcast %ec : tensor<1x16xi32> -> tensor<16x16xi32>
  %below = arith.cmpi sge, %rows, %columns : tensor<16x16xi32>
  %a = arith.select %below, %ones, %zeros : tensor<16x16xi1>, tensor<16x16xf32>
  %0 = tt.splat %pb : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %b = tt.load %0 : tensor<16x16x!tt.ptr<f32>>
  %d = tt.dot %a, %b, %zeros, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %1 = tt.splat %pd : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  tt.store %1, %d : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// A decay in two factors: what the exponents get is a difference.
// CHECK-LABEL: tt.func @decay_bwd(
// CHECK-COUNT-2: tt.dot {{.*}}, inputPrecision = tf32x3 :
tt.func @decay(%pg: !tt.ptr<f32>, %pq: !tt.ptr<f32>, %pd: !tt.ptr<f32>) {
  %zeros = arith.constant dense<0.0> : tensor<16x16xf32>
  %0 = tt.splat %pg : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %g = tt.load %0 : tensor<16x16x!tt.ptr<f32>>
  %1 = tt.splat %pq : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %q = tt.load %1 : tensor<16x16x!tt.ptr<f32>>
  %up = math.exp2 %g : tensor<16x16xf32>
  %n = arith.subf %zeros, %g : tensor<16x16xf32>
  %down = math.exp2 %n : tensor<16x16xf32>
  %a = arith.mulf %q, %up : tensor<16x16xf32>
  %b = tt.trans %down {order = array<i32: 1, 0>} : tensor<16x16xf32> -> tensor<16x16xf32>
  %d = tt.dot %a, %b, %zeros, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %2 = tt.splat %pd : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  tt.store %2, %d : tensor<16x16x!tt.ptr<f32>>
  tt.return
}
