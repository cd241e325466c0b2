// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// Iterations run backwards. The induction variable and the pointer that
// advances by the same step every time are computed from the iteration's
// number, and the accumulator's cotangent is every iteration's.
// CHECK-LABEL: tt.func @sum_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream %arg1
// CHECK: %[[COUNT:.*]] = arith.maxsi %arg2, %c0_i32
// CHECK: scf.for %[[I:[^ ,:)]+]] = %c0_i32 to %[[COUNT]] step
// CHECK: %[[LAST:.*]] = arith.subi %[[COUNT]], %c1_i32
// CHECK: %[[K:.*]] = arith.subi %[[LAST]], %[[I]] :
// CHECK: %[[WIDE:.*]] = arith.extsi %[[K]] : i32 to i64
// CHECK: %[[OFFSET:.*]] = arith.muli %[[WIDE]], %c4_i64
// CHECK: %[[P:.*]] = tt.addptr %arg0, %[[OFFSET]] : !tt.ptr<f32>, i64
// CHECK: %[[X:.*]] = tt.load %[[P]]
// CHECK: %[[Y:.*]] = math.exp %[[X]]
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[Y]] :
// CHECK: autodiff.accumulate %[[P]], %[[D]] {
tt.func @sum(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %zero = arith.constant 0.0 : f32
  %s, %p = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %q = %px) -> (f32, !tt.ptr<f32>) : i32 {
    %x = tt.load %q : !tt.ptr<f32>
    %e = math.exp %x : f32
    %next = arith.addf %acc, %e : f32
    %r = tt.addptr %q, %c4 : !tt.ptr<f32>, i32
    scf.yield %next, %r : f32, !tt.ptr<f32>
  }
  tt.store %py, %s : !tt.ptr<f32>
  tt.return
}

// -----

// A value that the adjoint needs from every iteration's start travels on a
// tape; its own adjoint is carried backwards.
// CHECK-LABEL: tt.func @product_bwd(
// CHECK: %[[W:.*]] = tt.load %arg1
// CHECK: scf.for %[[I:[^ ,:)]+]] = %c0_i32 to %arg3 step %c1_i32 iter_args(%[[H:[^ ,:)]+]] =
// CHECK: autodiff.push %[[H]] at %[[I]] tape = 0 of <max(arg3, 0)> : f32, i32
// CHECK: %[[T:.*]] = autodiff.upstream %arg2
// CHECK: %[[COUNT:.*]] = arith.maxsi %arg3, %c0_i32
// CHECK: %[[R:.*]]:2 = scf.for %[[J:[^ ,:)]+]] = %c0_i32 to %[[COUNT]] step %c1_i32 iter_args(%[[DH:[^ ,:)]+]] = %[[T]], %[[DW:[^ ,:)]+]] = %cst)
// CHECK: %[[LAST:.*]] = arith.subi %[[COUNT]], %c1_i32
// CHECK: %[[K:.*]] = arith.subi %[[LAST]], %[[J]] :
// CHECK: %[[OLD:.*]] = autodiff.pop %[[K]] tape = 0 : i32 -> f32
// CHECK: %[[NEXTDH:.*]] = arith.mulf %[[DH]], %[[W]] :
// CHECK: %[[P:.*]] = arith.mulf %[[DH]], %[[OLD]] :
// CHECK: %[[NEXTDW:.*]] = arith.addf %[[DW]], %[[P]] :
// CHECK: scf.yield %[[NEXTDH]], %[[NEXTDW]] :
// CHECK: autodiff.accumulate %arg1, %[[R]]#1 {
// CHECK: autodiff.accumulate %arg0, %[[R]]#0 {
tt.func @product(%ph: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %h0 = tt.load %ph : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %h = scf.for %i = %c0 to %n step %c1 iter_args(%a = %h0) -> f32 : i32 {
    %b = arith.mulf %a, %w : f32
    scf.yield %b : f32
  }
  tt.store %py, %h : !tt.ptr<f32>
  tt.return
}

// -----

// ceil(max(n − 3, 0) / 2) iterations, the last first: i = 3 + 2·(count − 1 − j).
// CHECK-LABEL: tt.func @stepped_bwd(
// CHECK: %[[SPAN:.*]] = arith.{{subi|addi}} %arg2, %c{{-?}}3_i32
// CHECK: %[[MOST:.*]] = arith.maxsi %[[SPAN]], %c0_i32
// CHECK: %[[ROUNDED:.*]] = arith.addi %[[MOST]], %c1_i32
// CHECK: %[[COUNT:.*]] = arith.divui %[[ROUNDED]], %c2_i32
// CHECK: scf.for %[[J:[^ ,:)]+]] = %c0_i32 to %[[COUNT]] step %c1_i32
// CHECK: %[[LAST:.*]] = arith.subi %[[COUNT]], %c1_i32
// CHECK: %[[K:.*]] = arith.subi %[[LAST]], %[[J]] :
// CHECK: %[[M:.*]] = arith.muli %[[K]], %c2_i32
// CHECK: %[[I:.*]] = arith.addi %[[M]], %c3_i32
// CHECK: %[[PY:.*]] = tt.addptr %arg1, %[[I]]
// CHECK: %[[T:.*]] = autodiff.upstream %[[PY]]
// CHECK: autodiff.accumulate {{.*}}, %[[T]] {
tt.func @stepped(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c3 = arith.constant 3 : i32
  %c2 = arith.constant 2 : i32
  scf.for %i = %c3 to %n step %c2 : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %q = tt.addptr %py, %i : !tt.ptr<f32>, i32
    tt.store %q, %x : !tt.ptr<f32>
  }
  tt.return
}

// -----

// A carried value that no iteration reads still ends the loop: the value from
// outside that it is replaced by gets the cotangent of the last iteration.
// CHECK-LABEL: tt.func @replaced_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream %arg1
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%[[OUT:.*]] = %[[T]], %[[X:.*]] = %cst)
// CHECK: %[[SUM:.*]] = arith.addf %[[X]], %[[OUT]]
// CHECK: scf.yield %cst, %[[SUM]]
// CHECK: autodiff.accumulate %arg0, %[[LOOP]]#1
tt.func @replaced(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant 0.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%a = %init) -> (f32) : i32 {
    scf.yield %x : f32
  }
  tt.store %py, %last : !tt.ptr<f32>
  tt.return
}
