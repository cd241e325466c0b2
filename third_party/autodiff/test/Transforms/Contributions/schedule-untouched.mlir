// RUN: triton-autodiff-opt %s -autodiff-normalize \
// RUN:   -autodiff-reverse="all-wanted=0 wanted=0,1" -autodiff-cleanup \
// RUN:   -autodiff-read-cotangents -autodiff-lower-accumulates | FileCheck %s

// The loop that stores turns out to have no iterations: what was there before
// stays, and its gradient is the cotangent.
// CHECK: autodiff.gradient <store 1 : f32 init = cotangent returned = true
// CHECK-LABEL: tt.func @nowhere_bwd(
// CHECK: tt.store %arg3, %cst
// CHECK-NOT: tt.store
tt.func @nowhere(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %three = arith.constant 3 : i32
  %p = tt.get_program_id x : i32
  %q = arith.addi %p, %two : i32
  %x = tt.load %px : !tt.ptr<f32>
  %last = scf.for %i = %p to %q step %two iter_args(%k = %zero) -> (i32) : i32 {
    %c = arith.remsi %k, %three : i32
    %end = arith.addi %n, %c : i32
    scf.for %j = %n to %end step %one : i32 {
      tt.store %py, %x : !tt.ptr<f32>
    }
    %next = arith.addi %k, %three : i32
    scf.yield %next : i32
  }
  tt.return
}
