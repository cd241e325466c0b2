// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics \
// RUN:   -autodiff-normalize -autodiff-reverse -canonicalize -cse -autodiff-place-tapes

// The size of a tape must be known when the kernel is launched.
tt.func @unknown_count(%ph: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pn: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %n = tt.load %pn : !tt.ptr<i32>
  %h0 = tt.load %ph : !tt.ptr<f32>
  // expected-error @+1 {{how many iterations there are is not known when the kernel is launched}}
  %h = scf.for %i = %c0 to %n step %c1 iter_args(%a = %h0) -> f32 : i32 {
    %b = math.sin %a : f32
    scf.yield %b : f32
  }
  tt.store %py, %h : !tt.ptr<f32>
  tt.return
}

// -----

// Addresses cannot be taped, and bytes are no offset in elements.
tt.func @pointer_chase(%px: !tt.ptr<f32>, %pi: !tt.ptr<i32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error @+1 {{this loop carries a pointer that does not advance by the same amount in every iteration}}
  %p = scf.for %i = %c0 to %n step %c1 iter_args(%q = %px) -> !tt.ptr<f32> : i32 {
    %x = tt.load %q : !tt.ptr<f32>
    %y = tt.addptr %py, %i : !tt.ptr<f32>, i32
    tt.store %y, %x : !tt.ptr<f32>
    %j = tt.addptr %pi, %i : !tt.ptr<i32>, i32
    %o = tt.load %j : !tt.ptr<i32>
    %b = tt.bitcast %q : !tt.ptr<f32> -> !tt.ptr<i8>
    %s = tt.addptr %b, %o : !tt.ptr<i8>, i32
    %r = tt.bitcast %s : !tt.ptr<i8> -> !tt.ptr<f32>
    scf.yield %r : !tt.ptr<f32>
  }
  tt.return
}
