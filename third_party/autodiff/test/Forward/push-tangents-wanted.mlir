// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics \
// RUN:   -autodiff-normalize \
// RUN:   '-autodiff-push-tangents=all-wanted=false wanted=0' -canonicalize -cse \
// RUN:   | FileCheck %s

// Of W no tangent is given.
// CHECK-LABEL: tt.func @one_jvp(
// CHECK-SAME: {autodiff.tangent = 0 : i32}
// CHECK-NOT: {autodiff.tangent = 1 : i32}
// CHECK-SAME: {autodiff.tangent = 2 : i32}
// CHECK: %[[DX:.*]] = tt.load %arg3 :
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[DY:.*]] = arith.mulf %[[DX]], %[[W]] :
// CHECK: tt.store %arg4, %[[DY]] :
tt.func @one(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = arith.mulf %x, %w : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Which of them this is, a kernel finds out: if one has tangents, both have.
// CHECK-LABEL: tt.func @either_jvp(
// CHECK-SAME: %arg4: !tt.ptr<f32> {autodiff.tangent = 0 : i32}
// CHECK-SAME: %arg5: !tt.ptr<f32> {autodiff.tangent = 1 : i32}
// CHECK-SAME: %arg6: !tt.ptr<f32> {autodiff.tangent = 2 : i32}
// CHECK: %[[P:.*]] = arith.select %arg3, %arg4, %arg5
// CHECK: tt.load %[[P]]
tt.func @either(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1) {
  %p = arith.select %c, %px, %pw : !tt.ptr<f32>
  %x = tt.load %p : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.return
}
