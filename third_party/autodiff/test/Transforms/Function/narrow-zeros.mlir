// RUN: triton-autodiff-opt %s -autodiff-narrow-zeros | FileCheck %s

// Zero in place of 0 · ∞, and of nothing else. A select of the user's stays.
// CHECK-LABEL: tt.func @quotient(
// CHECK: %[[P:.*]] = arith.divf
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %arg0
// CHECK: %[[N:.*]] = arith.cmpf une, %[[P]], %[[P]]
// CHECK: %[[B:.*]] = arith.andi %[[Z]], %[[N]]
// CHECK: arith.select %[[B]], %{{.*}}, %[[P]] : f32
// CHECK: %[[L:.*]] = arith.cmpf une, %arg0
// CHECK: %[[M:.*]] = arith.cmpf oeq, %[[P]], %[[P]]
// CHECK: %[[E:.*]] = arith.ori %[[L]], %[[M]]
// CHECK: arith.select %[[E]], %[[P]], %{{.*}} : f32
// CHECK: arith.select %[[Z]], %{{.*}}, %[[P]] : f32
tt.func @quotient(%t: f32, %x: f32) -> (f32, f32, f32) {
  %zero = arith.constant 0.0 : f32
  %0 = arith.divf %t, %x : f32
  %1 = arith.cmpf oeq, %t, %zero : f32
  %2 = arith.select %1, %zero, %0 {autodiff.unless_zero} : f32
  %3 = arith.cmpf une, %t, %zero : f32
  %4 = arith.select %3, %0, %zero {autodiff.unless_zero} : f32
  %5 = arith.select %1, %zero, %0 : f32
  tt.return %2, %4, %5 : f32, f32, f32
}
