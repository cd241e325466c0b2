// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-reverse \
// RUN:   -canonicalize -cse -autodiff-lower-accumulates | FileCheck %s

// A chosen address is chosen by the same condition in the gradient.
// CHECK: autodiff.gradient <atomic
// CHECK-LABEL: tt.func @select_bwd(
// CHECK: %[[Q:.*]] = tt.addptr %arg0, %arg3
// CHECK: %[[G:.*]] = tt.addptr %arg4, %arg3
// CHECK: %[[P:.*]] = arith.select %arg2, %arg4, %[[G]] : !tt.ptr<f32>
// CHECK: tt.atomic_rmw fadd, relaxed, gpu, %[[P]],
tt.func @select(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1, %o: i32) {
  %q = tt.addptr %px, %o : !tt.ptr<f32>, i32
  %p = arith.select %c, %px, %q : !tt.ptr<f32>
  %x = tt.load %p : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.return
}
