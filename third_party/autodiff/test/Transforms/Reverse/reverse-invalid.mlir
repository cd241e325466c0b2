// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics -autodiff-reverse

// expected-error @+1 {{expected a kernel of one block; run autodiff-normalize first}}
module {
  tt.func @early(%c: i1) {
    cf.cond_br %c, ^exit, ^body
  ^exit:
    tt.return
  ^body:
    tt.return
  }
}

// -----

// Without its record, the backward would load what is there in the end.
tt.func @unrecorded(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %e = math.exp %x : f32
  tt.store %px, %e : !tt.ptr<f32>
  // expected-error @+1 {{is not recorded for the backward}}
  %z = tt.load %px : !tt.ptr<f32>
  tt.store %py, %z : !tt.ptr<f32>
  tt.return
}
