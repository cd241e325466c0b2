// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(tt.func(autodiff-simplify,canonicalize))' | FileCheck %s

// Σ −(x / r) = −(Σ x) / r where r repeats along the summed axis.
// CHECK-LABEL: tt.func @quotient
// CHECK: %[[S:.*]] = "tt.reduce"(%arg0) <{axis = 1 : i32}>
// CHECK: arith.addf
// CHECK: %[[Q:.*]] = arith.divf %[[S]], %arg1
// CHECK: %[[N:.*]] = arith.subf %cst, %[[Q]]
// CHECK: tt.store %arg2, %[[N]]
tt.func @quotient(%x: tensor<2x4xf32>, %r: tensor<2xf32>, %p: tensor<2x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<2x4xf32>
  %0 = tt.expand_dims %r {axis = 1 : i32} : tensor<2xf32> -> tensor<2x1xf32>
  %1 = tt.broadcast %0 : tensor<2x1xf32> -> tensor<2x4xf32>
  %q = arith.divf %x, %1 : tensor<2x4xf32>
  %n = arith.subf %zero, %q : tensor<2x4xf32>
  %y = "tt.reduce"(%n) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<2x4xf32>) -> tensor<2xf32>
  tt.store %p, %y : tensor<2x!tt.ptr<f32>>
  tt.return
}

// -----

// Not where it repeats along the other axis only.
// CHECK-LABEL: tt.func @other_axis
// CHECK: %[[Q:.*]] = arith.mulf %arg0,
// CHECK: %[[S:.*]] = "tt.reduce"(%[[Q]]) <{axis = 0 : i32}>
// CHECK: tt.store %arg2, %[[S]]
tt.func @other_axis(%x: tensor<2x4xf32>, %r: tensor<2xf32>, %p: tensor<4x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %0 = tt.expand_dims %r {axis = 1 : i32} : tensor<2xf32> -> tensor<2x1xf32>
  %1 = tt.broadcast %0 : tensor<2x1xf32> -> tensor<2x4xf32>
  %q = arith.mulf %x, %1 : tensor<2x4xf32>
  %y = "tt.reduce"(%q) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<2x4xf32>) -> tensor<4xf32>
  tt.store %p, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// x/r + repeat(−(y/s)) = (x − repeat(y))/r, where r repeats s.
// CHECK-LABEL: tt.func @common_divisor
// CHECK: %[[R:.*]] = tt.splat %arg1
// CHECK: %[[Y:.*]] = tt.splat %arg2
// CHECK: %[[D:.*]] = arith.subf %arg0, %[[Y]]
// CHECK: %[[Q:.*]] = arith.divf %[[D]], %[[R]]
// CHECK: tt.store %arg3, %[[Q]]
tt.func @common_divisor(%x: tensor<4xf32>, %s: f32, %y: f32, %p: tensor<4x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant 0.0 : f32
  %r = tt.splat %s : f32 -> tensor<4xf32>
  %q = arith.divf %x, %r : tensor<4xf32>
  %t = arith.divf %y, %s : f32
  %n = arith.subf %zero, %t : f32
  %0 = tt.splat %n : f32 -> tensor<4xf32>
  %d = arith.addf %q, %0 : tensor<4xf32>
  tt.store %p, %d : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// The primal's own sums stay as the user wrote them.
// CHECK-LABEL: tt.func @primal
// CHECK: %[[Q:.*]] = arith.divf %arg0,
// CHECK: %[[S:.*]] = "tt.reduce"(%[[Q]])
// CHECK: tt.store %arg2, %[[S]]
tt.func @primal(%x: tensor<4xf32>, %s: f32, %p: !tt.ptr<f32>) {
  %r = tt.splat %s : f32 -> tensor<4xf32>
  %q = arith.divf %x, %r : tensor<4xf32>
  %y = "tt.reduce"(%q) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  tt.store %p, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Nor are narrow ones touched, which were divided first to stay in range.
// CHECK-LABEL: tt.func @narrow
// CHECK: %[[Q:.*]] = arith.divf %arg0,
// CHECK: "tt.reduce"(%[[Q]])
tt.func @narrow(%x: tensor<4xf16>, %s: f16, %p: !tt.ptr<f16>) attributes {autodiff.role = "backward"} {
  %r = tt.splat %s : f16 -> tensor<4xf16>
  %q = arith.divf %x, %r : tensor<4xf16>
  %y = "tt.reduce"(%q) <{axis = 0 : i32}> ({
  ^bb0(%a: f16, %b: f16):
    %t = arith.addf %a, %b : f16
    tt.reduce.return %t : f16
  }) : (tensor<4xf16>) -> f16
  tt.store %p, %y : !tt.ptr<f16>
  tt.return
}
