// RUN: triton-autodiff-opt %s -split-input-file -autodiff-differentiate="until=autodiff-count-up" | FileCheck %s

// Blocks from the last one on: those that a program has depend on its id. Both
// loops then start at the first.
// CHECK-LABEL: tt.func private @numbers_framed(
// CHECK: scf.for %[[I:.*]] = %c0_i32
// CHECK: %[[J:.*]] = arith.addi %{{.*}}, %[[I]]
// CHECK: tt.addptr %arg0, %[[J]]
// CHECK-LABEL: tt.func @numbers_bwd(
// CHECK: scf.for %[[T:.*]] = %c0_i32
// CHECK: %[[J:.*]] = arith.addi %{{.*}}, %[[T]]
// CHECK: tt.addptr %arg0, %[[J]]
tt.func @numbers(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %y = scf.for %i = %c0 to %id step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %last = arith.subi %id, %c1 : i32
    %j = arith.subi %last, %i : i32
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %s = math.sin %x : f32
    %next = arith.addf %acc, %s : f32
    scf.yield %next : f32
  }
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}

// -----

// As Triton makes it of range(16 n − 16, −1, −16). The last iteration is at 0.
// CHECK-LABEL: tt.func private @elements_framed(
// CHECK: scf.for %[[I:.*]] = %c-1_i32 to %{{.*}} step %c16_i32
// CHECK-NOT: arith.subi %{{.*}}, %[[I]]
// CHECK-LABEL: tt.func @elements_bwd(
// CHECK: scf.for %[[T:.*]] = %c0_i32
// CHECK-NOT: arith.subi %{{.*}}, %[[T]]
// CHECK: autodiff.accumulate
tt.func @elements(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c-1 = arith.constant -1 : i32
  %c1 = arith.constant 1 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %less = arith.subi %n, %c1 : i32
  %first = arith.muli %less, %c16 : i32
  %y = scf.for %i = %c-1 to %first step %c16 iter_args(%acc = %zero) -> (f32) : i32 {
    %down = arith.subi %first, %i : i32
    %j = arith.addi %down, %c-1 : i32
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %s = math.sin %x : f32
    %next = arith.addf %acc, %s : f32
    scf.yield %next : f32
  }
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A loop that also uses numbers that rise stays as it is.
// CHECK-LABEL: tt.func @both(
// CHECK: scf.for %[[I:.*]] = %c0_i32
// CHECK: arith.subi %{{.*}}, %[[I]]
// CHECK-LABEL: tt.func @both_bwd(
tt.func @both(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %last = arith.subi %n, %c1 : i32
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %j = arith.subi %last, %i : i32
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %qw = tt.addptr %pw, %i : !tt.ptr<f32>, i32
    %w = tt.load %qw : !tt.ptr<f32>
    %xw = arith.mulf %x, %w : f32
    %next = arith.addf %acc, %xw : f32
    scf.yield %next : f32
  }
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// So does one whose sum decays: the backward's loop multiplies what it carries.
// CHECK-LABEL: tt.func @order(
// CHECK: scf.for %[[I:.*]] = %c0_i32
// CHECK: arith.subi %{{.*}}, %[[I]]
// CHECK-LABEL: tt.func @order_bwd(
tt.func @order(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %last = arith.subi %n, %c1 : i32
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %j = arith.subi %last, %i : i32
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %less = arith.mulf %acc, %half : f32
    %next = arith.addf %less, %x : f32
    scf.yield %next : f32
  }
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
