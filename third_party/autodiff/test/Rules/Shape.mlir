// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// Every adjoint is the transpose of its primal. T: the cotangent of the result.

// What splat repeats, its adjoint sums.
// CHECK-LABEL: tt.func @splat_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<4xf32>
// CHECK: %[[S:.*]] = "tt.reduce"(%[[T]]) <{axis = 0 : i32}>
// CHECK: arith.addf
// CHECK: (tensor<4xf32>) -> f32
// CHECK: autodiff.accumulate %arg0, %[[S]] {
tt.func @splat(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.splat %x : f32 -> tensor<4xf32>
  %o = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %0 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %1 = tt.addptr %0, %o : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %1, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// And the other way round.
// CHECK-LABEL: tt.func @unsplat_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {{.*}} -> f32
// CHECK: %[[S:.*]] = tt.splat %[[T]] : f32 -> tensor<1xf32>
// CHECK: autodiff.accumulate {{.*}}, %[[S]] {
tt.func @unsplat(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<1x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<1x!tt.ptr<f32>>
  %y = tt.unsplat %x : tensor<1xf32>
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A sum along the axis that was repeated, and along no other.
// CHECK-LABEL: tt.func @broadcast_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<2x4xf32>
// CHECK: %[[S:.*]] = "tt.reduce"(%[[T]]) <{axis = 1 : i32}>
// CHECK: arith.addf
// CHECK: (tensor<2x4xf32>) -> tensor<2xf32>
// CHECK: %[[E:.*]] = tt.expand_dims %[[S]] {axis = 1 : i32}
// CHECK: autodiff.accumulate {{.*}}, %[[E]] {
tt.func @broadcast(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<2x1x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<2x1x!tt.ptr<f32>>
  %y = tt.broadcast %x : tensor<2x1xf32> -> tensor<2x4xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<2x4x!tt.ptr<f32>>
  tt.store %1, %y : tensor<2x4x!tt.ptr<f32>>
  tt.return
}

// -----

// Reshapes go back to the operand's shape.
// CHECK-LABEL: tt.func @reshape_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<2x1x4xf32>
// CHECK: %[[R:.*]] = tt.reshape %[[T]] : tensor<2x1x4xf32> -> tensor<8xf32>
// CHECK: autodiff.accumulate {{.*}}, %[[R]] {
tt.func @reshape(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<8x!tt.ptr<f32>>
  %r = tt.reshape %x : tensor<8xf32> -> tensor<2x4xf32>
  %y = tt.expand_dims %r {axis = 1 : i32} : tensor<2x4xf32> -> tensor<2x1x4xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<2x1x4x!tt.ptr<f32>>
  tt.store %1, %y : tensor<2x1x4x!tt.ptr<f32>>
  tt.return
}

// -----

// Three axes rotated by one are rotated by one the other way.
// CHECK-LABEL: tt.func @trans_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<4x8x2xf32>
// CHECK: %[[R:.*]] = tt.trans %[[T]] {order = array<i32: 2, 0, 1>} : tensor<4x8x2xf32> -> tensor<2x4x8xf32>
// CHECK: autodiff.accumulate {{.*}}, %[[R]] {
tt.func @trans(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<2x4x8x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<2x4x8x!tt.ptr<f32>>
  %y = tt.trans %x {order = array<i32: 1, 2, 0>} : tensor<2x4x8xf32> -> tensor<4x8x2xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<4x8x2x!tt.ptr<f32>>
  tt.store %1, %y : tensor<4x8x2x!tt.ptr<f32>>
  tt.return
}

// -----

// The halves of a join's cotangent go to their own operands.
// CHECK-LABEL: tt.func @join_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<4x2xf32>
// CHECK: %[[LHS:.*]], %[[RHS:.*]] = tt.split %[[T]]
// CHECK: autodiff.accumulate {{.*}}, %[[RHS]] {argument = 1 : i32
// CHECK: autodiff.accumulate {{.*}}, %[[LHS]] {argument = 0 : i32
tt.func @join(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %1 = tt.splat %pw : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %w = tt.load %1 : tensor<4x!tt.ptr<f32>>
  %y = tt.join %x, %w : tensor<4xf32> -> tensor<4x2xf32>
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<4x2x!tt.ptr<f32>>
  tt.store %2, %y : tensor<4x2x!tt.ptr<f32>>
  tt.return
}

// -----

// A half of a split that nobody stores has a zero cotangent.
// CHECK-LABEL: tt.func @split_bwd(
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<4xf32>
// CHECK: %[[J:.*]] = tt.join %[[ZERO]], %[[T]] : tensor<4xf32> -> tensor<4x2xf32>
// CHECK: autodiff.accumulate {{.*}}, %[[J]] {
tt.func @split(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x2x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x2x!tt.ptr<f32>>
  %lhs, %rhs = tt.split %x : tensor<4x2xf32> -> tensor<4xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %1, %rhs : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// A swap is its own transpose; here that of Triton's sorting.
// CHECK-LABEL: tt.func @swap_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<2x4xf32>
// CHECK: %[[D:.*]] = autodiff.swap %[[T]] axis = 0 : tensor<2x4xf32>
// CHECK: autodiff.accumulate %{{.*}}, %[[D]] {
tt.func @swap(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<2x4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<2x4x!tt.ptr<f32>>
  %bits = tt.bitcast %x : tensor<2x4xf32> -> tensor<2x4xi32>
  %both = "tt.reduce"(%bits) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.xori %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<2x4xi32>) -> tensor<4xi32>
  %e = tt.expand_dims %both {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
  %r = tt.broadcast %e : tensor<1x4xi32> -> tensor<2x4xi32>
  %other = arith.xori %bits, %r : tensor<2x4xi32>
  %y = tt.bitcast %other : tensor<2x4xi32> -> tensor<2x4xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<2x4x!tt.ptr<f32>>
  tt.store %1, %y : tensor<2x4x!tt.ptr<f32>>
  tt.return
}
