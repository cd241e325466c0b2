// RUN: triton-autodiff-opt %s -triton-to-linalg -split-input-file | FileCheck %s

// Assembly that is not differentiated runs on the CPU, too: eight bits of a
// format of Triton's become a half, four packed elements at a time.

// CHECK-LABEL: func.func @fp8e4b15
// CHECK-NOT: elementwise_inline_asm
// CHECK: arith.andi
// CHECK: arith.bitcast %{{.*}} : i16 to f16
tt.func public @fp8e4b15(%p: !tt.ptr<i8>, %q: !tt.ptr<f16>) {
  %ps = tt.splat %p : !tt.ptr<i8> -> tensor<8x!tt.ptr<i8>>
  %qs = tt.splat %q : !tt.ptr<f16> -> tensor<8x!tt.ptr<f16>>
  %x = tt.load %ps : tensor<8x!tt.ptr<i8>>
  %y = tt.elementwise_inline_asm "{ .reg .b32 a<2>, b<2>; prmt.b32 a0, 0, $2, 0x5746; and.b32 b0, a0, 0x7f007f00; and.b32 b1, a0, 0x00ff00ff; and.b32 a1, a0, 0x00800080; shr.b32 b0, b0, 1; add.u32 b1, b1, a1; lop3.b32 $0, b0, 0x80008000, a0, 0xf8; shl.b32 $1, b1, 7; }" {constraints = "=r,=r,r", packed_element = 4 : i32, pure = true} %x : tensor<8xi8> -> tensor<8xf16>
  tt.store %qs, %y : tensor<8x!tt.ptr<f16>>
  tt.return
}

// -----

// A single instruction as PTX defines it: subnormal numbers are flushed, before
// and after.

// CHECK-LABEL: func.func @flush
// CHECK: math.absf
// CHECK: math.copysign
// CHECK: math.rsqrt
// CHECK: math.copysign
tt.func public @flush(%p: !tt.ptr<f32>, %x: f32) {
  %a = tt.elementwise_inline_asm "rsqrt.approx.ftz.f32 $0, $1;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %p, %a : !tt.ptr<f32>
  tt.return
}

// -----

// Rounding in a direction is the runtime's.

// CHECK-LABEL: func.func @directed
// CHECK: call @tad_add_rzf
tt.func public @directed(%p: !tt.ptr<f32>, %x: f32) {
  %a = tt.elementwise_inline_asm "add.rz.f32 $0, $1, $1;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %p, %a : !tt.ptr<f32>
  tt.return
}

// -----

// Another launch has always ended before.

// CHECK-LABEL: func.func @launches
// CHECK-NOT: griddepcontrol
tt.func public @launches(%p: !tt.ptr<f32>, %x: f32) {
  %i = tt.elementwise_inline_asm "griddepcontrol.wait; // dummy $0" {constraints = "=r", packed_element = 1 : i32, pure = false} -> i32
  tt.store %p, %x : !tt.ptr<f32>
  tt.return
}
