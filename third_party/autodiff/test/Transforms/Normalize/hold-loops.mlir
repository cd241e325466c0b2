// RUN: triton-autodiff-opt -autodiff-hold-loops %s | FileCheck %s
// RUN: triton-autodiff-opt -autodiff-hold-loops -autodiff-release-loops %s | FileCheck %s --check-prefix=RELEASED

// The block of a program itself, beside those before it: that it is one is not
// seen as long as its end is held.
// RELEASED-NOT: autodiff.held
// CHECK-LABEL: tt.func @diagonal(
// CHECK: %[[FIRST:.*]] = arith.muli
// CHECK: %[[LAST:.*]] = arith.addi %[[FIRST]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[FIRST]]
// CHECK: %[[END:.*]] = autodiff.held %[[LAST]] : i32
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[END]]
tt.func @diagonal(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %first = arith.muli %id, %c4 : i32
  %end = arith.addi %first, %c4 : i32
  %before = scf.for %j = %c0 to %first step %c4 iter_args(%acc = %zero) -> (f32) : i32 {
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  %all = scf.for %j = %first to %end step %c4 iter_args(%acc = %before) -> (f32) : i32 {
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %qy, %all : !tt.ptr<f32>
  tt.return
}

// Without another loop like it, or where all programs begin alike, there is
// nothing to gain.
// CHECK-LABEL: tt.func @alone(
// CHECK-NOT: autodiff.held
tt.func @alone(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %c4 = arith.constant 4 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %first = arith.muli %id, %c4 : i32
  %end = arith.addi %first, %c4 : i32
  %all = scf.for %j = %first to %end step %c4 iter_args(%acc = %zero) -> (f32) : i32 {
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %qy, %all : !tt.ptr<f32>
  tt.return
}

// CHECK-LABEL: tt.func @alike(
// CHECK-NOT: autodiff.held
tt.func @alike(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %zero = arith.constant 0.0 : f32
  %end = arith.addi %n, %c4 : i32
  %before = scf.for %j = %c0 to %n step %c4 iter_args(%acc = %zero) -> (f32) : i32 {
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  %all = scf.for %j = %n to %end step %c4 iter_args(%acc = %before) -> (f32) : i32 {
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  tt.store %py, %all : !tt.ptr<f32>
  tt.return
}
