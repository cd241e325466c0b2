// RUN: triton-autodiff-opt %s -autodiff-normalize "-autodiff-reverse=all-wanted=false wanted=0" \
// RUN:   -canonicalize -cse -autodiff-read-cotangents -autodiff-lower-accumulates | FileCheck %s

// What is added does not depend on a differentiated input, but what it is added
// to is one: its gradient is the cotangent.
// CHECK: autodiff.gradient <atomic 0 : f32 init = cotangent returned = true>
// CHECK-LABEL: tt.func @add_constant_bwd(
// CHECK-SAME: %arg1: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 0>
// CHECK-NOT: atomic
// CHECK: tt.return
tt.func @add_constant(%py: !tt.ptr<f32>) {
  %true = arith.constant true
  %one = arith.constant 1.0 : f32
  %old = tt.atomic_rmw fadd, acq_rel, gpu, %py, %one, %true : (!tt.ptr<f32>, f32, i1) -> f32
  tt.return
}
