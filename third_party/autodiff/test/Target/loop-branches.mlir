// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-loop-branches))' %s | FileCheck %s

// CHECK-LABEL: tt.func @one_side(
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00>
// CHECK: %[[TRIPS:.*]] = arith.extui %arg0 : i1 to i32
// CHECK: %[[R:.*]] = scf.for %{{.*}} = %{{.*}} to %[[TRIPS]] step %{{.*}} iter_args(%{{.*}} = %[[ZERO]])
// CHECK: %[[D:.*]] = tt.dot
// CHECK: scf.yield %[[D]]
// CHECK: tt.num_stages = 1
// CHECK: tt.return %[[R]]
tt.func @one_side(%p: i1, %a: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %r = scf.if %p -> tensor<16x16xf32> {
    %d = tt.dot %a, %a, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  } else {
    scf.yield %zero : tensor<16x16xf32>
  }
  tt.return %r : tensor<16x16xf32>
}

// What the other side computes is a loop of its own, before.
// CHECK-LABEL: tt.func @both_sides(
// CHECK: %[[NOT:.*]] = arith.xori %arg0
// CHECK: %[[ELSE_TRIPS:.*]] = arith.extui %[[NOT]]
// CHECK: %[[E:.*]] = scf.for {{.*}} to %[[ELSE_TRIPS]]
// CHECK: math.exp
// CHECK: %[[TRIPS:.*]] = arith.extui %arg0
// CHECK: scf.for {{.*}} to %[[TRIPS]] {{.*}} iter_args(%{{.*}} = %[[E]])
// CHECK: tt.dot
tt.func @both_sides(%p: i1, %a: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %r = scf.if %p -> tensor<16x16xf32> {
    %d = tt.dot %a, %a, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  } else {
    %e = math.exp %a : tensor<16x16xf32>
    scf.yield %e : tensor<16x16xf32>
  }
  tt.return %r : tensor<16x16xf32>
}

// Others stay branches.
// CHECK-LABEL: tt.func @no_product(
// CHECK: scf.if
// CHECK-NOT: scf.for
tt.func @no_product(%p: i1, %a: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %r = scf.if %p -> tensor<16x16xf32> {
    %e = math.exp %a : tensor<16x16xf32>
    scf.yield %e : tensor<16x16xf32>
  } else {
    scf.yield %a : tensor<16x16xf32>
  }
  tt.return %r : tensor<16x16xf32>
}
