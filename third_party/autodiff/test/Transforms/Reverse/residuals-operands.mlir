// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-mark-residuals -autodiff-reverse \
// RUN:   -canonicalize -cse -autodiff-choose-residuals | FileCheck %s

// What has no operands costs nothing that is known.
// CHECK-LABEL: tt.func @processor_bwd(
// CHECK: tt.elementwise_inline_asm "mov.u32 $0, %smid;"
tt.func @processor(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %id = tt.elementwise_inline_asm "mov.u32 $0, %smid;" {constraints = "=r", packed_element = 1 : i32, pure = true} -> i32
  %w = arith.sitofp %id : i32 to f32
  %y = arith.mulf %x, %w : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
