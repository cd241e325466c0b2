// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics -autodiff-normalize \
// RUN:   -autodiff-reverse -autodiff-unwrap-backward="wanted=0"

// expected-error @below {{is not what autodiff-wrap-function makes of a function}}
tt.func @copies(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
  %x = tt.load %p : !tt.ptr<f32>
  tt.store %q, %x : !tt.ptr<f32>
  tt.return
}

// -----

// expected-error @below {{depends on the order of elements that Triton leaves open}}
tt.func @joins(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) attributes {autodiff.function = (f32) -> f32, autodiff.ordered} {
  %x = tt.load %p : !tt.ptr<f32>
  tt.store %q, %x : !tt.ptr<f32>
  tt.return
}
