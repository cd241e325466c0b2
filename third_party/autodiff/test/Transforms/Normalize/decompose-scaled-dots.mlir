// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics -autodiff-decompose-scaled-dots -canonicalize -cse | FileCheck %s

// A power of two for every 32 elements along K.
// CHECK-LABEL: tt.func @scaled(
// CHECK: %[[A:.*]] = tt.fp_to_fp %arg0 : tensor<16x64xf8E4M3FN> -> tensor<16x64xf32>
// CHECK: %[[N:.*]] = arith.extui %arg1 : tensor<16x2xi8> to tensor<16x2xi32>
// CHECK: arith.shli %[[N]]
// CHECK: %[[S:.*]] = tt.bitcast %{{.*}} : tensor<16x2xi32> -> tensor<16x2xf32>
// CHECK: %[[E:.*]] = tt.expand_dims %[[S]] {axis = 2 : i32} : tensor<16x2xf32> -> tensor<16x2x1xf32>
// CHECK: %[[R:.*]] = tt.broadcast %[[E]] : tensor<16x2x1xf32> -> tensor<16x2x32xf32>
// CHECK: %[[ALL:.*]] = tt.reshape %[[R]] : tensor<16x2x32xf32> -> tensor<16x64xf32>
// CHECK: %[[P:.*]] = arith.mulf %[[A]], %[[ALL]]
// CHECK: %[[LHS:.*]] = arith.truncf %[[P]] : tensor<16x64xf32> to tensor<16x64xbf16>
// CHECK: tt.dot %[[LHS]], %arg2, %arg3 : tensor<16x64xbf16> * tensor<64x32xbf16> -> tensor<16x32xf32>
tt.func @scaled(%a: tensor<16x64xf8E4M3FN>, %s: tensor<16x2xi8>, %b: tensor<64x32xbf16>, %c: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %d = tt.dot_scaled %a scale %s, %b, %c lhs = e4m3 rhs = bf16 {fastMath = false} : tensor<16x64xf8E4M3FN>, tensor<16x2xi8> * tensor<64x32xbf16> -> tensor<16x32xf32>
  tt.return %d : tensor<16x32xf32>
}

// -----

// Two elements of B share a byte along K; its scales have their rows last.
// CHECK-LABEL: tt.func @packed(
// CHECK: %[[PAIRS:.*]] = tt.join %{{.*}}, %{{.*}} : tensor<32x16xf32> -> tensor<32x16x2xf32>
// CHECK: %[[T:.*]] = tt.trans %[[PAIRS]] {order = array<i32: 0, 2, 1>}
// CHECK: %[[B:.*]] = tt.reshape %[[T]] : tensor<32x2x16xf32> -> tensor<64x16xf32>
// CHECK: %[[S:.*]] = tt.trans %{{.*}} {order = array<i32: 1, 0>} : tensor<16x64xf32> -> tensor<64x16xf32>
// CHECK: %[[P:.*]] = arith.mulf %[[B]], %[[S]]
// CHECK: %[[RHS:.*]] = arith.truncf %[[P]] : tensor<64x16xf32> to tensor<64x16xf16>
// CHECK: tt.dot %arg0, %[[RHS]], %arg3
tt.func @packed(%a: tensor<16x64xf16>, %b: tensor<32x16xi8>, %s: tensor<16x2xi8>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %d = tt.dot_scaled %a, %b scale %s, %c lhs = fp16 rhs = e2m1 {fastMath = false} : tensor<16x64xf16> * tensor<32x16xi8>, tensor<16x2xi8> -> tensor<16x16xf32>
  tt.return %d : tensor<16x16xf32>
}

// -----

tt.func @unknown(%a: tensor<16x64xi8>, %b: tensor<64x16xbf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  // expected-error @+1 {{microscaled products of 6-bit floats are not supported; use e4m3, e5m2 or e2m1}}
  %d = tt.dot_scaled %a, %b, %c lhs = e2m3 rhs = bf16 {fastMath = false} : tensor<16x64xi8> * tensor<64x16xbf16> -> tensor<16x16xf32>
  tt.return %d : tensor<16x16xf32>
}
