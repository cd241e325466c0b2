// RUN: triton-autodiff-opt --pass-pipeline="builtin.module(tt.func(autodiff-order-products))" %s | FileCheck %s

// Both products take %x, one as rows and one as columns. The one with the large
// tile would find both forms of it in memory; it waits until one is gone.
// CHECK-LABEL: tt.func @waits(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<64x128xf32>
// CHECK: %[[X:.*]] = arith.negf
// CHECK: %[[Q_T:.*]] = tt.trans %[[Q]]
// CHECK: %[[OUTER:.*]] = tt.dot %[[Q_T]], %[[X]]
// CHECK: tt.store %{{.*}}, %[[OUTER]]
// CHECK: %[[LARGE:.*]] = arith.addf
// CHECK: %[[LARGE_T:.*]] = tt.trans %[[LARGE]]
// CHECK: %[[PRODUCT:.*]] = tt.dot %[[X]], %[[LARGE_T]]
// CHECK: tt.store %{{.*}}, %[[PRODUCT]]
module attributes {autodiff.target = "sm_89"} {
tt.func @waits(%q: tensor<64x128xf32>, %y: tensor<64x128xf32>, %h: tensor<128x128xf32>, %p: tensor<128x128x!tt.ptr<f32>>, %r: tensor<64x128x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %small = arith.constant dense<0.0> : tensor<64x128xf32>
  %square = arith.constant dense<0.0> : tensor<128x128xf32>
  %x = arith.negf %y : tensor<64x128xf32>
  %large = arith.addf %h, %h : tensor<128x128xf32>
  %large_t = tt.trans %large {order = array<i32: 1, 0>} : tensor<128x128xf32> -> tensor<128x128xf32>
  %product = tt.dot %x, %large_t, %small : tensor<64x128xf32> * tensor<128x128xf32> -> tensor<64x128xf32>
  %q_t = tt.trans %q {order = array<i32: 1, 0>} : tensor<64x128xf32> -> tensor<128x64xf32>
  %outer = tt.dot %q_t, %x, %square : tensor<128x64xf32> * tensor<64x128xf32> -> tensor<128x128xf32>
  tt.store %p, %outer : tensor<128x128x!tt.ptr<f32>>
  tt.store %r, %product : tensor<64x128x!tt.ptr<f32>>
  tt.return
}
}
