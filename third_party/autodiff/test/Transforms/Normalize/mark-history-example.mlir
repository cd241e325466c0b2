// RUN: triton-autodiff-opt %s -autodiff-mark-history | FileCheck %s

// The example of docs/passes.
// CHECK: tt.func @square(
// CHECK-SAME: attributes {autodiff.history = [{argument = 1 : i32, inputs = array<i32: 0>}, {argument = 2 : i32, inputs = array<i32>}]} {
tt.func @square(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pz: !tt.ptr<f32>) {
  %zero = arith.constant 0.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %y = arith.mulf %x, %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  %positive = arith.cmpf ogt, %x, %zero : f32
  %z = arith.uitofp %positive : i1 to f32
  tt.store %pz, %z : !tt.ptr<f32>
  tt.return
}
