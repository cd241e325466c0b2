// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(autodiff-normalize,tt.func(autodiff-mark-residuals),autodiff-rescale-accumulators,autodiff-drop-maxima,canonicalize,autodiff-pick-maxima,canonicalize,cse)' \
// RUN:   | FileCheck %s

// The primal finds the place. What is differentiated sums up what is there, or
// what the loop starts from.
// CHECK-LABEL: tt.func @largest(
// CHECK: %[[R:.*]]:2 = scf.for %[[I:.*]] = {{.*}} iter_args(%[[M:[^ ]+]] = {{.*}}, %[[W:[^ ]+]] = %arg2) -> (f32, i32)
// CHECK: %[[X:.*]] = tt.load
// CHECK-DAG: %[[NEXT:.*]] = arith.maxnumf %[[M]], %[[X]]
// CHECK-DAG: %[[BEYOND:.*]] = arith.cmpf ugt, %[[X]], %[[M]]
// CHECK-DAG: %[[NUMBER:.*]] = arith.cmpf ord, %[[X]], %[[X]]
// CHECK: %[[TAKEN:.*]] = arith.andi %[[BEYOND]], %[[NUMBER]]
// CHECK: %[[PLACE:.*]] = arith.select %[[TAKEN]], %[[I]], %[[W]]
// CHECK: scf.yield %[[NEXT]], %[[PLACE]]
// CHECK-DAG: autodiff.residual %[[R]]#1 id = [[PLACE:[0-9]+]] {pinned}
// CHECK-DAG: autodiff.residual %[[R]]#0 id = 0
// CHECK-LABEL: tt.func @largest_framed(
// CHECK: %[[START:.*]] = tt.load
// CHECK: %[[FOUND:.*]]:2 = scf.for
// CHECK: %[[W:.*]] = autodiff.residual %[[FOUND]]#1 id = [[PLACE]]
// CHECK: %[[NONE:.*]] = arith.cmpi eq, %arg2, %[[W]]
// CHECK: %[[FIRST:.*]] = arith.select %[[NONE]], %[[START]], %cst
// CHECK: %[[SUM:.*]] = scf.for %[[I:.*]] = {{.*}} iter_args(%[[S:.*]] = %[[FIRST]]) -> (f32)
// CHECK-NOT: arith.maxnumf
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[HERE:.*]] = arith.cmpi eq, %[[I]], %[[W]]
// CHECK: %[[PICKED:.*]] = arith.select %[[HERE]], %[[X]], %cst
// CHECK: %[[NEXT:.*]] = arith.addf %[[S]], %[[PICKED]]
// CHECK: scf.yield %[[NEXT]]
// CHECK: %[[RESULT:.*]] = autodiff.residual %[[SUM]] id = 0
// CHECK: arith.mulf %[[RESULT]], %[[RESULT]]
tt.func @largest(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %start = tt.load %py : !tt.ptr<f32>
  %m = scf.for %i = %c0 to %n step %c1 iter_args(%m = %start) -> (f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %next = arith.maxnumf %m, %x : f32
    scf.yield %next : f32
  }
  %y = arith.mulf %m, %m : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A minimum that propagates NaN takes it.
// CHECK-LABEL: tt.func @least(
// CHECK-DAG: arith.cmpf olt
// CHECK-DAG: arith.cmpf uno
// CHECK: arith.ori
tt.func @least(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %inf = arith.constant 0x7F800000 : f32
  %m = scf.for %i = %c0 to %n step %c1 iter_args(%m = %inf) -> (f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %next = arith.minimumf %m, %x : f32
    scf.yield %next : f32
  }
  tt.store %py, %m : !tt.ptr<f32>
  tt.return
}

// -----

// What is offered depends on the maximum so far, by another value that the loop
// carries: iterations do not stand alone.
// CHECK-LABEL: tt.func @dependent(
// CHECK-NOT: arith.cmpf
tt.func @dependent(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %zero, %s = %zero) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %t = arith.addf %x, %s : f32
    %next = arith.maxnumf %m, %t : f32
    scf.yield %next, %t : f32, f32
  }
  tt.store %py, %r#0 : !tt.ptr<f32>
  tt.return
}

// -----

// Nor does one stand alone that writes.
// CHECK-LABEL: tt.func @writing(
// CHECK-NOT: arith.cmpf
tt.func @writing(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %m = scf.for %i = %c0 to %n step %c1 iter_args(%m = %zero) -> (f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    tt.store %p, %zero : !tt.ptr<f32>
    %next = arith.maxnumf %m, %x : f32
    scf.yield %next : f32
  }
  tt.store %py, %m : !tt.ptr<f32>
  tt.return
}

// -----

// All iterations may offer the same number.
// CHECK-LABEL: tt.func @same(
// CHECK-LABEL: tt.func @same_framed(
// CHECK: %[[Y:.*]] = tt.load
// CHECK: %[[HERE:.*]] = arith.cmpi eq
// CHECK: arith.select %{{.*}}, %[[Y]], %cst
tt.func @same(%py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %y = tt.load %py : !tt.ptr<f32>
  %m = scf.for %i = %c0 to %n step %c1 iter_args(%m = %zero) -> (f32) : i32 {
    %next = arith.maxnumf %m, %y : f32
    scf.yield %next : f32
  }
  tt.store %py, %m : !tt.ptr<f32>
  tt.return
}
