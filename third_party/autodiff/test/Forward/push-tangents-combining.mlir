// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-push-tangents -canonicalize -cse | FileCheck %s

// A sum sums tangents.
// CHECK-LABEL: tt.func @sum_jvp(
// CHECK: %[[DX:.*]] = tt.load %{{[0-9]+}} : tensor<8x!tt.ptr<f32>>
// CHECK: %[[DY:.*]] = "tt.reduce"(%[[DX]])
// CHECK: tt.store %arg3, %[[DY]] :
tt.func @sum(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<8x!tt.ptr<f32>>
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<8xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Of a maximum, the mean of the tangents of those that attain it.
// CHECK-LABEL: tt.func @max_jvp(
// CHECK: %[[HERE:.*]] = arith.ori
// CHECK: %[[TIES:.*]] = "tt.reduce"
// CHECK: %[[PART:.*]] = arith.select %[[HERE]], %{{.*}}, %{{.*}} : tensor<8xi1>, tensor<8xf32>
// CHECK: %[[SUM:.*]] = "tt.reduce"(%[[PART]])
// CHECK: %[[DY:.*]] = arith.divf %[[SUM]], %[[TIES]] : f32
// CHECK: tt.store %arg3, %[[DY]] :
tt.func @max(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<8x!tt.ptr<f32>>
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.maximumf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<8xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Any other function combines pairs: of a product, (a·b, ȧ·b + ḃ·a).
// CHECK-LABEL: tt.func @cumprod_jvp(
// CHECK: %[[R:.*]]:2 = "tt.scan"(%[[X:.*]], %[[DX:.*]]) <{axis = 0 : i32, reverse = true}>
// CHECK: ^bb0(%[[A:.*]]: f32, %[[DA:.*]]: f32, %[[B:.*]]: f32, %[[DB:.*]]: f32):
// CHECK: %[[P:.*]] = arith.mulf %[[A]], %[[B]] :
// CHECK: %[[L:.*]] = arith.mulf %[[DA]], %[[B]] :
// CHECK: %[[M:.*]] = arith.mulf %[[DB]], %[[A]] :
// CHECK: %[[DP:.*]] = arith.addf %[[L]], %[[M]] :
// CHECK: tt.scan.return %[[P]], %[[DP]] : f32, f32
// CHECK: tt.store %{{.*}}, %[[R]]#0 {
// CHECK: tt.store %{{.*}}, %[[R]]#1 :
tt.func @cumprod(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<8x!tt.ptr<f32>>
  %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = true}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    tt.scan.return %s : f32
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  tt.store %1, %y : tensor<8x!tt.ptr<f32>>
  tt.return
}
