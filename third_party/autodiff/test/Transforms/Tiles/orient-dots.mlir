// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-orient-dots,canonicalize,cse))' %s | FileCheck %s

// Between the products, tiles are computed transposed: both later products then
// take what is computed as first operand, as it is. One sum is kept transposed.
// CHECK-LABEL: tt.func @chain(
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}})
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[XT:.*]] = tt.trans %[[X]]
// CHECK: %[[ST:.*]] = tt.dot %{{.*}}, %[[XT]], {{.*}} -> tensor<32x16xf32>
// CHECK: %[[P:.*]] = math.exp %[[ST]]
// CHECK: %[[NA:.*]] = tt.dot %[[P]], %[[X]], %[[A]]
// CHECK: %[[NB:.*]] = tt.dot %[[P]], %[[X]], %[[B]]
// CHECK: scf.yield %[[NA]], %[[NB]]
// CHECK: tt.trans %[[R]]#1
tt.func @chain(%px: tensor<16x64x!tt.ptr<f32>>, %k: tensor<64x32xf32>, %n: i32) -> (tensor<32x64xf32>, tensor<64x32xf32>) attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16x32xf32>
  %za = arith.constant dense<0.0> : tensor<32x64xf32>
  %zb = arith.constant dense<0.0> : tensor<64x32xf32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %za, %b = %zb) -> (tensor<32x64xf32>, tensor<64x32xf32>) : i32 {
    %x = tt.load %px : tensor<16x64x!tt.ptr<f32>>
    %s = tt.dot %x, %k, %zero : tensor<16x64xf32> * tensor<64x32xf32> -> tensor<16x32xf32>
    %p = math.exp %s : tensor<16x32xf32>
    %pt = tt.trans %p {order = array<i32: 1, 0>} : tensor<16x32xf32> -> tensor<32x16xf32>
    %na = tt.dot %pt, %x, %a : tensor<32x16xf32> * tensor<16x64xf32> -> tensor<32x64xf32>
    %xt = tt.trans %x {order = array<i32: 1, 0>} : tensor<16x64xf32> -> tensor<64x16xf32>
    %nb = tt.dot %xt, %p, %b : tensor<64x16xf32> * tensor<16x32xf32> -> tensor<64x32xf32>
    scf.yield %na, %nb : tensor<32x64xf32>, tensor<64x32xf32>
  }
  tt.return %r#0, %r#1 : tensor<32x64xf32>, tensor<64x32xf32>
}

// What is computed and used as it is stays so.
// CHECK-LABEL: tt.func @straight(
// CHECK-NOT: tt.trans
tt.func @straight(%px: tensor<16x16x!tt.ptr<f32>>, %k: tensor<16x16xf32>, %n: i32) -> tensor<16x16xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> (tensor<16x16xf32>) : i32 {
    %x = tt.load %px : tensor<16x16x!tt.ptr<f32>>
    %s = tt.dot %x, %k, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    %p = math.exp %s : tensor<16x16xf32>
    %next = tt.dot %p, %x, %a : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  tt.return %r : tensor<16x16xf32>
}

// A transposed product is one of transposed operands: computed tiles come first.
// CHECK-LABEL: tt.func @transposed(
// CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}})
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[XT:.*]] = tt.trans %[[X]]
// CHECK: %[[ST:.*]] = tt.dot %{{.*}}, %[[XT]], {{.*}} -> tensor<32x16xf32>
// CHECK: %[[P:.*]] = math.exp %[[ST]]
// CHECK: %[[PRODUCT:.*]] = tt.dot %[[P]], %[[X]], {{.*}} -> tensor<32x64xf32>
// CHECK: arith.addf %[[SUM]], %[[PRODUCT]]
tt.func @transposed(%px: tensor<16x64x!tt.ptr<f32>>, %k: tensor<64x32xf32>, %n: i32) -> tensor<32x64xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16x32xf32>
  %za = arith.constant dense<0.0> : tensor<32x64xf32>
  %zb = arith.constant dense<0.0> : tensor<64x32xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %za) -> (tensor<32x64xf32>) : i32 {
    %x = tt.load %px : tensor<16x64x!tt.ptr<f32>>
    %s = tt.dot %x, %k, %zero : tensor<16x64xf32> * tensor<64x32xf32> -> tensor<16x32xf32>
    %p = math.exp %s : tensor<16x32xf32>
    %xt = tt.trans %x {order = array<i32: 1, 0>} : tensor<16x64xf32> -> tensor<64x16xf32>
    %product = tt.dot %xt, %p, %zb : tensor<64x16xf32> * tensor<16x32xf32> -> tensor<64x32xf32>
    %turned = tt.trans %product {order = array<i32: 1, 0>} : tensor<64x32xf32> -> tensor<32x64xf32>
    %next = arith.addf %a, %turned : tensor<32x64xf32>
    scf.yield %next : tensor<32x64xf32>
  }
  tt.return %r : tensor<32x64xf32>
}
