// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-push-tangents=wanted=0,1 -canonicalize -cse | FileCheck %s

// A select chooses tangents as it chooses values.
// CHECK-LABEL: tt.func @choice_jvp(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[DX:.*]] = tt.load %arg3 :
// CHECK: %[[C:.*]] = arith.cmpf une, %[[X]], %[[X]]
// CHECK: %[[DY:.*]] = arith.select %[[C]], %{{.*}}, %[[DX]]
// CHECK-NOT: arith.select
// CHECK: tt.store %{{.*}}, %[[DY]]
tt.func @choice(%px: !tt.ptr<f32>, %pt: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %zero = arith.constant 0.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %c = arith.cmpf une, %x, %x : f32
  %y = arith.select %c, %zero, %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A product that is zero where its factor t is: so is its tangent where it is
// NaN, if t does not move there.
// CHECK-LABEL: tt.func @guard_jvp(
// CHECK: %[[T:.*]] = tt.load %arg1 {
// CHECK: %[[DT:.*]] = tt.load %arg4 :
// CHECK: %[[DP:.*]] = arith.addf
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO:.*]] :
// CHECK: %[[B:.*]] = arith.andi %[[Z]], %{{.*}} :
// CHECK: %[[N:.*]] = arith.cmpf une, %[[DP]], %[[DP]]
// CHECK: %[[ZN:.*]] = arith.andi %[[Z]], %[[N]]
// CHECK: %[[S:.*]] = arith.cmpf oeq, %[[DT]], %[[ZERO]]
// CHECK: %[[SN:.*]] = arith.andi %[[S]], %[[ZN]]
// CHECK: %[[G:.*]] = arith.select %[[SN]], %[[ZERO]], %[[DP]]
// CHECK: %[[DY:.*]] = arith.select %[[B]], %[[ZERO]], %[[G]]
// CHECK: tt.store %arg5, %[[DY]]
tt.func @guard(%px: !tt.ptr<f32>, %pt: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %zero = arith.constant 0.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %t = tt.load %pt : !tt.ptr<f32>
  %p = arith.mulf %t, %x : f32
  %z = arith.cmpf oeq, %t, %zero : f32
  %n = arith.cmpf une, %p, %p : f32
  %b = arith.andi %z, %n : i1
  %y = arith.select %b, %zero, %p : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// The same, the other way round.
// CHECK-LABEL: tt.func @otherwise_jvp(
// CHECK: %[[DT:.*]] = tt.load %arg4 :
// CHECK: %[[DP:.*]] = arith.addf
// CHECK: %[[Z:.*]] = arith.cmpf une, %{{.*}}, %[[ZERO:.*]] :
// CHECK: %[[B:.*]] = arith.ori %[[Z]], %{{.*}} :
// CHECK: %[[N:.*]] = arith.cmpf oeq, %[[DP]], %[[DP]]
// CHECK: %[[ZN:.*]] = arith.ori %[[Z]], %[[N]]
// CHECK: %[[S:.*]] = arith.cmpf une, %[[DT]], %[[ZERO]]
// CHECK: %[[SN:.*]] = arith.ori %[[S]], %[[ZN]]
// CHECK: %[[G:.*]] = arith.select %[[SN]], %[[DP]], %[[ZERO]]
// CHECK: %[[DY:.*]] = arith.select %[[B]], %[[G]], %[[ZERO]]
// CHECK: tt.store %arg5, %[[DY]]
tt.func @otherwise(%px: !tt.ptr<f32>, %pt: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %zero = arith.constant 0.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %t = tt.load %pt : !tt.ptr<f32>
  %p = arith.mulf %t, %x : f32
  %z = arith.cmpf une, %t, %zero : f32
  %n = arith.cmpf oeq, %p, %p : f32
  %b = arith.ori %z, %n : i1
  %y = arith.select %b, %p, %zero : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
