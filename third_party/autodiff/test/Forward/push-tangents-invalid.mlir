// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics \
// RUN:   -autodiff-normalize -autodiff-push-tangents -o /dev/null

// What has no way forward is an error, never a zero.

tt.func @no_rule(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{no derivative rule for 'math.clampf', which lies between a differentiated input and an output}}
  %y = math.clampf %x to [%x, %x] : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @no_way_forward(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %e = math.exp %x : f32
  %s = autodiff.stop_gradient %e : f32
  // expected-error @+1 {{no forward-mode rule for f, of which there is only a pullback: a derivative of one's own need not be the transpose of a tangent}}
  %y = autodiff.custom_vjp "f" %s : f32 of %x : f32 -> f32 {
  ^bb0(%t: f32):
    %d = arith.mulf %t, %x : f32
    autodiff.yield %d : f32
  } {call = 0 : i32}
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @extremum(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %true = arith.constant true
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{no forward-mode rule for 'tl.atomic_max' on a differentiated tensor; floating-point add has one}}
  %old = tt.atomic_rmw max, acq_rel, gpu, %py, %x, %true : (!tt.ptr<f32>, f32, i1) -> f32
  tt.return
}

// -----

// expected-error @below {{has its tangents already, in 'again_jvp'}}
tt.func @again(%px: !tt.ptr<f32>) {
  tt.return
}
tt.func @again_jvp(%px: !tt.ptr<f32>) attributes {autodiff.role = "tangent"} {
  tt.return
}
