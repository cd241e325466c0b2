// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-mark-residuals -autodiff-reverse \
// RUN:   -canonicalize -cse -autodiff-choose-residuals=save=false -canonicalize -cse | FileCheck %s

// Where Triton leaves the order of elements open, the forward is ours, too: it
// stores them in the order in which the backward expects their cotangents.
// CHECK-LABEL: tt.func @view_fwd(
// CHECK: tt.reshape %{{.*}} : tensor<8xf32> -> tensor<2x4xf32>
// CHECK-LABEL: tt.func @view_bwd(
// CHECK: tt.reshape %{{.*}} : tensor<2x4xf32> -> tensor<8xf32>
tt.func @view(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %1 = tt.addptr %0, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %x = tt.load %1 : tensor<8x!tt.ptr<f32>>
  %y = tt.reshape %x allow_reorder : tensor<8xf32> -> tensor<2x4xf32>
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<2x4x!tt.ptr<f32>>
  %j = tt.reshape %i : tensor<8xi32> -> tensor<2x4xi32>
  %3 = tt.addptr %2, %j : tensor<2x4x!tt.ptr<f32>>, tensor<2x4xi32>
  tt.store %3, %y : tensor<2x4x!tt.ptr<f32>>
  tt.return
}
