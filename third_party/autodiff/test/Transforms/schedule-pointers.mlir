// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics \
// RUN:   -autodiff-normalize -autodiff-reverse -autodiff-schedule

// The gradient's address is formed as the primal's is.
tt.func @chosen(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1, %o: i32) {
  // expected-error @+1 {{this pointer is chosen by control flow, so the gradient's address cannot be formed}}
  %p = scf.if %c -> !tt.ptr<f32> {
    tt.print "offset" {hex = false, isSigned = array<i32: 1>} : %o : i32
    %q = tt.addptr %px, %o : !tt.ptr<f32>, i32
    scf.yield %q : !tt.ptr<f32>
  } else {
    scf.yield %px : !tt.ptr<f32>
  }
  %x = tt.load %p : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.return
}
