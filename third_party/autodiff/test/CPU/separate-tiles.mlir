// RUN: triton-autodiff-opt %s -pass-pipeline='builtin.module(func.func(cpu-separate-tiles))' | FileCheck %s

// Two tiles of one empty tensor are two buffers.

// CHECK-LABEL: func.func @tiles
// CHECK-NOT:   tensor.empty
// CHECK:       %[[A:.*]] = bufferization.alloc_tensor()
// CHECK:       linalg.fill {{.*}} outs(%[[A]] :
// CHECK:       %[[B:.*]] = bufferization.alloc_tensor()
// CHECK:       linalg.fill {{.*}} outs(%[[B]] :
func.func @tiles(%x: f32, %y: f32) -> (tensor<4xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<4xf32>
  %a = linalg.fill ins(%x : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %b = linalg.fill ins(%y : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}
