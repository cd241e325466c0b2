// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-load-late))' %s | FileCheck %s

// Each tile is loaded, and narrowed, for the product that it is of: the second
// one takes the memory of the first.
// CHECK-LABEL: tt.func @products(
// CHECK: %[[A:.*]] = tt.load %arg0
// CHECK: %[[B:.*]] = tt.load %arg1
// CHECK: %[[NARROW:.*]] = arith.truncf %[[B]]
// CHECK: %[[AB:.*]] = tt.dot %[[A]], %[[NARROW]]
// CHECK: %[[C:.*]] = tt.load %arg2
// CHECK: %[[T:.*]] = tt.trans %[[C]]
// CHECK: tt.dot %[[A]], %[[T]], %[[AB]]
tt.func @products(%pa: tensor<16x16x!tt.ptr<f16>>, %pb: tensor<16x16x!tt.ptr<f32>>, %pc: tensor<16x16x!tt.ptr<f16>>, %none: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %a = tt.load %pa : tensor<16x16x!tt.ptr<f16>>
  %c = tt.load %pc : tensor<16x16x!tt.ptr<f16>>
  %t = tt.trans %c {order = array<i32: 1, 0>} : tensor<16x16xf16> -> tensor<16x16xf16>
  %b = tt.load %pb : tensor<16x16x!tt.ptr<f32>>
  %narrow = arith.truncf %b : tensor<16x16xf32> to tensor<16x16xf16>
  %ab = tt.dot %a, %narrow, %none : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %y = tt.dot %a, %t, %ab : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  tt.return %y : tensor<16x16xf32>
}

// A load stays in front of what may write there, a volatile one where it is,
// and one for a loop in front of the loop.
// CHECK-LABEL: tt.func @stays(
// CHECK: %[[V:.*]] = tt.load %arg0 {isVolatile = true}
// CHECK-NEXT: %[[X:.*]] = tt.load %arg0
// CHECK-NEXT: tt.store
// CHECK: %[[Y:.*]] = tt.load %arg1
// CHECK-NEXT: scf.for
// CHECK: arith.addf %{{.*}}, %[[Y]]
// CHECK: arith.mulf %{{.*}}, %[[X]]
// CHECK: arith.mulf %{{.*}}, %[[V]]
tt.func @stays(%px: tensor<16x!tt.ptr<f32>>, %py: tensor<16x!tt.ptr<f32>>, %n: i32) -> tensor<16xf32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %z = arith.constant dense<1.0> : tensor<16xf32>
  %v = tt.load %px {isVolatile = true} : tensor<16x!tt.ptr<f32>>
  %x = tt.load %px : tensor<16x!tt.ptr<f32>>
  tt.store %px, %z : tensor<16x!tt.ptr<f32>>
  %y = tt.load %py : tensor<16x!tt.ptr<f32>>
  %w = arith.mulf %z, %z : tensor<16xf32>
  %s = scf.for %i = %zero to %n step %one iter_args(%sum = %w) -> tensor<16xf32> : i32 {
    %next = arith.addf %sum, %y : tensor<16xf32>
    scf.yield %next : tensor<16xf32>
  }
  %p = arith.mulf %s, %x : tensor<16xf32>
  %q = arith.mulf %p, %v : tensor<16xf32>
  tt.return %q : tensor<16xf32>
}

// It stays in front of a barrier: behind it, another thread may store there.
// CHECK-LABEL: tt.func @barrier(
// CHECK: tt.load
// CHECK-NEXT: gpu.barrier
tt.func @barrier(%p: tensor<16x!tt.ptr<f32>>, %q: tensor<16x!tt.ptr<f32>>) {
  %x = tt.load %p : tensor<16x!tt.ptr<f32>>
  gpu.barrier
  tt.store %q, %x : tensor<16x!tt.ptr<f32>>
  tt.return
}
