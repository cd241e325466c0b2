// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics -autodiff-normalize

// expected-error @+1 {{autodiff-normalize needs a kernel: there is no public function to differentiate}}
module {
  tt.func private @helper(%x: f32) { tt.return }
}

// -----

// expected-error @+1 {{a kernel returns nothing}}
tt.func public @result(%x: f32) -> f32 { tt.return %x : f32 }

// -----

// expected-error @+1 {{argument 0 of a kernel should be a number, a pointer to numbers or a tensor descriptor, got 'tensor<4x!tt.ptr<f32>>'}}
tt.func public @pointers(%x: tensor<4x!tt.ptr<f32>>) { tt.return }
