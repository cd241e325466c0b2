// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics --autodiff-adopt-kernel

// expected-error @below {{there are 0 backward kernels; name one of them}}
module {
  tt.func @primal(%x: !tt.ptr<f32>) { tt.return }
}

// -----

tt.func @unscheduled(%p: !tt.ptr<f32>, %v: f32) attributes {autodiff.role = "backward"} {
  // expected-error @below {{needs a kernel of Triton's own operations (autodiff-lower makes it one)}}
  autodiff.accumulate %p, %v {argument = 0 : i32, site = 0 : i32} : !tt.ptr<f32>, f32
  tt.return
}
