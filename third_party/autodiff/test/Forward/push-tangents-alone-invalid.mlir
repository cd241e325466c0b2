// RUN: triton-autodiff-opt %s -verify-diagnostics -autodiff-push-tangents

// What a function returns would have a tangent that nobody gets.
// expected-error @below {{a kernel returns nothing: store the results}}
tt.func @returns(%px: !tt.ptr<f32>) -> f32 {
  %x = tt.load %px : !tt.ptr<f32>
  tt.return %x : f32
}
