// RUN: triton-autodiff-opt %s -split-input-file -autodiff-differentiate-function="wanted=1,0 name=pull" | FileCheck %s
// RUN: triton-autodiff-opt %s -split-input-file -autodiff-differentiate-function="wanted=0 name=slope ones" | FileCheck %s --check-prefix=ONES

// Gradients in the order in which they were asked for, in the arguments' types.
// Cotangents are float32 at least.
// CHECK-LABEL: tt.func @pull(
// CHECK-SAME: %[[X:.*]]: tensor<8xf16>, %[[Y:.*]]: tensor<8xf32>, %[[P:.*]]: !tt.ptr<f32>, %[[DZ:.*]]: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf16>)
// CHECK-NOT: tt.store
// CHECK: %[[W:.*]] = arith.extf %[[X]]
// CHECK: %[[L:.*]] = tt.load %[[P]]
// CHECK: arith.mulf
// CHECK: arith.truncf
// CHECK: tt.return %{{.*}}, %{{.*}} : tensor<8xf32>, tensor<8xf16>
// ONES-LABEL: tt.func @slope(
// ONES-SAME: %[[X:.*]]: tensor<8xf16>, %[[Y:.*]]: tensor<8xf32>, %[[P:.*]]: !tt.ptr<f32>) -> tensor<8xf16>
tt.func public @product(%x: tensor<8xf16>, %y: tensor<8xf32>, %p: !tt.ptr<f32>) -> tensor<8xf32> {
  %0 = arith.extf %x : tensor<8xf16> to tensor<8xf32>
  %1 = arith.mulf %0, %y : tensor<8xf32>
  %2 = tt.load %p : !tt.ptr<f32>
  %3 = tt.splat %2 : f32 -> tensor<8xf32>
  %4 = arith.mulf %1, %3 : tensor<8xf32>
  tt.return %4 : tensor<8xf32>
}

// -----

// Iteration k of the reversed loop runs the loop up to there again.
// CHECK-LABEL: tt.func @pull(
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[N:.*]]: i32, %[[DZ:.*]]: f32)
// CHECK: scf.for %[[I:.*]] = %{{.*}} iter_args(
// CHECK: %[[K:.*]] = arith.subi %{{.*}}, %[[I]] : i32
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[K]] step %{{.*}} iter_args(%{{.*}} = %[[X]])
// CHECK: math.sin
// CHECK: scf.yield
// CHECK: math.cos
// CHECK: scf.yield
// ONES-LABEL: tt.func @slope(
tt.func public @steps(%x: f32, %y: f32, %n: i32) -> f32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %0 = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (f32) : i32 {
    %1 = math.sin %a : f32
    %2 = arith.mulf %1, %y : f32
    scf.yield %2 : f32
  }
  tt.return %0 : f32
}
