// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-split-sums))' %s | FileCheck %s

// Two products are added to one tile in each iteration: each gets a tile, and
// they are added up after the loop.
// CHECK-LABEL: tt.func @both(
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[S:.*]] = %arg3, %[[T:.*]] = %{{.*}})
// CHECK: %[[FIRST:.*]] = tt.dot %arg0, %arg1, %[[S]]
// CHECK: %[[SECOND:.*]] = tt.dot %arg1, %arg0, %[[T]]
// CHECK: scf.yield %[[FIRST]], %[[SECOND]]
// CHECK: } {autodiff.counter = 3 : i32}
// CHECK: %[[SUM:.*]] = arith.addf %[[R]]#0, %[[R]]#1
// CHECK: tt.return %[[SUM]]
tt.func @both(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>, %n: i32, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%s = %c) -> (tensor<16x16xf32>) : i32 {
    %d = tt.dot %a, %b, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    %e = tt.dot %b, %a, %d : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %e : tensor<16x16xf32>
  } {autodiff.counter = 3 : i32}
  tt.return %r : tensor<16x16xf32>
}

// The sum of both is read in the loop, or what the loop has added so far is.
// CHECK-LABEL: tt.func @read(
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %arg4, %{{.*}} = %arg4) -> (tensor<16x16xf32>, tensor<16x16xf32>)
// CHECK-NOT: arith.addf
// CHECK: tt.return
tt.func @read(%p: tensor<16x16x!tt.ptr<f32>>, %a: tensor<16x16xf16>, %b: tensor<16x16xf16>, %n: i32, %c: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%s = %c, %t = %c) -> (tensor<16x16xf32>, tensor<16x16xf32>) : i32 {
    %d = tt.dot %a, %b, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    %e = tt.dot %b, %a, %d : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    tt.store %p, %e : tensor<16x16x!tt.ptr<f32>>
    %f = tt.dot %a, %b, %t : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    %g = tt.dot %b, %a, %f : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    tt.store %p, %t : tensor<16x16x!tt.ptr<f32>>
    scf.yield %e, %g : tensor<16x16xf32>, tensor<16x16xf32>
  }
  tt.return %r#0, %r#1 : tensor<16x16xf32>, tensor<16x16xf32>
}

// Integers are no tangents.
// CHECK-LABEL: tt.func @integers(
// CHECK: scf.for {{.*}} -> (tensor<16x16xi32>)
tt.func @integers(%a: tensor<16x16xi8>, %b: tensor<16x16xi8>, %n: i32, %c: tensor<16x16xi32>) -> tensor<16x16xi32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%s = %c) -> (tensor<16x16xi32>) : i32 {
    %d = tt.dot %a, %b, %s : tensor<16x16xi8> * tensor<16x16xi8> -> tensor<16x16xi32>
    %e = tt.dot %b, %a, %d : tensor<16x16xi8> * tensor<16x16xi8> -> tensor<16x16xi32>
    scf.yield %e : tensor<16x16xi32>
  }
  tt.return %r : tensor<16x16xi32>
}
