// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-lower-programs))' %s | FileCheck %s

// The first number runs fastest.
// CHECK-LABEL: tt.func @place(
// CHECK: %[[N:.*]] = arith.constant 4 : i32
// CHECK: %[[B:.*]] = autodiff.size <grid0>
// CHECK: %[[M:.*]] = arith.trunci %[[B]]
// CHECK: %[[ID:.*]] = tt.get_program_id x
// CHECK: %[[FAST:.*]] = arith.remsi %[[ID]], %[[N]]
// CHECK: %[[REST:.*]] = arith.divsi %[[ID]], %[[N]]
// CHECK: %[[SLOW:.*]] = arith.remsi %[[REST]], %[[M]]
// CHECK: tt.addptr %{{.*}}, %[[FAST]]
// CHECK: tt.addptr %{{.*}}, %[[SLOW]]
tt.func @place(%p: !tt.ptr<f32>) {
  %zero = arith.constant 0.0 : f32
  %n:2 = autodiff.programs [#autodiff.expr<4>, #autodiff.expr<grid0>] : i32, i32
  %q = tt.addptr %p, %n#0 : !tt.ptr<f32>, i32
  %r = tt.addptr %q, %n#1 : !tt.ptr<f32>, i32
  tt.store %r, %zero : !tt.ptr<f32>
  tt.return
}
