// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics -autodiff-normalize \
// RUN:   -autodiff-settle-atomics | FileCheck %s

// The value is stored where memory holds it. Nothing else happens.
// CHECK-LABEL: tt.func public @most_settled(
// CHECK: %[[X:.*]] = tt.load %arg0
// CHECK: %[[V:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK: %[[FINAL:.*]] = tt.load %arg1, %arg3
// CHECK: %[[A:.*]] = tt.bitcast %[[FINAL]] : f32 -> i32
// CHECK: %[[B:.*]] = tt.bitcast %[[V]] : f32 -> i32
// CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[A]], %[[B]]
// CHECK: %[[HERE:.*]] = arith.andi %arg3, %[[SAME]]
// CHECK: tt.store %arg1, %[[V]], %[[HERE]]
// CHECK-NEXT: tt.return
tt.func public @most(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pz: !tt.ptr<f32>, %mask: i1) {
  %x = tt.load %px : !tt.ptr<f32>
  %v = arith.mulf %x, %x : f32
  tt.store %pz, %v : !tt.ptr<f32>
  %bits = tt.bitcast %py : !tt.ptr<f32> -> !tt.ptr<i32>
  %w = tt.bitcast %v : f32 -> i32
  %old = tt.atomic_rmw max, acq_rel, gpu, %bits, %w, %mask : (!tt.ptr<i32>, i32, i1) -> i32
  tt.return
}

// -----

tt.func public @rounded(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %a: f32) {
  %true = arith.constant true
  %x = tt.load %px : !tt.ptr<f32>
  %v = arith.mulf %x, %x : f32
  %s = arith.addf %v, %a : f32
  // expected-error @+1 {{may be rounded otherwise when it is computed again}}
  %old = tt.atomic_rmw exch, acq_rel, gpu, %py, %s, %true : (!tt.ptr<f32>, f32, i1) -> f32
  tt.return
}

// -----

tt.func public @changed(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %true = arith.constant true
  // expected-error @+1 {{in a kernel that also changes what it loads here}}
  %x = tt.load %px : !tt.ptr<f32>
  %old = tt.atomic_rmw exch, acq_rel, gpu, %py, %x, %true : (!tt.ptr<f32>, f32, i1) -> f32
  tt.store %px, %x : !tt.ptr<f32>
  tt.return
}
