// RUN: triton-autodiff-opt %s -split-input-file -autodiff-write-markers=calls=true | FileCheck %s

// What stops derivatives is assembly that is just a comment. No register has
// eight bits, and integers have no derivative.
// CHECK-LABEL: tt.func @stops(
// CHECK: tt.elementwise_inline_asm "// autodiff.stop_gradient" {constraints = "=f,0", packed_element = 1 : i32, pure = true} %arg0
// CHECK: tt.elementwise_inline_asm "// autodiff.stop_gradient" {constraints = "=h,0"
// CHECK: %[[WIDE:.*]] = tt.fp_to_fp %arg2
// CHECK: tt.elementwise_inline_asm "// autodiff.stop_gradient" {constraints = "=h,0", packed_element = 1 : i32, pure = true} %[[WIDE]]
// CHECK-NOT: stop_gradient
tt.func @stops(%a: f32, %b: tensor<4xf16>, %c: tensor<4xf8E5M2>, %n: i32) -> (f32, tensor<4xf16>, tensor<4xf8E5M2>, i32) {
  %1 = autodiff.stop_gradient %a : f32
  %2 = autodiff.stop_gradient %b : tensor<4xf16>
  %3 = autodiff.stop_gradient %c : tensor<4xf8E5M2>
  %4 = autodiff.stop_gradient %n : i32
  tt.return %1, %2, %3, %4 : f32, tensor<4xf16>, tensor<4xf8E5M2>, i32
}

// -----

// AMD's assembler has other comments and registers.
// CHECK-LABEL: tt.func @amd(
// CHECK: "; autodiff.stop_gradient" {constraints = "=v,0"
module attributes {autodiff.target = "gfx942"} {
  tt.func @amd(%a: f64) -> f64 {
    %1 = autodiff.stop_gradient %a : f64
    tt.return %1 : f64
  }
}

// -----

// A pass stops the first derivative where it cancels. The value moves.
// CHECK-LABEL: tt.func @first(
// CHECK-NEXT: tt.return %arg0
tt.func @first(%a: f32) -> f32 {
  %1 = autodiff.stop_gradient %a {autodiff.first_order} : f32
  tt.return %1 : f32
}

// -----

// What is not known to be the derivative is not differentiated again.
// CHECK-LABEL: tt.func @inexact(
// CHECK: %[[E:.*]] = math.exp %arg0
// CHECK: %[[Y:.*]] = tt.call @autodiff.custom_once.value.0(%[[E]], %arg0)
// CHECK: tt.return %[[Y]]
module {
tt.func @inexact(%x: f32) -> f32 {
  %s = autodiff.stop_gradient %x {autodiff.first_order} : f32
  %e = math.exp %s : f32
  %y = autodiff.custom_vjp "f" %e : f32 of %x : f32 -> f32 {
  ^bb0(%c: f32):
    %g = arith.mulf %c, %e : f32
    autodiff.yield %g : f32
  } {call = 0 : i32}
  tt.return %y : f32
}
}

// -----

// What is, is a call as Triton's tracer leaves it.
// CHECK-LABEL: tt.func @exact(
// CHECK: %[[E:.*]] = math.exp %arg0
// CHECK: %[[V:.*]] = tt.elementwise_inline_asm "// autodiff.inside"{{.*}} %[[E]]
// CHECK: %[[C:.*]] = tt.elementwise_inline_asm "// autodiff.cotangent 0"{{.*}} %[[V]]
// CHECK: %[[G:.*]] = arith.mulf %[[C]], %[[V]]
// CHECK: %[[T:.*]] = tt.elementwise_inline_asm "// autodiff.tangent 0"{{.*}} %arg0
// CHECK: %[[U:.*]] = arith.mulf %[[T]], %[[V]]
// CHECK: tt.call @autodiff.custom_exact.f.0(%[[V]], %arg0, %[[G]], %[[U]])
module {
tt.func @exact(%x: f32) -> f32 {
  %s = autodiff.stop_gradient %x {autodiff.first_order} : f32
  %e = math.exp %s : f32
  %y = autodiff.custom_vjp exact "f" %e : f32 of %x : f32 -> f32 {
  ^bb0(%c: f32):
    %g = arith.mulf %c, %e : f32
    autodiff.yield %g : f32
  } forward {
  ^bb0(%t: f32):
    %u = arith.mulf %t, %e : f32
    autodiff.yield %u : f32
  } {call = 0 : i32}
  tt.return %y : f32
}
}
