// RUN: triton-autodiff-opt %s -split-input-file -autodiff-write-markers | FileCheck %s

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
