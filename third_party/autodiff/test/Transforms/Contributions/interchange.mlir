// RUN: %interchange -split-input-file %s | FileCheck %s

// Every program reads all of x, and adds to its gradient; what it adds is handed
// over, as it is the same for all iterations. A kernel with programs
// for each iteration sums what all programs contribute there, each a part of
// them, for there is little to do; its addresses are a check of the launch. The
// gradient of w stays where it was.
// CHECK: autodiff.launch @sums_bwd_interchanged0 grid [max(ceildiv(arg3 - 0, 1), 0) *
// CHECK-SAME: processors
// CHECK-LABEL: tt.func @sums_bwd(
// CHECK: scf.for
// CHECK-NOT: argument = 0
// CHECK: autodiff.accumulate {{.*}} {argument = 1
// CHECK-LABEL: tt.func @sums_bwd_interchanged0(
// CHECK: %[[N:.*]] = autodiff.programs
// CHECK: %[[J:.*]] = arith.remsi %[[N]], %[[COUNT:.*]] :
// CHECK: %[[PART:.*]] = arith.divsi %[[N]], %[[COUNT]]
// CHECK: %[[PARTS:.*]] = arith.trunci
// CHECK: %[[SIZE:.*]] = autodiff.size <grid0>
// CHECK: %[[PROGRAMS:.*]] = arith.trunci %[[SIZE]]
// CHECK: %[[SUM:.*]] = scf.for %[[P:.*]] = %[[PART]] to %[[PROGRAMS]] step %[[PARTS]] iter_args(%[[ACC:.*]] = %cst)
// CHECK: %[[WIDE:.*]] = arith.extsi %[[P]]
// CHECK: %[[LEFT:.*]] = tt.addptr %{{.*}}, %[[WIDE]]
// CHECK: %[[TW:.*]] = tt.load %[[LEFT]]
// CHECK: arith.addf %[[ACC]], %[[TW]]
// CHECK: %[[PX:.*]] = tt.addptr %arg0, %[[J]]
// CHECK: autodiff.accumulate %[[PX]], %[[SUM]] partial %[[PART]] of <
// CHECK-SAME: whole <
// CHECK-SAME: programs [pid0]
// CHECK-SAME: {argument = 0
tt.func @sums(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %qw = tt.addptr %pw, %id : !tt.ptr<f32>, i32
  %w = tt.load %qw : !tt.ptr<f32>
  %y = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %xw = arith.mulf %x, %w : f32
    %next = arith.addf %acc, %xw : f32
    scf.yield %next : f32
  }
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}

// -----

// An id that the kernel only uses as quotient and remainder is two digits: one
// stays in the grid, the other one is summed over.
// CHECK: autodiff.launch @digits_bwd_interchanged0 grid [
// CHECK-SAME: (maxpids(div(pid0, arg4)) + 1)
// CHECK-LABEL: tt.func @digits_bwd_interchanged0(
// CHECK: autodiff.size <maxpids(rem(pid0, arg4)) + 1>
// CHECK: autodiff.accumulate {{.*}} whole <
// CHECK-SAME: programs [rem(pid0, arg4), div(pid0, arg4)]
tt.func @digits(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %h: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %row = arith.divsi %id, %h : i32
  %column = arith.remsi %id, %h : i32
  %rx = arith.muli %row, %n : i32
  %qw = tt.addptr %pw, %column : !tt.ptr<f32>, i32
  %w = tt.load %qw : !tt.ptr<f32>
  %y = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %jx = arith.addi %rx, %j : i32
    %qx = tt.addptr %px, %jx : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %xw = arith.mulf %x, %w : f32
    %next = arith.addf %acc, %xw : f32
    scf.yield %next : f32
  }
  %ry = arith.muli %row, %h : i32
  %o = arith.addi %ry, %column : i32
  %qy = tt.addptr %py, %o : !tt.ptr<f32>, i32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Of two loops over x one may be shorter: its share ends there.
// CHECK-LABEL: tt.func @lengths_bwd_interchanged0(
// CHECK: %[[PAST:.*]] = arith.cmpi sge, %{{.*}}, %c0_i32
// CHECK: %[[END:.*]] = arith.select %[[PAST]], %c0_i32,
// CHECK: scf.if
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[END]]
// CHECK: arith.select
// CHECK: scf.if
// CHECK: autodiff.accumulate {{.*}} whole
tt.func @lengths(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %m: i32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %qw = tt.addptr %pw, %id : !tt.ptr<f32>, i32
  %w = tt.load %qw : !tt.ptr<f32>
  %s = scf.for %j = %c0 to %m step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %xw = arith.mulf %x, %w : f32
    %next = arith.addf %acc, %xw : f32
    scf.yield %next : f32
  }
  %y = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %s) -> (f32) : i32 {
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %xw = arith.mulf %x, %w : f32
    %next = arith.addf %acc, %xw : f32
    scf.yield %next : f32
  }
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Programs count from where they start: no iteration is the same in all.
// CHECK-LABEL: tt.func @relative_bwd(
// CHECK: scf.for
// CHECK: autodiff.accumulate {{.*}} {argument = 0
// CHECK-NOT: interchanged
tt.func @relative(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %qw = tt.addptr %pw, %id : !tt.ptr<f32>, i32
  %w = tt.load %qw : !tt.ptr<f32>
  %y:2 = scf.for %j = %id to %n step %c1 iter_args(%acc = %zero, %qx = %px) -> (f32, !tt.ptr<f32>) : i32 {
    %x = tt.load %qx : !tt.ptr<f32>
    %xw = arith.mulf %x, %w : f32
    %next = arith.addf %acc, %xw : f32
    %nx = tt.addptr %qx, %c1 : !tt.ptr<f32>, i32
    scf.yield %next, %nx : f32, !tt.ptr<f32>
  }
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %qy, %y#0 : !tt.ptr<f32>
  tt.return
}
