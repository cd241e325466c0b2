// RUN: triton-autodiff-opt %s -verify-diagnostics -autodiff-reverse

tt.func @not_normalized(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %one = arith.constant 1.0 : f32
  %x = tt.load %px {autodiff.site = 0 : i32} : !tt.ptr<f32>
  // expected-error @+1 {{expected a loop that carries its condition and the number of iterations; run autodiff-normalize first}}
  %y = scf.while (%a = %x) : (f32) -> f32 {
    %c = arith.cmpf olt, %a, %one : f32
    scf.condition(%c) %a : f32
  } do {
  ^bb0(%b: f32):
    %d = math.exp %b : f32
    scf.yield %d : f32
  }
  tt.store %py, %y {autodiff.site = 1 : i32} : !tt.ptr<f32>
  tt.return
}
