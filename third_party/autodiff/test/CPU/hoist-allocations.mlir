// RUN: triton-autodiff-opt %s -pass-pipeline='builtin.module(func.func(cpu-hoist-allocations))' | FileCheck %s

// The third buffer takes the place of the first one, which nothing uses any
// more; not that of the second one, which is read later. Nor does a buffer that
// one operation begins and another one reads for the last time.

// CHECK-LABEL: func.func @shared(
// CHECK-DAG:     %[[A:.*]] = memref.alloca() {alignment = 64 : i64} : memref<4xf32>
// CHECK-DAG:     %[[B:.*]] = memref.alloca() {alignment = 64 : i64} : memref<4xf32>
// CHECK-NOT:     memref.alloc
// CHECK:         memref.store %{{.*}}, %[[FIRST:.*]][%c0]
// CHECK:         memref.copy %[[FIRST]], %[[SECOND:.*]] :
// CHECK:         memref.store %{{.*}}, %[[FIRST]][%c0]
// CHECK:         memref.load %[[SECOND]][%c0]
// CHECK:         memref.load %[[FIRST]][%c0]
func.func @shared(%x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : memref<4xf32>
  memref.store %x, %a[%c0] : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  memref.copy %a, %b : memref<4xf32> to memref<4xf32>
  %c = memref.alloc() : memref<4xf32>
  memref.store %x, %c[%c0] : memref<4xf32>
  %y = memref.load %b[%c0] : memref<4xf32>
  %z = memref.load %c[%c0] : memref<4xf32>
  %sum = arith.addf %y, %z : f32
  return %sum : f32
}

// What a loop around uses, or carries on, is in use throughout.

// CHECK-LABEL: func.func @loops(
// CHECK-COUNT-4: memref.alloca()
// CHECK-NOT:     memref.alloc
func.func @loops(%x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() : memref<4xf32>
  memref.store %x, %a[%c0] : memref<4xf32>
  %carried = memref.alloc() : memref<4xf32>
  %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%m = %carried) -> memref<4xf32> {
    %y = memref.load %a[%i] : memref<4xf32>
    %b = memref.alloc() : memref<4xf32>
    memref.store %y, %b[%i] : memref<4xf32>
    %z = memref.load %b[%i] : memref<4xf32>
    %n = memref.alloc() : memref<4xf32>
    memref.store %z, %n[%i] : memref<4xf32>
    scf.yield %n : memref<4xf32>
  }
  %r = memref.load %last[%c0] : memref<4xf32>
  return %r : f32
}
