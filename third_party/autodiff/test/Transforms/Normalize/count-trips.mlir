// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize -autodiff-count-trips \
// RUN:   -autodiff-simplify -canonicalize -cse | FileCheck %s

// The inner bound comes from memory, so the counting kernel reads it in every
// outer iteration, and does nothing else.
// CHECK-LABEL: tt.func @ragged(
// CHECK: scf.for
// CHECK: scf.for
// CHECK: } {autodiff.counter = 0 : i32}
// CHECK-LABEL: tt.func @ragged_count(
// CHECK-SAME: %arg4: !tt.ptr<i32> {autodiff.operand = #autodiff.operand<counters 0>}
// CHECK: scf.for %[[I:[^ ]+]] = %c0_i32 to %arg3
// CHECK-NEXT: %[[P:.*]] = tt.addptr %arg1, %[[I]]
// CHECK-NEXT: %[[N:.*]] = tt.load %[[P]]
// CHECK-NEXT: %[[COUNT:.*]] = arith.maxsi %[[N]], %c0_i32
// CHECK-NEXT: tt.atomic_rmw max, relaxed, gpu, %arg4, %[[COUNT]], %true {
// CHECK-NOT: {{scf|math|tt.store}}
// CHECK: tt.return
tt.func @ragged(%px: !tt.ptr<f32>, %pn: !tt.ptr<i32>, %py: !tt.ptr<f32>, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = tt.load %px : !tt.ptr<f32>
  %h = scf.for %i = %c0 to %m step %c1 iter_args(%a = %x) -> f32 : i32 {
    %p = tt.addptr %pn, %i : !tt.ptr<i32>, i32
    %n = tt.load %p : !tt.ptr<i32>
    %g = scf.for %j = %c0 to %n step %c1 iter_args(%b = %a) -> f32 : i32 {
      %s = math.sin %b : f32
      scf.yield %s : f32
    }
    scf.yield %g : f32
  }
  tt.store %py, %h : !tt.ptr<f32>
  tt.return
}

// -----

// Known bounds are not counted.
// CHECK-LABEL: tt.func @known(
// CHECK-NOT: autodiff.counter
// CHECK-NOT: @known_count
tt.func @known(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = tt.load %px : !tt.ptr<f32>
  %h = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> f32 : i32 {
    %s = math.sin %a : f32
    scf.yield %s : f32
  }
  tt.store %py, %h : !tt.ptr<f32>
  tt.return
}
