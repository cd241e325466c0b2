// RUN: %differentiate --autodiff-pass-sizes %s | FileCheck %s

// The counter has lost its number; it was kept, and stays.
// CHECK-LABEL: tt.func @unknown_count_count(
// CHECK: tt.atomic_rmw max
tt.func @unknown_count(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pn: !tt.ptr<i32>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %n = tt.load %pn : !tt.ptr<i32>
  %x = tt.load %px : !tt.ptr<f32>
  %y = scf.for %i = %zero to %n step %one iter_args(%v = %x) -> (f32) : i32 {
    %s = math.sin %v : f32
    scf.yield %s : f32
  }
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
