// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-link-rules -autodiff-lift-assembly -autodiff-reverse \
// RUN:   -canonicalize -cse | FileCheck %s

// One instruction is a function: x̄ = ȳ·(1 − y²).
// CHECK-LABEL: tt.func @tanh_bwd(
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.0
// CHECK: %[[Y:.*]] = tt.elementwise_inline_asm "tanh
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[Y2:.*]] = arith.mulf %[[Y]], %[[Y]] :
// CHECK: %[[S:.*]] = arith.subf %[[ONE]], %[[Y2]] :
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[S]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @tanh(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.elementwise_inline_asm "tanh.approx.f32 $0, $1;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Operands in any order, more than once: y = w·x + w, x̄ = ȳ·w, w̄ = ȳ·x + ȳ.
// Flushing subnormal numbers makes it no other function.
// CHECK-LABEL: tt.func @fma_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK-DAG: %[[DX:.*]] = arith.mulf %[[T]], %[[W]] :
// CHECK-DAG: %[[P:.*]] = arith.mulf %[[T]], %[[X]] :
// CHECK: %[[DW:.*]] = arith.addf %[[P]], %[[T]] :
// CHECK: autodiff.accumulate %arg1, %[[DW]] {
// CHECK: autodiff.accumulate %arg0, %[[DX]] {
tt.func @fma(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = tt.elementwise_inline_asm "{ fma.rn.ftz.f32 $0, $2, $1, $2; } // w·x + w" {constraints = "=f,f,f", packed_element = 1 : i32, pure = true} %x, %w : f32, f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Two packed halves at a time: each for itself.
// CHECK-LABEL: tt.func @packed_bwd(
// CHECK: tt.elementwise_inline_asm "tanh.approx.f16 $0, $1;" {constraints = "=h,h", packed_element = 1 : i32, pure = true}
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<4xf32>
// CHECK: autodiff.accumulate
tt.func @packed(%px: !tt.ptr<f16>, %py: !tt.ptr<f16>) {
  %ps = tt.splat %px : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>>
  %qs = tt.splat %py : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>>
  %x = tt.load %ps : tensor<4x!tt.ptr<f16>>
  %y = tt.elementwise_inline_asm "tanh.approx.f16x2 $0, $1;" {constraints = "=r,r", packed_element = 2 : i32, pure = true} %x : tensor<4xf16> -> tensor<4xf16>
  tt.store %qs, %y : tensor<4x!tt.ptr<f16>>
  tt.return
}

// -----

// A rule of the user's, for the types of one operation: x̄ = ȳ·y, w̄ = ȳ·w.
// CHECK-LABEL: tt.func @ruled_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[Y:.*]] = tt.elementwise_inline_asm "unknown $0, $1, $2;"
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[DX:.*]] = arith.mulf %[[T]], %[[Y]] :
// CHECK: %[[DW:.*]] = arith.mulf %[[T]], %[[W]] :
// CHECK: autodiff.accumulate %arg1, %[[DW]] {
// CHECK: autodiff.accumulate %arg0, %[[DX]] {
// CHECK-NOT: tt.func @rule
tt.func @rule(%t: f32, %x: f32, %w: f32, %y: f32) -> (f32, f32)
    attributes {autodiff.role = "rule", autodiff.rule = "mine", autodiff.rule_asm = "unknown $0, $1, $2;"} {
  %dx = arith.mulf %t, %y : f32
  %dw = arith.mulf %t, %w : f32
  tt.return %dx, %dw : f32, f32
}
tt.func @ruled(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = tt.elementwise_inline_asm "unknown $0, $1, $2;" {constraints = "=f,f,f", packed_element = 1 : i32, pure = true} %x, %w : f32, f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
