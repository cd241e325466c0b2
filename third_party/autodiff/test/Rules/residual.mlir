// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// A residual is the identity: adjoints pass, and what needs the value takes it
// from behind the residual, where it may be reloaded.
// CHECK-LABEL: tt.func @identity_bwd(
// CHECK: %[[E:.*]] = math.exp
// CHECK: %[[R:.*]] = autodiff.residual %[[E]] id = 0
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[R]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @identity(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %e = math.exp %x : f32
  %y = autodiff.residual %e id = 0 : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// No derivative flows through a constant one.
// CHECK-LABEL: tt.func @constant_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: autodiff.accumulate %arg0, %[[T]] {
tt.func @constant(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %e = math.exp %x : f32
  %m = autodiff.residual %e id = 0 {constant} : f32
  %y = arith.subf %x, %m : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
