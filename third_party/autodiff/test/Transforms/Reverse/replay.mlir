// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize -autodiff-reverse \
// RUN:   -canonicalize -cse -autodiff-replay -canonicalize -cse | FileCheck %s

// In place of a tape, the loop runs again, as far as the iteration that is
// reversed. The sum beside it is linear: nothing asks for it.
// CHECK-LABEL: tt.func @product_bwd(
// CHECK-NOT: autodiff.push
// CHECK: %[[F:.*]] = tt.load %arg0
// CHECK: scf.for %[[J:[^ ,:)]+]] =
// CHECK: %[[K:.*]] = arith.subi %{{.*}}, %[[J]] : i32
// CHECK: %[[AGAIN:.*]] = scf.for %{{.*}} = %{{.*}} to %[[K]] step %{{.*}} iter_args(%[[A:.*]] = %{{.*}}) -> (f32)
// CHECK-NEXT: %[[B:.*]] = arith.mulf %[[A]], %[[F]]
// CHECK-NEXT: scf.yield %[[B]]
// CHECK: arith.mulf %{{.*}}, %[[AGAIN]]
// CHECK-NOT: autodiff.pop
// CHECK: autodiff.accumulate
tt.func @product(%px: !tt.ptr<f32>, %pp: !tt.ptr<f32>, %ps: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %one, %s = %zero) -> (f32, f32) : i32 {
    %q = arith.mulf %p, %x : f32
    %t = arith.addf %s, %x : f32
    scf.yield %q, %t : f32, f32
  }
  tt.store %pp, %r#0 : !tt.ptr<f32>
  tt.store %ps, %r#1 : !tt.ptr<f32>
  tt.return
}

// -----

// A while loop is a for loop there: it ran at least as often.
// CHECK-LABEL: tt.func @halve_bwd(
// CHECK: scf.while
// CHECK: scf.for
// CHECK: scf.for %{{.*}} iter_args(
// CHECK-NOT: scf.while
// CHECK: autodiff.accumulate
tt.func @halve(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %one = arith.constant 1.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %r = scf.while (%a = %x) : (f32) -> f32 {
    %more = arith.cmpf ogt, %a, %one : f32
    scf.condition(%more) %a : f32
  } do {
  ^bb0(%a: f32):
    %root = math.sqrt %a : f32
    scf.yield %root : f32
  }
  tt.store %py, %r : !tt.ptr<f32>
  tt.return
}

// -----

// Few iterations come one after the other, and so do those that reverse them.
// CHECK-LABEL: tt.func @three_bwd(
// CHECK-NOT: scf.for
// CHECK: %[[S0:.*]] = math.sin %[[X:.*]] :
// CHECK: %[[A:.*]] = arith.mulf %[[S0]], %[[Y:.*]] :
// CHECK: %[[S1:.*]] = math.sin %[[A]] :
// CHECK: %[[B:.*]] = arith.mulf %[[S1]], %[[Y]] :
// CHECK: math.cos %[[B]] :
// CHECK: math.cos %[[A]] :
// CHECK: math.cos %[[X]] :
// CHECK-NOT: scf.for
// CHECK: autodiff.accumulate
tt.func @three(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pz: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.load %py : !tt.ptr<f32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> (f32) : i32 {
    %s = math.sin %a : f32
    %b = arith.mulf %s, %y : f32
    scf.yield %b : f32
  }
  tt.store %pz, %r : !tt.ptr<f32>
  tt.return
}
