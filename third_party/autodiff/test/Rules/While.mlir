// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize -autodiff-count-trips \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// The recomputed loop counts its iterations and records its state; a for loop
// over that count takes it back.
// CHECK-LABEL: tt.func @sine_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0
// CHECK: %[[R:.*]]:2 = scf.while (%[[K:.*]] = %c0_i32, %[[A:.*]] = %[[X]], %[[C:.*]] = %{{[0-9]+}})
// CHECK: scf.condition(%[[C]]) %[[K]], %[[A]]
// CHECK: ^bb0(%[[I:.*]]: i32, %[[B:.*]]: f32):
// CHECK: autodiff.push %[[B]] at %[[I]] tape = 0 of <counted(0)> : f32, i32
// CHECK: %[[T:.*]] = autodiff.upstream %arg1
// CHECK: scf.for %[[J:[^ ,:)]+]] = %c0_i32 to %[[R]]#0 step %c1_i32 iter_args(%[[D:[^ ,:)]+]] = %[[T]])
// CHECK: %[[LAST:.*]] = arith.subi %[[R]]#0, %c1_i32
// CHECK: %[[M:.*]] = arith.subi %[[LAST]], %[[J]]
// CHECK: %[[OLD:.*]] = autodiff.pop %[[M]] tape = 0
// CHECK: %[[COS:.*]] = math.cos %[[OLD]]
// CHECK: %[[NEXT:.*]] = arith.mulf %[[D]], %[[COS]]
// CHECK: scf.yield %[[NEXT]]
tt.func @sine(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %limit = arith.constant 0.1 : f32
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

// -----

// What iterations replace without reading it is what the loop started with if
// there are none.
// CHECK-LABEL: tt.func @replaced_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream %arg1
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[D:[^ ,:)]+]] = %[[T]], %[[W:[^ ,:)]+]] = %cst)
// CHECK: %[[SUM:.*]] = arith.addf %[[W]], %[[D]]
// CHECK: scf.yield %cst, %[[SUM]]
// CHECK: %[[X:.*]] = arith.addf %[[R]]#0,
// CHECK: autodiff.accumulate %arg0, %[[X]]
tt.func @replaced(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pc: !tt.ptr<i1>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = math.sin %x : f32
  %y = scf.while (%a = %x) : (f32) -> f32 {
    %c = tt.load %pc : !tt.ptr<i1>
    scf.condition(%c) %a : f32
  } do {
  ^bb0(%b: f32):
    scf.yield %w : f32
  }
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
