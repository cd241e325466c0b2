// RUN: triton-autodiff-opt %s -verify-diagnostics -autodiff-normalize

// expected-error @+1 {{no public function to differentiate}}
module {
  tt.func private @helper(%x: f32) { tt.return }
}
