// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics -autodiff-promote

// The bits of a double are others, whoever asks for them.
tt.func @bits(%px: !tt.ptr<f32>, %py: !tt.ptr<i32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @below {{reinterprets the bits of floating-point numbers, which differ in double precision}}
  %b = arith.bitcast %x : f32 to i32
  tt.store %py, %b : !tt.ptr<i32>
  tt.return
}

// -----

tt.func @library(%px: !tt.ptr<f32>, %py: !tt.ptr<i32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @below {{reinterprets the bits of floating-point numbers, which differ in double precision}}
  %b = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_float_as_int"} : (f32) -> i32
  tt.store %py, %b : !tt.ptr<i32>
  tt.return
}
