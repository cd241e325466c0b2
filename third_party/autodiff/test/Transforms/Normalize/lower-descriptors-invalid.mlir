// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics -autodiff-lower-descriptors

tt.func @maximum(%x: !tt.ptr<f16>, %v: tensor<4xf16>, %n: i32) {
  %one = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %x, [%n], [%one] : <f16>, <4xf16>
  // expected-error @+2 {{this reduction through a tensor descriptor has no counterpart for pointers}}
  // expected-error @+1 {{failed to legalize operation 'tt.descriptor_reduce'}}
  tt.descriptor_reduce max, %d[%n], %v : !tt.tensordesc<4xf16>, tensor<4xf16>
  tt.return
}

// -----

// expected-error @+1 {{expected a tensor descriptor's sizes (i32) and strides (i64) to follow it}}
tt.func @bare(%d: !tt.tensordesc<4xf16>, %n: i32) {
  tt.return
}
