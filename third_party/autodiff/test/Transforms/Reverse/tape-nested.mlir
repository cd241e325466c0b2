// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize -autodiff-reverse \
// RUN:   -canonicalize -cse -autodiff-place-tapes -autodiff-simplify -canonicalize -cse | FileCheck %s

// The outer loop's tape holds n entries. The reversed outer loop fills the
// inner one's again in every iteration, once all threads have read it.
// CHECK: autodiff.buffer 0 <tape "tape0" : {{.*}}, max(arg2, 0) *
// CHECK: autodiff.buffer 1 <tape "tape1" : {{.*}}, max(arg3, 0) *
// CHECK-LABEL: tt.func @nested_bwd(
// CHECK: scf.for {{.*}} to %arg2 {{.*}} iter_args(%[[H:[^ ,:)]+]] = %
// CHECK: %[[P:.*]] = tt.addptr %arg4
// CHECK: tt.store %[[P]], %[[H]]
// CHECK: scf.for {{.*}} to %arg3
// CHECK-NOT: tt.store
// CHECK: gpu.barrier
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: scf.for {{.*}} iter_args(%[[DH:[^ ,:)]+]] = %[[T]])
// CHECK: %[[Q:.*]] = tt.addptr %arg4
// CHECK: %[[OLD:.*]] = tt.load %[[Q]]
// CHECK-NEXT: gpu.barrier
// CHECK: scf.for {{.*}} to %arg3 {{.*}} iter_args(%[[B:[^ ,:)]+]] = %[[OLD]])
// CHECK: %[[R:.*]] = tt.addptr %arg5
// CHECK: tt.store %[[R]], %[[B]]
// CHECK: gpu.barrier
// CHECK: scf.for {{.*}} iter_args(%[[DB:[^ ,:)]+]] = %[[DH]])
// CHECK: %[[S:.*]] = tt.addptr %arg5
// CHECK: %[[X:.*]] = tt.load %[[S]]
// CHECK: %[[C:.*]] = math.cos %[[X]]
// CHECK: %[[D:.*]] = arith.mulf %[[DB]], %[[C]]
// CHECK: scf.yield %[[D]]
tt.func @nested(%ph: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %k: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %h0 = tt.load %ph : !tt.ptr<f32>
  %h = scf.for %i = %c0 to %n step %c1 iter_args(%a = %h0) -> f32 : i32 {
    %g = scf.for %j = %c0 to %k step %c1 iter_args(%b = %a) -> f32 : i32 {
      %s = math.sin %b : f32
      scf.yield %s : f32
    }
    scf.yield %g : f32
  }
  tt.store %py, %h : !tt.ptr<f32>
  tt.return
}

// -----

// An inner bound that grows with the outer loop is largest in its last
// iteration.
// CHECK: autodiff.buffer 1 <tape "tape1" : {{.*}}, max(max(arg2, 0) - 1, 0) *
// CHECK-LABEL: tt.func @triangular_bwd(
tt.func @triangular(%ph: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %h0 = tt.load %ph : !tt.ptr<f32>
  %h = scf.for %i = %c0 to %n step %c1 iter_args(%a = %h0) -> f32 : i32 {
    %g = scf.for %j = %c0 to %i step %c1 iter_args(%b = %a) -> f32 : i32 {
      %s = math.sin %b : f32
      scf.yield %s : f32
    }
    scf.yield %g : f32
  }
  tt.store %py, %h : !tt.ptr<f32>
  tt.return
}
