// RUN: triton-autodiff-opt %s -triton-to-linalg="vector-bits=256 vector-registers=16" | FileCheck %s
// RUN: triton-autodiff-opt %s -triton-to-linalg -one-shot-bufferize | FileCheck %s --check-prefix=BUFFERS

// The loop's accumulator is updated where it lies.

// CHECK-LABEL: func.func @product
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (tensor<32x32xf32>) : i32
// CHECK:   linalg.generic {{.*}} outs({{.*}} : tensor<32x16xf32>)
// CHECK:     arith.extf %{{.*}} : f16 to f32
// CHECK:   scf.for {{.*}} iter_args(%{{.*}} = %[[ACC]])
// CHECK:     scf.for
// CHECK:       scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK-COUNT-4: vector.fma
// CHECK-COUNT-4: vector.transfer_write

// BUFFERS-LABEL: func.func @product
// BUFFERS: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (memref<32x32xf32>)
// BUFFERS-NOT: memref.copy
// BUFFERS: return
tt.func public @product(%x: !tt.ptr<f16>, %out: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %as = tt.splat %x : !tt.ptr<f16> -> tensor<32x16x!tt.ptr<f16>>
  %bs = tt.splat %x : !tt.ptr<f16> -> tensor<16x32x!tt.ptr<f16>>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
    %a = tt.load %as : tensor<32x16x!tt.ptr<f16>>
    %b = tt.load %bs : tensor<16x32x!tt.ptr<f16>>
    %d = tt.dot %a, %b, %acc : tensor<32x16xf16> * tensor<16x32xf16> -> tensor<32x32xf32>
    scf.yield %d : tensor<32x32xf32>
  }
  %os = tt.splat %out : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
  tt.store %os, %sum : tensor<32x32x!tt.ptr<f32>>
  tt.return
}
