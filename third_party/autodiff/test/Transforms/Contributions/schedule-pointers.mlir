// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics \
// RUN:   -autodiff-normalize -autodiff-reverse -autodiff-lower-accumulates

// The gradient's buffer may have wider elements: bytes cannot be counted in it.
tt.func @bytes(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %o: i32) {
  %b = tt.bitcast %px : !tt.ptr<f32> -> !tt.ptr<i8>
  %q = tt.addptr %b, %o : !tt.ptr<i8>, i32
  // expected-error @+1 {{the gradient's address cannot be formed as this pointer is}}
  %p = tt.bitcast %q : !tt.ptr<i8> -> !tt.ptr<f32>
  %x = tt.load %p : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.return
}
