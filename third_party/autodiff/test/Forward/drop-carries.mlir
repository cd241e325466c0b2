// RUN: triton-autodiff-opt %s -split-input-file -pass-pipeline='builtin.module(tt.func(autodiff-drop-carries),canonicalize)' | FileCheck %s

// The sum that nobody reads is gone, and the one that is stored is not.
// CHECK-LABEL: tt.func @sums(
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[S:.*]] = %arg1) -> (f32)
// CHECK-NEXT: arith.addf %[[S]], %arg2
// CHECK-NEXT: scf.yield
// CHECK: tt.store %arg0, %[[SUM]]
tt.func @sums(%p: !tt.ptr<f32>, %a: f32, %b: f32, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%s = %a, %t = %b) -> (f32, f32) : i32 {
    %u = arith.addf %s, %b : f32
    %v = arith.mulf %t, %t : f32
    scf.yield %u, %v : f32, f32
  }
  tt.store %p, %r#0 : !tt.ptr<f32>
  tt.return
}

// -----

// What one carries for another, or stores, stays.
// CHECK-LABEL: tt.func @feeds(
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %arg1, %{{.*}} = %arg2)
tt.func @feeds(%p: !tt.ptr<f32>, %a: f32, %b: f32, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%s = %a, %t = %b) -> (f32, f32) : i32 {
    %u = arith.addf %s, %t : f32
    %v = arith.mulf %t, %t : f32
    scf.yield %u, %v : f32, f32
  }
  tt.store %p, %r#0 : !tt.ptr<f32>
  tt.return
}
