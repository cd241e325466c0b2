// RUN: triton-autodiff-opt -autodiff-verify-writes -split-input-file %s | FileCheck %s

// Each of the reasons: a check, room for a reach, a mask, a place of its own,
// and outputs that a forward writes as the user's kernel does.
// CHECK: autodiff.launch @k_fwd
// CHECK: tt.func @k_bwd(
module {
  autodiff.plan {
    autodiff.buffer 0 <saved "saved0" : f32, 1>
    autodiff.gradient <store 0 : f32 init = none returned = true checks [<bijective 0 at 0 []>]>
    autodiff.gradient <atomic 1 : f32 init = zero returned = true reach [<0 [] exact = true>]>
    autodiff.gradient <atomic 2 : f32 init = zero returned = true confined = sums margin = 0>
    autodiff.gradient <atomic 3 : f32 init = cotangent returned = false>
    autodiff.launch @k_fwd
    autodiff.launch @k_bwd
  }
  tt.func @k_fwd(%y: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 3>}, %s: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<buffer 0>}) attributes {autodiff.role = "forward"} {
    %one = arith.constant 1.0 : f32
    tt.store %y, %one : !tt.ptr<f32>
    tt.store %s, %one : !tt.ptr<f32>
    tt.return
  }
  tt.func @k_bwd(%a: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 0>}, %b: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 1>}, %c: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 2>}, %d: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 3>}, %m: i1 {autodiff.operand = #autodiff.operand<argument 4>}) attributes {autodiff.role = "backward"} {
    %one = arith.constant 1.0 : f32
    %zero = arith.constant 0.0 : f32
    tt.store %a, %one : !tt.ptr<f32>
    %0 = tt.atomic_rmw fadd, relaxed, gpu, %b, %one : (!tt.ptr<f32>, f32) -> f32
    %1 = tt.atomic_rmw fadd, relaxed, gpu, %c, %one, %m : (!tt.ptr<f32>, f32, i1) -> f32
    %2 = tt.atomic_rmw exch, relaxed, gpu, %d, %zero : (!tt.ptr<f32>, f32) -> f32
    tt.return
  }
}
