// RUN: triton-autodiff-opt %s -verify-diagnostics -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse -autodiff-schedule

// A ticket cannot be drawn again.
tt.func @ticket(%px: !tt.ptr<f32>, %pc: !tt.ptr<i32>, %py: !tt.ptr<f32>, %m: i1) {
  %one = arith.constant 1 : i32
  // expected-error @+1 {{the result of 'tt.atomic_rmw' is needed by the backward, which must not repeat that effect}}
  %t = tt.atomic_rmw add, acq_rel, gpu, %pc, %one, %m : (!tt.ptr<i32>, i32, i1) -> i32
  %p = tt.addptr %px, %t : !tt.ptr<f32>, i32
  %x = tt.load %p : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.return
}
