// RUN: triton-autodiff-opt %s -split-input-file -autodiff-promote -verify-diagnostics | FileCheck %s

// Types, constants and combiners; conversions go.
// CHECK-LABEL: tt.func @half(
// CHECK-SAME: %[[X:[^:]*]]: !tt.ptr<f64> {tt.divisibility = 16 : i32}, %[[A:[^:]*]]: f64, %{{.*}}: i32)
// CHECK-NOT: arith.extf
// CHECK-NOT: arith.truncf
// CHECK: arith.constant dense<0.0999755859375> : tensor<4xf64>
// CHECK: arith.constant 0xFFF0000000000000 : f64
// CHECK: %[[V:.*]] = tt.load %{{.*}} : tensor<4x!tt.ptr<f64>>
// CHECK: arith.addf %[[V]], %{{.*}} : tensor<4xf64>
// CHECK: "tt.reduce"
// CHECK: ^bb0(%{{.*}}: f64, %{{.*}}: f64):
// CHECK: tt.store %[[X]], %{{.*}} : !tt.ptr<f64>
tt.func @half(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %a: f32, %n: i32) {
  %tenth = arith.constant dense<0.1> : tensor<4xf16>
  %low = arith.constant 0xFF800000 : f32
  %range = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %base = tt.splat %x : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>>
  %p = tt.addptr %base, %range : tensor<4x!tt.ptr<f16>>, tensor<4xi32>
  %v = tt.load %p : tensor<4x!tt.ptr<f16>>
  %w = arith.addf %v, %tenth : tensor<4xf16>
  %e = arith.extf %w : tensor<4xf16> to tensor<4xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%l: f32, %r: f32):
    %m = arith.maximumf %l, %r : f32
    tt.reduce.return %m : f32
  }) : (tensor<4xf32>) -> f32
  %t = arith.maximumf %s, %low : f32
  %u = arith.mulf %t, %a : f32
  %h = arith.truncf %u : f32 to f16
  tt.store %x, %h : !tt.ptr<f16>
  tt.return
}

// -----

tt.func @bits(%x: f32, %p: !tt.ptr<i32>) {
  // expected-error @below {{reinterprets the bits of floating-point numbers}}
  %b = arith.bitcast %x : f32 to i32
  tt.store %p, %b : !tt.ptr<i32>
  tt.return
}
