// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// The function of one element is reversed on the whole tile.
// CHECK-LABEL: tt.func @square_bwd(
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[X]] : tensor<4xf32>
// CHECK: %[[S:.*]] = arith.addf %[[P]], %[[P]] : tensor<4xf32>
// CHECK: autodiff.accumulate {{.*}}, %[[S]] {
tt.func @square(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %y = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
  ^bb0(%a: f32):
    %s = arith.mulf %a, %a : f32
    tt.map_elementwise.return %s : f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %1, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}
