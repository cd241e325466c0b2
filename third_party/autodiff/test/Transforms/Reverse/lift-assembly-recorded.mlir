// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-record-memory -autodiff-lift-assembly \
// RUN:   -autodiff-reverse="all-cotangents=false" | FileCheck %s

// One result of the assembly is the bits of the other one: both are read back, the first before
// the bits are taken.
// CHECK-LABEL: tt.func @twice_bwd(
// CHECK: %[[Y:.*]] = autodiff.pop {{.*}} tape = 0
// CHECK: tt.bitcast %[[Y]]
tt.func @twice(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %b = tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  %y:2 = tt.elementwise_inline_asm "mov.b32 $0, $2; mov.b32 $1, $2;" {constraints = "=r,=r,r", packed_element = 1 : i32, pure = false} %b : f32 -> f32, i32
  %f = arith.sitofp %y#1 : i32 to f32
  %s = arith.addf %y#0, %f : f32
  tt.store %py, %s : !tt.ptr<f32>
  tt.return
}
