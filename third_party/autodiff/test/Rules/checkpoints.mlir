// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-reverse -canonicalize -cse \
// RUN:   | FileCheck %s

// Every C-th iteration is recorded, C = ⌊√n⌋ + 1. The reversed loop takes C
// iterations at a time: it records them from their checkpoint, and reverses
// them.
// CHECK-LABEL: tt.func @product_bwd(
// CHECK: %[[C64:.*]] = autodiff.size <isqrt(max(arg3, 0)) + 1>
// CHECK: %[[C:.*]] = arith.trunci %[[C64]] : i64 to i32
// CHECK: scf.for %[[I:[^ ,:)]+]] = %c0_i32 to %arg3 step %c1_i32 iter_args(%[[H:[^ ,:)]+]] =
// CHECK: %[[REST:.*]] = arith.remui %[[I]], %[[C]]
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[REST]], %c0_i32
// CHECK: %[[E:.*]] = arith.divui %[[I]], %[[C]]
// CHECK: scf.if %[[IS]] {
// CHECK: autodiff.push %[[H]] at %[[E]] tape = 0 of <isqrt(
// CHECK: %[[CHUNKS:.*]] = arith.divui %{{.*}}, %[[C]]
// CHECK: scf.for %{{.*}} = %c0_i32 to %[[CHUNKS]]
// CHECK: %[[START:.*]] = arith.muli %[[CHUNK:[0-9a-z%]+]], %[[C]]
// CHECK: %[[LENGTH:.*]] = arith.minsi %{{.*}}, %[[C]]
// CHECK: %[[OLD:.*]] = autodiff.pop %[[CHUNK]] tape = 0
// CHECK: scf.for %[[J:[^ ,:)]+]] = %c0_i32 to %[[LENGTH]] {{.*}} iter_args(%[[A:[^ ,:)]+]] = %[[OLD]])
// CHECK: autodiff.push %[[A]] at %[[J]] tape = 1
// CHECK: scf.for %[[K:[^ ,:)]+]] = %c0_i32 to %[[LENGTH]]
// CHECK: autodiff.pop %{{.*}} tape = 1
module attributes {autodiff.checkpoint} {
tt.func @product(%ph: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %h0 = tt.load %ph : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %h = scf.for %i = %c0 to %n step %c1 iter_args(%a = %h0) -> f32 : i32 {
    %b = arith.mulf %a, %w : f32
    scf.yield %b : f32
  }
  tt.store %py, %h : !tt.ptr<f32>
  tt.return
}
}
