// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize | FileCheck %s

// What a while loop does before its condition moves to the end of the body,
// and runs once before the loop. Iterations are counted.
// CHECK-LABEL: tt.func @rotated
// CHECK: %[[X:.*]] = tt.load %arg0
// CHECK: %[[S:.*]] = math.sqrt %[[X]]
// CHECK: %[[C:.*]] = arith.cmpf ogt, %[[S]],
// CHECK: %[[R:.*]]:2 = scf.while (%[[K:.*]] = %c0_i32, %[[A:.*]] = %[[S]], %[[D:.*]] = %[[C]]) : (i32, f32, i1) -> (i32, f32) {
// CHECK-NEXT: scf.condition(%[[D]]) %[[K]], %[[A]]
// CHECK: ^bb0(%[[I:.*]]: i32, %[[B:.*]]: f32):
// CHECK: %[[E:.*]] = math.sin %[[B]]
// CHECK: %[[T:.*]] = math.sqrt %[[E]]
// CHECK: %[[F:.*]] = arith.cmpf ogt, %[[T]],
// CHECK: %[[N:.*]] = arith.addi %[[I]], %c1_i32
// CHECK: scf.yield %[[N]], %[[T]], %[[F]]
// CHECK: tt.store %arg1, %[[R]]#1
tt.func @rotated(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %limit = arith.constant 0.1 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %y = scf.while (%a = %x) : (f32) -> f32 {
    %s = math.sqrt %a : f32
    %c = arith.cmpf ogt, %s, %limit : f32
    scf.condition(%c) %s : f32
  } do {
  ^bb0(%b: f32):
    %d = math.sin %b : f32
    scf.yield %d : f32
  }
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A loop that counts is a for loop.
// CHECK-LABEL: tt.func @counts
// CHECK-NOT: scf.while
// CHECK: scf.for %{{.*}} = %c0_i32 to %arg2 step %c2_i32
tt.func @counts(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %x = tt.load %px : !tt.ptr<f32>
  %y:2 = scf.while (%i = %c0, %a = %x) : (i32, f32) -> (i32, f32) {
    %c = arith.cmpi slt, %i, %n : i32
    scf.condition(%c) %i, %a : i32, f32
  } do {
  ^bb0(%j: i32, %b: f32):
    %d = math.sin %b : f32
    %k = arith.addi %j, %c2 : i32
    scf.yield %k, %d : i32, f32
  }
  tt.store %py, %y#1 : !tt.ptr<f32>
  tt.return
}

// -----

// So is one whose last number is named.
// CHECK-LABEL: tt.func @counts_to
// CHECK-NOT: scf.while
// CHECK: %[[END:.*]] = arith.addi %arg2, %c1_i32
// CHECK: scf.for %{{.*}} = %c0_i32 to %[[END]] step %c2_i32
tt.func @counts_to(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %x = tt.load %px : !tt.ptr<f32>
  %y:2 = scf.while (%i = %c0, %a = %x) : (i32, f32) -> (i32, f32) {
    %c = arith.cmpi sle, %i, %n : i32
    scf.condition(%c) %i, %a : i32, f32
  } do {
  ^bb0(%j: i32, %b: f32):
    %d = math.sin %b : f32
    %k = arith.addi %j, %c2 : i32
    scf.yield %k, %d : i32, f32
  }
  tt.store %py, %y#1 : !tt.ptr<f32>
  tt.return
}

// -----

// It ends with the first number that is not below the bound: where it started,
// if there is no iteration.
// CHECK-LABEL: tt.func @counter_is_read
// CHECK: scf.for %{{.*}} = %arg1 to %arg2 step %c2_i32
// CHECK: %[[SPAN:.*]] = arith.subi %arg2, %arg1
// CHECK: %[[SOME:.*]] = arith.maxsi %[[SPAN]], %c0_i32
// CHECK: %[[UP:.*]] = arith.addi %[[SOME]], %c1_i32
// CHECK: %[[COUNT:.*]] = arith.divui %[[UP]], %c2_i32
// CHECK: %[[WAY:.*]] = arith.muli %[[COUNT]], %c2_i32
// CHECK: %[[END:.*]] = arith.addi %arg1, %[[WAY]]
// CHECK: arith.sitofp %[[END]]
tt.func @counter_is_read(%p: !tt.ptr<f32>, %m: i32, %n: i32) {
  %c2 = arith.constant 2 : i32
  %x = tt.load %p : !tt.ptr<f32>
  %y:2 = scf.while (%i = %m, %a = %x) : (i32, f32) -> (i32, f32) {
    %c = arith.cmpi slt, %i, %n : i32
    scf.condition(%c) %i, %a : i32, f32
  } do {
  ^bb0(%j: i32, %b: f32):
    %d = math.sin %b : f32
    %k = arith.addi %j, %c2 : i32
    scf.yield %k, %d : i32, f32
  }
  %e = arith.sitofp %y#0 : i32 to f32
  %z = arith.mulf %y#1, %e : f32
  tt.store %p, %z : !tt.ptr<f32>
  tt.return
}
