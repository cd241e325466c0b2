// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-mark-residuals -autodiff-reverse \
// RUN:   -canonicalize -cse -autodiff-choose-residuals -canonicalize -cse | FileCheck %s --check-prefixes=CHECK,SAVE
// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-mark-residuals -autodiff-reverse \
// RUN:   -canonicalize -cse -autodiff-choose-residuals=save=false -canonicalize -cse | FileCheck %s --check-prefixes=CHECK,REDO

// y = x·Σw: the sum over w is saved by the forward, a scalar per program, and
// loaded by the backward, which does not need w any more.
// SAVE: autodiff.buffer 0 <saved "saved0" : f32
// SAVE-LABEL: tt.func @kernel_fwd(
// SAVE-SAME: autodiff.operand = #autodiff.operand<buffer 0>
// SAVE: %[[S:.*]] = "tt.reduce"
// SAVE: %[[P:.*]] = tt.addptr %arg3, %{{.*}} : !tt.ptr<f32>, i64
// SAVE: tt.store %[[P]], %[[S]]

// Without a forward of our own the backward computes it again.
// REDO-NOT: @kernel_fwd
// CHECK-LABEL: tt.func @kernel_bwd(
// SAVE-SAME: autodiff.operand = #autodiff.operand<buffer 0>
// SAVE-NOT: tt.load {{.*}}tensor<64x!
// SAVE: %[[Q:.*]] = tt.addptr %arg3,
// SAVE: %[[S:.*]] = tt.load %[[Q]]
// REDO: %[[S:.*]] = "tt.reduce"
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[S]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @kernel(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %0 = tt.splat %pw : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %1 = tt.addptr %0, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %w = tt.load %1 : tensor<64x!tt.ptr<f32>>
  %s = "tt.reduce"(%w) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64xf32>) -> f32
  %y = arith.mulf %x, %s : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
