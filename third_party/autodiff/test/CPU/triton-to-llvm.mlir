// RUN: triton-autodiff-opt %s -triton-to-llvm | FileCheck %s

// An early return, a call and a tile on the stack, in the LLVM dialect.

// CHECK-LABEL: llvm.func @kernel
// CHECK: llvm.alloca
// CHECK: llvm.cond_br
// CHECK: llvm.intr.exp
// CHECK-NOT: unrealized_conversion_cast
// CHECK-NOT: llvm.func @twice
tt.func private @twice(%x: f32) -> f32 attributes {noinline = true} {
  %y = arith.addf %x, %x : f32
  tt.return %y : f32
}
tt.func public @kernel(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %done = arith.cmpi eq, %n, %c0 : i32
  cf.cond_br %done, ^exit, ^work
^exit:
  tt.return
^work:
  %range = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %q = tt.addptr %ps, %range : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %q : tensor<16x!tt.ptr<f32>>
  %e = math.exp %x : tensor<16xf32>
  %s = tt.load %p : !tt.ptr<f32>
  %t = tt.call @twice(%s) : (f32) -> f32
  %ts = tt.splat %t : f32 -> tensor<16xf32>
  %r = arith.mulf %e, %ts : tensor<16xf32>
  tt.store %q, %r : tensor<16x!tt.ptr<f32>>
  tt.return
}

// Blocks that nothing leads to do not matter.
// CHECK-LABEL: llvm.func @unreachable
// CHECK-NEXT: llvm.return
tt.func public @unreachable(%c: i1) {
  tt.return
^exit:
  tt.return
^body:
  cf.cond_br %c, ^exit, ^body
}
