// RUN: triton-autodiff-opt %s -autodiff-trim-operands | FileCheck %s

// A check of what no kernel reads is dropped. But that all of an argument is
// overwritten is why its gradient starts from zero, read or not.
// CHECK: autodiff.plan {
// CHECK-NEXT: autodiff.check <cotangent 0> <bijective 0
// CHECK-NEXT: }
autodiff.plan {
  autodiff.check <cotangent 0> <bijective 0 at 0 [<1 x [<1 x pids(pid0)>]>]>
  autodiff.check <cotangent 1> <distinct 1 at 0 [<1 x [<1 x pids(pid0)>]>]>
}
tt.func public @k(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) { tt.return }
tt.func @k_bwd(%dx: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 0>},
               %cx: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<cotangent 0>},
               %cy: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<cotangent 1>})
    attributes {autodiff.role = "backward"} {
  %one = arith.constant 1.0 : f32
  tt.store %dx, %one : !tt.ptr<f32>
  tt.return
}
