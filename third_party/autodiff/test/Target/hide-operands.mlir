// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-hide-operands))' %s | FileCheck %s
// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-hide-operands,autodiff-hide-operands))' %s | FileCheck %s

// Each operand is a sum over an axis of one element, and products of integers
// stay.
// CHECK-LABEL: tt.func @products(
// CHECK: %[[ROWS:.*]] = tt.expand_dims %arg0 {axis = 2 : i32}
// CHECK: %[[A:.*]] = "tt.reduce"(%[[ROWS]]) <{axis = 2 : i32}>
// CHECK: %[[COLUMNS:.*]] = tt.expand_dims %arg1 {axis = 2 : i32}
// CHECK: %[[B:.*]] = "tt.reduce"(%[[COLUMNS]]) <{axis = 2 : i32}>
// CHECK: tt.dot %[[A]], %[[B]], %arg2
// CHECK: tt.dot %arg3, %arg3, %arg4
// CHECK-NOT: tt.reduce
tt.func @products(%a: tensor<16x16xf64>, %b: tensor<16x16xf64>, %c: tensor<16x16xf64>, %k: tensor<32x32xi8>, %n: tensor<32x32xi32>) -> (tensor<16x16xf64>, tensor<32x32xi32>) {
  %p = tt.dot %a, %b, %c : tensor<16x16xf64> * tensor<16x16xf64> -> tensor<16x16xf64>
  %q = tt.dot %k, %k, %n : tensor<32x32xi8> * tensor<32x32xi8> -> tensor<32x32xi32>
  tt.return %p, %q : tensor<16x16xf64>, tensor<32x32xi32>
}
