// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   "-autodiff-reverse=all-wanted=false wanted=0 all-cotangents=false cotangents=2" \
// RUN:   -canonicalize -cse | FileCheck %s

// Only what lies between a wanted input and an output with a cotangent is
// differentiated: the gradient of %pw and the cotangent of %pz are not asked
// for, and the logarithm, which only they need, costs nothing.
// CHECK-LABEL: tt.func @asked_bwd(
// CHECK-SAME: %arg0: !tt.ptr<f32> {{{[^}]*}}autodiff.wanted}
// CHECK-NOT: math.log
// CHECK-NOT: upstream %arg3
// CHECK: %[[W:.*]] = tt.load %arg1
// CHECK: %[[T:.*]] = autodiff.upstream %arg2
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[W]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
// CHECK-NOT: autodiff.accumulate
tt.func @asked(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pz: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = arith.mulf %x, %w : f32
  tt.store %py, %y : !tt.ptr<f32>
  %z = math.log %y : f32
  tt.store %pz, %z : !tt.ptr<f32>
  tt.return
}

// -----

// An unknown operation on values that carry no derivative is no obstacle.
// CHECK-LABEL: tt.func @inactive_bwd(
// CHECK: autodiff.accumulate %arg0, %{{.*}} {
tt.func @inactive(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %v = math.log1p %w : f32
  %y = arith.mulf %x, %v : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// The exponent of a float is constant between powers of two: scales of
// microscaled formats carry no derivative.
// CHECK-LABEL: tt.func @exponent_bwd(
// CHECK: %[[S:.*]] = tt.bitcast %{{.*}} : i32 -> f32
// CHECK: %[[T:.*]] = autodiff.upstream %arg2
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[S]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @exponent(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %up = arith.constant 0x7fffff : i32
  %c23 = arith.constant 23 : i32
  %c254 = arith.constant 254 : i32
  %x = tt.load %px : !tt.ptr<f32>
  %b = tt.bitcast %x : f32 -> i32
  %r = arith.addi %b, %up : i32
  %e = arith.shrui %r, %c23 : i32
  %n = arith.subi %c254, %e : i32
  %m = arith.shli %n, %c23 : i32
  %s = tt.bitcast %m : i32 -> f32
  %y = arith.mulf %x, %s : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
