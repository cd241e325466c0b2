// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize | FileCheck %s

// Calls are inlined, an early return becomes a branch, a masked load without
// `other` gives zeros, and accesses are numbered in program order.
// CHECK-LABEL: tt.func public @early
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[C:.*]] = arith.cmpi eq, %arg2,
// CHECK: scf.if %[[C]] {
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[X:.*]] = tt.load %arg0, %arg3, %[[ZERO]] {autodiff.site = 0 : i32}
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-NEXT: tt.store %arg1, %[[Y]] {autodiff.site = 1 : i32}
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
// CHECK-NOT: @square
tt.func private @square(%a: f32) -> f32 {
  %b = arith.mulf %a, %a : f32
  tt.return %b : f32
}
tt.func public @early(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %m: i1) {
  %c0 = arith.constant 0 : i32
  %done = arith.cmpi eq, %n, %c0 : i32
  cf.cond_br %done, ^exit, ^body
^exit:
  tt.return
^body:
  %x = tt.load %px, %m : !tt.ptr<f32>
  %y = tt.call @square(%x) : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// What does not change in a loop is computed before it.
// CHECK-LABEL: tt.func @invariant
// CHECK: %[[Q:.*]] = tt.addptr %arg1, %arg2
// CHECK: scf.for
// CHECK: tt.store %[[Q]],
tt.func @invariant(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %q = tt.addptr %py, %n : !tt.ptr<f32>, i32
    tt.store %q, %x : !tt.ptr<f32>
  }
  tt.return
}

// -----

// Elements must stay where they are for an adjoint to find them.
// CHECK-LABEL: tt.func @reshape
// CHECK: tt.reshape %{{[0-9]+}} : tensor<8xf32> -> tensor<2x4xf32>
tt.func @reshape(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<8x!tt.ptr<f32>>
  %y = tt.reshape %x allow_reorder : tensor<8xf32> -> tensor<2x4xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<2x4x!tt.ptr<f32>>
  tt.store %1, %y : tensor<2x4x!tt.ptr<f32>>
  tt.return
}
