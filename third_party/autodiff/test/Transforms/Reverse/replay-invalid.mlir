// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics -autodiff-replay

tt.func @reads_nothing(%n: i32, %p: !tt.ptr<f32>) attributes {autodiff.role = "backward"} {
  // expected-error @below {{reads what no loop of the backward records}}
  %x = autodiff.pop %n tape = 0 : i32 -> f32
  tt.store %p, %x : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @no_loop(%n: i32, %x: f32, %p: !tt.ptr<f32>) attributes {autodiff.role = "backward"} {
  // expected-error @below {{records outside of a loop}}
  autodiff.push %x at %n tape = 0 : f32, i32
  %y = autodiff.pop %n tape = 0 : i32 -> f32
  tt.store %p, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @computed(%n: i32, %x: f32, %p: !tt.ptr<f32>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (f32) : i32 {
    %b = arith.mulf %a, %a : f32
    // expected-error @below {{records what its loop does not carry}}
    autodiff.push %b at %i tape = 0 : f32, i32
    scf.yield %b : f32
  }
  %y = autodiff.pop %n tape = 0 : i32 -> f32
  tt.store %p, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @before(%n: i32, %x: f32, %p: !tt.ptr<f32>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  // expected-error @below {{reads what no loop before it records}}
  %y = autodiff.pop %n tape = 0 : i32 -> f32
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (f32) : i32 {
    autodiff.push %a at %i tape = 0 : f32, i32
    %b = arith.mulf %a, %y : f32
    scf.yield %b : f32
  }
  tt.store %p, %r : !tt.ptr<f32>
  tt.return
}
