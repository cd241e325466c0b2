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

// -----

tt.func public @calls(%p: !tt.ptr<f32>, %x: f32) {
  %y = tt.call @m.again__fp32__(%x) : (f32) -> f32
  tt.store %p, %y : !tt.ptr<f32>
  tt.return
}
tt.func private @m.again__fp32__(%x: f32) -> f32 {
  // expected-error @+1 {{no form in Python for 'tt.call': the function calls itself}}
  %y = tt.call @m.again__fp32__(%x) : (f32) -> f32
  tt.return %y : f32
}
