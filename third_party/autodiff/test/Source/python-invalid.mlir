// RUN: triton-autodiff-translate --ttir-to-python -verify-diagnostics -split-input-file %s

tt.func public @half(%p: !tt.ptr<f16>, %x: f16) {
  // expected-error @+1 {{no form in Python for 'arith.divf'}}
  %y = arith.divf %x, %x : f16
  tt.store %p, %y : !tt.ptr<f16>
  tt.return
}

// -----

// expected-error @below {{it takes a descriptor without its shape and strides}}
tt.func public @descriptor(%x: !tt.tensordesc<tensor<16x16xf16>>, %n: i32) {
  tt.return
}

// -----

tt.func public @columns(%x: !tt.ptr<f16>, %n: i32, %s: i64) {
  // expected-error @+1 {{no form in Python for 'tt.make_tensor_descriptor'}}
  %d = tt.make_tensor_descriptor %x, [%n, %n], [%s, %s] : <f16>, <tensor<16x16xf16>>
  tt.return
}
