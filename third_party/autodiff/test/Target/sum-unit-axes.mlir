// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-sum-unit-axes))' %s | FileCheck %s

// CHECK-LABEL: tt.func @first(
// CHECK: %[[SUM:.*]] = "tt.reduce"(%arg0) <{axis = 0 : i32}>
// CHECK: arith.addf
// CHECK: (tensor<1x4xf64>) -> tensor<4xf64>
// CHECK-NOT: tt.reshape
// CHECK: tt.return %[[SUM]]
tt.func @first(%x: tensor<1x4xf64>) -> tensor<4xf64> {
  %y = tt.reshape %x : tensor<1x4xf64> -> tensor<4xf64>
  tt.return %y : tensor<4xf64>
}

// Several axes, and one that stays although it has one element, too.
// CHECK-LABEL: tt.func @several(
// CHECK: %[[LAST:.*]] = "tt.reduce"(%arg0) <{axis = 3 : i32}>
// CHECK: %[[SUM:.*]] = "tt.reduce"(%[[LAST]]) <{axis = 1 : i32}>
// CHECK: (tensor<1x1x8xf16>) -> tensor<1x8xf16>
// CHECK: tt.return %[[SUM]]
tt.func @several(%x: tensor<1x1x8x1xf16>) -> tensor<1x8xf16> {
  %y = tt.reshape %x : tensor<1x1x8x1xf16> -> tensor<1x8xf16>
  tt.return %y : tensor<1x8xf16>
}

// What moves elements to other axes, adds an axis, or has no floats, stays.
// CHECK-LABEL: tt.func @others(
// CHECK-COUNT-4: tt.reshape
// CHECK-NOT: tt.reduce
tt.func @others(%x: tensor<1x4x2xf32>, %k: tensor<1x4xi32>) -> (tensor<8xf32>, tensor<2x4xf32>, tensor<1x1x4x2xf32>, tensor<4xi32>) {
  %a = tt.reshape %x : tensor<1x4x2xf32> -> tensor<8xf32>
  %b = tt.reshape %x : tensor<1x4x2xf32> -> tensor<2x4xf32>
  %c = tt.reshape %x : tensor<1x4x2xf32> -> tensor<1x1x4x2xf32>
  %d = tt.reshape %k : tensor<1x4xi32> -> tensor<4xi32>
  tt.return %a, %b, %c, %d : tensor<8xf32>, tensor<2x4xf32>, tensor<1x1x4x2xf32>, tensor<4xi32>
}
