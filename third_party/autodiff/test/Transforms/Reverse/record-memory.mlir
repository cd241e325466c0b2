// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(autodiff-normalize,tt.func(autodiff-record-memory,canonicalize))' \
// RUN:   | FileCheck %s

// What was loaded before any store can be loaded again from a copy.
// CHECK-LABEL: tt.func @overwritten(
// CHECK-NOT: autodiff.push
// CHECK: tt.store
// CHECK-NEXT: %[[Z:.*]] = tt.load %arg0
// CHECK-NEXT: autodiff.push %[[Z]] at %c0_i32 tape = 0
tt.func @overwritten(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %e = math.exp %x : f32
  tt.store %px, %e : !tt.ptr<f32>
  %z = tt.load %px : !tt.ptr<f32>
  tt.store %py, %z : !tt.ptr<f32>
  tt.return
}

// -----

// A ticket cannot be drawn again.
// CHECK-LABEL: tt.func @ticket(
// CHECK: %[[T:.*]] = tt.atomic_rmw add
// CHECK-NEXT: autodiff.push %[[T]] at %c0_i32 tape = 0
tt.func @ticket(%px: !tt.ptr<f32>, %pc: !tt.ptr<i32>, %py: !tt.ptr<f32>, %m: i1) {
  %one = arith.constant 1 : i32
  %t = tt.atomic_rmw add, acq_rel, gpu, %pc, %one, %m : (!tt.ptr<i32>, i32, i1) -> i32
  %p = tt.addptr %px, %t : !tt.ptr<f32>, i32
  %x = tt.load %p : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.return
}

// -----

// The number of the iteration tells the records of a loop apart.
// CHECK-LABEL: tt.func @next_iteration(
// CHECK: scf.for {{.*}} iter_args(%[[K:.*]] = %c0_i32)
// CHECK: %[[X:.*]] = tt.load %arg0
// CHECK-NEXT: autodiff.push %[[X]] at %[[K]] tape = 0
// CHECK: %[[NEXT:.*]] = arith.addi %[[K]], %c1_i32
// CHECK: scf.yield %[[NEXT]]
tt.func @next_iteration(%px: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tt.load %px : !tt.ptr<f32>
    %e = math.exp %x : f32
    tt.store %px, %e : !tt.ptr<f32>
  }
  tt.return
}
