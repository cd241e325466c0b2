// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-push-tangents -canonicalize -cse | FileCheck %s

// A loop carries each value with its tangent; counters have none.
// CHECK-LABEL: tt.func @loop_jvp(
// CHECK: scf.for %{{.*}} iter_args(%[[V:.*]] = %[[X:.*]], %[[DV:.*]] = %[[DX:.*]]) -> (f32, f32)
// CHECK: %[[N:.*]] = arith.mulf %[[V]], %[[V]] :
// CHECK: %[[P:.*]] = arith.mulf %[[DV]], %[[V]] :
// CHECK: %[[DN:.*]] = arith.addf %[[P]], %[[P]] :
// CHECK: scf.yield %[[N]], %[[DN]] : f32, f32
tt.func @loop(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = tt.load %px : !tt.ptr<f32>
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> (f32) : i32 {
    %s = arith.mulf %v, %v : f32
    scf.yield %s : f32
  }
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// So does a branch yield it: zero from the side where the value is a constant.
// CHECK-LABEL: tt.func @branch_jvp(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[R:.*]]:2 = scf.if %{{.*}} -> (f32, f32) {
// CHECK: scf.yield %{{.*}}, %{{.*}} : f32, f32
// CHECK: } else {
// CHECK: scf.yield %{{.*}}, %[[ZERO]] : f32, f32
// CHECK: tt.store %{{.*}}, %[[R]]#1 :
tt.func @branch(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1) {
  %one = arith.constant 1.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %y = scf.if %c -> (f32) {
    %s = arith.mulf %x, %x : f32
    scf.yield %s : f32
  } else {
    scf.yield %one : f32
  }
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// And a loop that ends when it finds out.
// CHECK-LABEL: tt.func @while_jvp(
// CHECK: scf.while
// CHECK: scf.condition(%{{.*}}) %{{.*}}, %[[A:.*]], %[[DA:.*]] : i32, f32, f32
// CHECK: ^bb0(%{{.*}}: i32, %[[V:.*]]: f32, %[[DV:.*]]: f32):
// CHECK: %[[C:.*]] = math.cos %[[V]] :
// CHECK: arith.mulf %[[DV]], %[[C]] :
tt.func @while(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %limit = arith.constant 1.0e-01 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %y = scf.while (%a = %x) : (f32) -> f32 {
    %c = arith.cmpf ogt, %a, %limit : f32
    scf.condition(%c) %a : f32
  } do {
  ^bb0(%b: f32):
    %d = math.sin %b : f32
    scf.yield %d : f32
  }
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
