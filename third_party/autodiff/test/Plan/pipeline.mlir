// RUN: triton-autodiff-opt --autodiff-differentiate=until=autodiff-reverse %s | FileCheck %s
// RUN: not triton-autodiff-opt --autodiff-differentiate=until=reverse %s 2>&1 | FileCheck --check-prefix=ERROR %s

// As far as one pass of the pipeline, and what cleans up after it. Gradients are
// then still abstract, and nothing is computed in vain.
// CHECK-LABEL: tt.func @scale_bwd(
// CHECK-NOT: tt.load %arg0
// CHECK: autodiff.upstream
// CHECK: autodiff.accumulate
// ERROR: error: no pass of the pipeline is reverse
tt.func @scale(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %two = arith.constant 2.0 : f32
  %a = tt.load %x : !tt.ptr<f32>
  %b = arith.mulf %a, %two : f32
  tt.store %y, %b : !tt.ptr<f32>
  tt.return
}
