// RUN: %differentiate %s -split-input-file -verify-diagnostics | FileCheck %s

// A sum needs no tape, so nobody has to count.
// CHECK-LABEL: tt.func @sum_bwd(
// CHECK-NOT: tt.func @sum_count
tt.func @sum(%px: !tt.ptr<f32>, %pn: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %n = tt.load %pn : !tt.ptr<i32>
  %h = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> f32 : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %s = arith.addf %a, %x : f32
    scf.yield %s : f32
  }
  tt.store %py, %h : !tt.ptr<f32>
  tt.return
}

// -----

// What another program decides cannot be counted again.
tt.func @queue(%px: !tt.ptr<f32>, %pn: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{how often a loop runs depends on this access to memory that the kernel changes}}
  %n = tt.atomic_rmw add, acq_rel, gpu, %pn, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
  %h = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> f32 : i32 {
    %s = math.sin %a : f32
    scf.yield %s : f32
  }
  tt.store %py, %h : !tt.ptr<f32>
  tt.return
}
