// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics -autodiff-wrap-function="wanted=0"

tt.func private @inner(%p: !tt.ptr<f32>, %x: f32) {
  // expected-error @below {{writes to memory here ('tl.store'): let it return the value}}
  tt.store %p, %x : !tt.ptr<f32>
  tt.return
}
tt.func @stores(%x: f32, %p: !tt.ptr<f32>) -> f32 {
  tt.call @inner(%p, %x) : (!tt.ptr<f32>, f32) -> ()
  tt.return %x : f32
}

// -----

// expected-error @below {{argument 0 is no float, and has no gradient}}
tt.func @counts(%n: i32) -> f32 {
  %0 = arith.sitofp %n : i32 to f32
  tt.return %0 : f32
}

// -----

// expected-error @below {{returns no float, and has no derivative}}
tt.func @truncates(%x: f32) -> i32 {
  %0 = arith.fptosi %x : f32 to i32
  tt.return %0 : i32
}

// -----

// expected-error @below {{nothing says what it returns (a call of "autodiff.yield")}}
tt.func @nothing() {
  tt.return
}

// -----

// expected-error @below {{there is no public function to differentiate}}
module {
}
