// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(autodiff-normalize,tt.func(autodiff-record-memory,canonicalize))' \
// RUN:   | FileCheck %s

// What is loaded behind a wait is recorded, even if the wait is in a branch.
// What only the kernel reads is not.
// CHECK-LABEL: tt.func @behind_a_branch(
// CHECK: scf.if
// CHECK: scf.while
// CHECK: %[[POSITION:.+]] = tt.load
// CHECK-NEXT: autodiff.push %[[POSITION]]
// CHECK: tt.load
// CHECK-NOT: autodiff.push
// CHECK: tt.return
tt.func @behind_a_branch(%flag: !tt.ptr<i32>, %count: !tt.ptr<i32>, %px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %id = tt.get_program_id x : i32
  %later = arith.cmpi sgt, %id, %c0 : i32
  %qf = tt.addptr %flag, %id : !tt.ptr<i32>, i32
  scf.if %later {
    scf.while : () -> () {
      %f = tt.atomic_rmw add, acquire, gpu, %qf, %c0, %true : (!tt.ptr<i32>, i32, i1) -> i32
      %wait = arith.cmpi eq, %f, %c0 : i32
      scf.condition(%wait)
    } do {
      scf.yield
    }
  }
  %qc = tt.addptr %count, %id : !tt.ptr<i32>, i32
  %before = tt.load %qc : !tt.ptr<i32>
  %qx = tt.addptr %px, %before : !tt.ptr<f32>, i32
  %x = tt.load %qx : !tt.ptr<f32>
  %qy = tt.addptr %py, %before : !tt.ptr<f32>, i32
  tt.store %qy, %x : !tt.ptr<f32>
  %next = tt.addptr %qc, %c1 : !tt.ptr<i32>, i32
  %after = arith.addi %before, %c1 : i32
  tt.store %next, %after : !tt.ptr<i32>
  %nextf = tt.addptr %qf, %c1 : !tt.ptr<i32>, i32
  %0 = tt.atomic_rmw exch, acq_rel, gpu, %nextf, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
  tt.return
}

// -----

// A load that stands before the wait comes after that of the last iteration.
// CHECK-LABEL: tt.func @next_iteration(
// CHECK: scf.for
// CHECK: %[[POSITION:.+]] = tt.load
// CHECK-NEXT: autodiff.push %[[POSITION]]
// CHECK: scf.while
tt.func @next_iteration(%flag: !tt.ptr<i32>, %count: !tt.ptr<i32>, %px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %qc = tt.addptr %count, %i : !tt.ptr<i32>, i32
    %place = tt.load %qc : !tt.ptr<i32>
    %qx = tt.addptr %px, %place : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %qy = tt.addptr %py, %i : !tt.ptr<f32>, i32
    tt.store %qy, %x : !tt.ptr<f32>
    scf.while : () -> () {
      %f = tt.load %flag {isVolatile = true} : !tt.ptr<i32>
      %wait = arith.cmpi slt, %f, %i : i32
      scf.condition(%wait)
    } do {
      scf.yield
    }
  }
  tt.store %count, %n : !tt.ptr<i32>
  tt.return
}

// -----

// What a waiting loop adds up is recorded behind it; nothing in it is.
// CHECK-LABEL: tt.func @look_back(
// CHECK: %[[LOOP:.+]]:{{.+}} = scf.while
// CHECK-NOT: autodiff.push
// CHECK: scf.yield
// CHECK: autodiff.push %[[LOOP]]#
// CHECK-NOT: autodiff.push
// CHECK: tt.return
tt.func @look_back(%status: !tt.ptr<i32>, %own: !tt.ptr<i32>, %px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %id = tt.get_program_id x : i32
  %sum:2 = scf.while (%j = %id, %s = %c0) : (i32, i32) -> (i32, i32) {
    %more = arith.cmpi sgt, %j, %c0 : i32
    scf.condition(%more) %j, %s : i32, i32
  } do {
  ^bb0(%j: i32, %s: i32):
    %q = tt.addptr %status, %j : !tt.ptr<i32>, i32
    %f = tt.atomic_rmw add, acquire, gpu, %q, %c0, %true : (!tt.ptr<i32>, i32, i1) -> i32
    %there = arith.cmpi ne, %f, %c0 : i32
    %qo = tt.addptr %own, %j : !tt.ptr<i32>, i32
    %o = tt.load %qo : !tt.ptr<i32>
    %step = arith.select %there, %c1, %c0 : i32
    %add = arith.select %there, %o, %c0 : i32
    %j1 = arith.subi %j, %step : i32
    %s1 = arith.addi %s, %add : i32
    scf.yield %j1, %s1 : i32, i32
  }
  %qx = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %x = tt.load %qx : !tt.ptr<f32>
  %qy = tt.addptr %py, %sum#1 : !tt.ptr<f32>, i32
  tt.store %qy, %x : !tt.ptr<f32>
  %mine = tt.addptr %own, %id : !tt.ptr<i32>, i32
  tt.store %mine, %sum#1 : !tt.ptr<i32>
  tt.return
}

// -----

// A loop that itself stores what ends it waits for nobody, and one that goes
// through memory which the kernel only reads does not, either.
// CHECK-LABEL: tt.func @no_wait(
// CHECK: scf.while
// CHECK: tt.load
// CHECK-NEXT: autodiff.push
// CHECK: tt.store
// CHECK: scf.while
// CHECK-NOT: autodiff.push
// CHECK: tt.return
tt.func @no_wait(%state: !tt.ptr<i32>, %next: !tt.ptr<i32>, %table: !tt.ptr<i32>, %px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.while : () -> () {
    %s = tt.load %state : !tt.ptr<i32>
    %more = arith.cmpi sgt, %s, %c0 : i32
    scf.condition(%more)
  } do {
    %s = tt.load %state : !tt.ptr<i32>
    %less = arith.subi %s, %c1 : i32
    tt.store %state, %less : !tt.ptr<i32>
    scf.yield
  }
  %last = scf.while (%i = %c0) : (i32) -> i32 {
    %q = tt.addptr %next, %i : !tt.ptr<i32>, i32
    %n = tt.load %q : !tt.ptr<i32>
    %more = arith.cmpi sgt, %n, %c0 : i32
    scf.condition(%more) %n : i32
  } do {
  ^bb0(%n: i32):
    scf.yield %n : i32
  }
  // The kernel stores there only later.
  %qt = tt.addptr %table, %last : !tt.ptr<i32>, i32
  %place = tt.load %qt : !tt.ptr<i32>
  %qx = tt.addptr %px, %place : !tt.ptr<f32>, i32
  %x = tt.load %qx : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.store %table, %c1 : !tt.ptr<i32>
  tt.return
}
