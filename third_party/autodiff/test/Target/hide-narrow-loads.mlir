// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-hide-narrow-loads))' %s | FileCheck %s
// RUN: sed s/sm_90/cpu/ %s | triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-hide-narrow-loads))' | FileCheck %s --check-prefix=CPU

module attributes {autodiff.target = "sm_90"} {

// An operand behind a mask of bytes is a sum of itself; the other one stays.
// CHECK-LABEL: tt.func @mask(
// CHECK: %[[KEPT:.*]] = arith.select
// CHECK: %[[BEHIND:.*]] = tt.expand_dims %[[KEPT]] {axis = 2 : i32} : tensor<16x16xf64> -> tensor<16x16x1xf64>
// CHECK: %[[SUM:.*]] = "tt.reduce"(%[[BEHIND]]) <{axis = 2 : i32}>
// CHECK: tt.dot %[[SUM]], %arg2, %arg3
// CPU-LABEL: tt.func @mask(
// CPU-NOT: tt.reduce
tt.func @mask(%p: tensor<16x16x!tt.ptr<i8>>, %x: tensor<16x16xf64>, %b: tensor<16x16xf64>, %c: tensor<16x16xf64>) -> tensor<16x16xf64> attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf64>
  %none = arith.constant dense<0> : tensor<16x16xi8>
  %byte = tt.load %p : tensor<16x16x!tt.ptr<i8>>
  %mask = arith.cmpi ne, %byte, %none : tensor<16x16xi8>
  %a = arith.select %mask, %x, %zero : tensor<16x16xi1>, tensor<16x16xf64>
  %d = tt.dot %a, %b, %c : tensor<16x16xf64> * tensor<16x16xf64> -> tensor<16x16xf64>
  tt.return %d : tensor<16x16xf64>
}

// A batch, and the second operand.
// CHECK-LABEL: tt.func @batch(
// CHECK: tt.expand_dims %{{.*}} {axis = 3 : i32} : tensor<2x16x16xf64> -> tensor<2x16x16x1xf64>
// CHECK: %[[SUM:.*]] = "tt.reduce"
// CHECK: tt.dot %arg1, %[[SUM]], %arg2
tt.func @batch(%p: tensor<2x16x16x!tt.ptr<f16>>, %a: tensor<2x16x16xf64>, %c: tensor<2x16x16xf64>) -> tensor<2x16x16xf64> attributes {autodiff.role = "backward"} {
  %x = tt.load %p : tensor<2x16x16x!tt.ptr<f16>>
  %b = arith.extf %x : tensor<2x16x16xf16> to tensor<2x16x16xf64>
  %d = tt.dot %a, %b, %c : tensor<2x16x16xf64> * tensor<2x16x16xf64> -> tensor<2x16x16xf64>
  tt.return %d : tensor<2x16x16xf64>
}

// What is joined of two tiles counts as half as wide, once: 32 bits are narrow
// then, 64 bits are not.
// CHECK-LABEL: tt.func @joined(
// CHECK: %[[TILE:.*]] = arith.mulf
// CHECK: %[[BEHIND:.*]] = tt.expand_dims %[[TILE]]
// CHECK: %[[SUM:.*]] = "tt.reduce"(%[[BEHIND]])
// CHECK: tt.dot %[[SUM]], %arg2, %arg3
tt.func @joined(%p: tensor<16x16x!tt.ptr<f32>>, %h: tensor<16x8xf64>, %b: tensor<16x16xf64>, %c: tensor<16x16xf64>) -> tensor<16x16xf64> attributes {autodiff.role = "backward"} {
  %x = tt.load %p : tensor<16x16x!tt.ptr<f32>>
  %y = arith.extf %x : tensor<16x16xf32> to tensor<16x16xf64>
  %j = tt.join %h, %h : tensor<16x8xf64> -> tensor<16x8x2xf64>
  %k = tt.reshape %j : tensor<16x8x2xf64> -> tensor<16x16xf64>
  %a = arith.mulf %k, %y : tensor<16x16xf64>
  %d = tt.dot %a, %b, %c : tensor<16x16xf64> * tensor<16x16xf64> -> tensor<16x16xf64>
  tt.return %d : tensor<16x16xf64>
}

// CHECK-LABEL: tt.func @joined_twice(
// CHECK-NOT: tt.reduce
tt.func @joined_twice(%p: tensor<16x4x!tt.ptr<f64>>, %b: tensor<16x16xf64>, %c: tensor<16x16xf64>) -> tensor<16x16xf64> attributes {autodiff.role = "backward"} {
  %x = tt.load %p : tensor<16x4x!tt.ptr<f64>>
  %i = tt.join %x, %x : tensor<16x4xf64> -> tensor<16x4x2xf64>
  %j = tt.join %i, %i : tensor<16x4x2xf64> -> tensor<16x4x2x2xf64>
  %a = tt.reshape %j : tensor<16x4x2x2xf64> -> tensor<16x16xf64>
  %d = tt.dot %a, %b, %c : tensor<16x16xf64> * tensor<16x16xf64> -> tensor<16x16xf64>
  tt.return %d : tensor<16x16xf64>
}

// Elements of 32 bits have one neighbour; float32 is laid out right.
// CHECK-LABEL: tt.func @others(
// CHECK-NOT: tt.reduce
tt.func @others(%p: tensor<16x16x!tt.ptr<f32>>, %q: tensor<16x16x!tt.ptr<f16>>, %b: tensor<16x16xf64>, %e: tensor<16x16xf32>, %c: tensor<16x16xf64>, %f: tensor<16x16xf32>) -> (tensor<16x16xf64>, tensor<16x16xf32>) attributes {autodiff.role = "backward"} {
  %x = tt.load %p : tensor<16x16x!tt.ptr<f32>>
  %a = arith.extf %x : tensor<16x16xf32> to tensor<16x16xf64>
  %d = tt.dot %a, %b, %c : tensor<16x16xf64> * tensor<16x16xf64> -> tensor<16x16xf64>
  %y = tt.load %q : tensor<16x16x!tt.ptr<f16>>
  %g = arith.extf %y : tensor<16x16xf16> to tensor<16x16xf32>
  %h = tt.dot %g, %e, %f : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  tt.return %d, %h : tensor<16x16xf64>, tensor<16x16xf32>
}

// The user's own kernel is Triton's.
// CHECK-LABEL: tt.func @own(
// CHECK-NOT: tt.reduce
tt.func @own(%p: tensor<16x16x!tt.ptr<f16>>, %b: tensor<16x16xf64>, %c: tensor<16x16xf64>) -> tensor<16x16xf64> {
  %x = tt.load %p : tensor<16x16x!tt.ptr<f16>>
  %a = arith.extf %x : tensor<16x16xf16> to tensor<16x16xf64>
  %d = tt.dot %a, %b, %c : tensor<16x16xf64> * tensor<16x16xf64> -> tensor<16x16xf64>
  tt.return %d : tensor<16x16xf64>
}
}
