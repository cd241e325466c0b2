// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-push-tangents -canonicalize -cse | FileCheck %s

// Every argument that has tangents has a pointer to them. X, W: values; DX, DW:
// their tangents.

// ẏ = ẋ·w + ẇ·x, by the partial derivatives that the pullback uses.
// CHECK-LABEL: tt.func @mul_jvp(
// CHECK-SAME: %arg3: !tt.ptr<f32> {autodiff.tangent = 0 : i32}
// CHECK-SAME: %arg4: !tt.ptr<f32> {autodiff.tangent = 1 : i32}
// CHECK-SAME: %arg5: !tt.ptr<f32> {autodiff.tangent = 2 : i32}
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[DX:.*]] = tt.load %arg3 :
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[DW:.*]] = tt.load %arg4 :
// CHECK: %[[Y:.*]] = arith.mulf %[[X]], %[[W]] :
// CHECK: %[[A:.*]] = arith.mulf %[[DX]], %[[W]] :
// CHECK: %[[B:.*]] = arith.mulf %[[DW]], %[[X]] :
// CHECK: %[[DY:.*]] = arith.addf %[[A]], %[[B]] :
// CHECK: tt.store %arg2, %[[Y]] {
// CHECK: tt.store %arg5, %[[DY]] :
tt.func @mul(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = arith.mulf %x, %w : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A linear operation does with tangents what it does with values; what is
// constant has none; tangents are as wide as adjoints are.
// CHECK-LABEL: tt.func @broadcast_jvp(
// CHECK: %[[DP:.*]] = tt.splat %arg2 : !tt.ptr<f16> -> tensor<2x1x!tt.ptr<f16>>
// CHECK: %[[H:.*]] = tt.load %[[DP]] : tensor<2x1x!tt.ptr<f16>>
// CHECK: %[[DX:.*]] = arith.extf %[[H]] : tensor<2x1xf16> to tensor<2x1xf32>
// CHECK: %[[DB:.*]] = tt.broadcast %[[DX]] : tensor<2x1xf32> -> tensor<2x4xf32>
// CHECK: %[[DY:.*]] = arith.truncf %[[DB]] : tensor<2x4xf32> to tensor<2x4xf16>
// CHECK: tt.store %{{.*}}, %[[DY]] :
tt.func @broadcast(%px: !tt.ptr<f16>, %py: !tt.ptr<f16>) {
  %0 = tt.splat %px : !tt.ptr<f16> -> tensor<2x1x!tt.ptr<f16>>
  %x = tt.load %0 : tensor<2x1x!tt.ptr<f16>>
  %b = tt.broadcast %x : tensor<2x1xf16> -> tensor<2x4xf16>
  %c = arith.constant dense<1.0> : tensor<2x4xf16>
  %y = arith.addf %b, %c : tensor<2x4xf16>
  %1 = tt.splat %py : !tt.ptr<f16> -> tensor<2x4x!tt.ptr<f16>>
  tt.store %1, %y : tensor<2x4x!tt.ptr<f16>>
  tt.return
}

// -----

// Two products, one accumulator.
// CHECK-LABEL: tt.func @dot_jvp(
// CHECK-DAG: %[[A:.*]] = tt.load %{{.*}} {autodiff.site = 0
// CHECK-DAG: %[[B:.*]] = tt.load %{{.*}} {autodiff.site = 1
// CHECK: tt.dot %[[A]], %[[B]],
// CHECK: %[[S:.*]] = tt.dot %[[DA:.*]], %[[B]], %{{.*}} :
// CHECK: %[[DD:.*]] = tt.dot %[[A]], %[[DB:.*]], %[[S]] :
// CHECK: tt.store %{{.*}}, %[[DD]] :
tt.func @dot(%pa: !tt.ptr<f32>, %pb: !tt.ptr<f32>, %pd: !tt.ptr<f32>) {
  %0 = tt.splat %pa : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %1 = tt.splat %pb : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %2 = tt.splat %pd : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %a = tt.load %0 : tensor<16x16x!tt.ptr<f32>>
  %b = tt.load %1 : tensor<16x16x!tt.ptr<f32>>
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = tt.dot %a, %b, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  tt.store %2, %d : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// A residual is its value.
// CHECK-LABEL: tt.func @residual_jvp(
// CHECK: %[[DX:.*]] = tt.load %arg2 :
// CHECK: tt.store %arg3, %[[DX]] :
tt.func @residual(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %r = autodiff.residual %x id = 0 : f32
  tt.store %py, %r : !tt.ptr<f32>
  tt.return
}

// -----

// What derivatives do not go through stays so for the next ones. A constant
// clears what memory had for tangents.
// CHECK-LABEL: tt.func @stopped_jvp(
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: %[[S:.*]] = autodiff.stop_gradient
// CHECK: tt.store %arg1, %[[S]] {
// CHECK: tt.store %arg{{[0-9]}}, %[[ZERO]] :
tt.func @stopped(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %s = autodiff.stop_gradient %x : f32
  tt.store %py, %s : !tt.ptr<f32>
  tt.return
}
