// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics -autodiff-reverse

module {
  // expected-error @+1 {{autodiff-reverse needs a kernel of one block (autodiff-normalize makes it so)}}
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
  %x = tt.load %px {autodiff.site = 0 : i32} : !tt.ptr<f32>
  %e = math.exp %x : f32
  tt.store %px, %e {autodiff.site = 1 : i32} : !tt.ptr<f32>
  // expected-error @+1 {{is not recorded for the backward}}
  %z = tt.load %px {autodiff.site = 2 : i32} : !tt.ptr<f32>
  tt.store %py, %z {autodiff.site = 3 : i32} : !tt.ptr<f32>
  tt.return
}
