// RUN: triton-autodiff-opt %s -split-input-file -autodiff-bound-loops | FileCheck %s

// Blocks behind that of the program are skipped, and those that are too far in
// front of it.
// CHECK-LABEL: tt.func @window(
// CHECK: %[[P:.*]] = tt.get_program_id x
// CHECK-DAG: %[[NEXT:.*]] = arith.addi %[[P]], %c1_i32
// CHECK-DAG: %[[END:.*]] = arith.minsi %arg2, %[[NEXT]]
// CHECK-DAG: %[[FIRST:.*]] = arith.addi %[[P]], %c-2_i32
// CHECK-DAG: %[[START:.*]] = arith.maxsi %[[FIRST]], %c0_i32
// CHECK: scf.for %[[I:.*]] = %[[START]] to %[[END]] step %c1_i32
// CHECK-NOT: scf.if
// CHECK: tt.return
tt.func @window(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %zero = arith.constant 0.0 : f32
  %p = tt.get_program_id x : i32
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> f32 : i32 {
    %behind = arith.cmpi sle, %i, %p : i32
    %far = arith.addi %i, %c3 : i32
    %near = arith.cmpi sgt, %far, %p : i32
    %seen = arith.andi %behind, %near : i1
    %next = scf.if %seen -> f32 {
      %q = tt.addptr %px, %i : !tt.ptr<f32>, i32
      %x = tt.load %q : !tt.ptr<f32>
      %s = arith.addf %a, %x : f32
      scf.yield %s : f32
    } else {
      scf.yield %a : f32
    }
    scf.yield %next : f32
  }
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// In steps of a block: a start that is a multiple of it is one of theirs. The
// other side of the branch may be the one that does something.
// CHECK-LABEL: tt.func @steps(
// CHECK: %[[P:.*]] = tt.get_program_id x
// CHECK: %[[ROW:.*]] = arith.muli %[[P]], %c16_i32
// CHECK: %[[START:.*]] = arith.maxsi %[[ROW]], %c0_i32
// CHECK: scf.for %{{.*}} = %[[START]] to %arg2 step %c16_i32
// CHECK-NOT: scf.if
// CHECK: tt.return
tt.func @steps(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c15 = arith.constant 15 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant 0.0 : f32
  %p = tt.get_program_id x : i32
  %row = arith.muli %p, %c16 : i32
  %y = scf.for %i = %c0 to %n step %c16 iter_args(%a = %zero) -> f32 : i32 {
    %last = arith.addi %i, %c15 : i32
    %before = arith.cmpi slt, %last, %row : i32
    %next = scf.if %before -> f32 {
      scf.yield %a : f32
    } else {
      %q = tt.addptr %px, %i : !tt.ptr<f32>, i32
      %x = tt.load %q : !tt.ptr<f32>
      %s = arith.addf %a, %x : f32
      scf.yield %s : f32
    }
    scf.yield %next : f32
  }
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// What the launch gives may be the largest number, whose successor is none, or
// so small that its distance from the start is no number. What data decide
// stays a branch.
// CHECK-LABEL: tt.func @limit(
// CHECK: %[[LAST:.*]] = arith.minsi %arg3, %c2147483646_i32
// CHECK: %[[NEXT:.*]] = arith.addi %[[LAST]], %c1_i32
// CHECK: %[[SANE:.*]] = arith.maxsi %[[NEXT]], %c0_i32
// CHECK: %[[END:.*]] = arith.minsi %arg2, %[[SANE]]
// CHECK: scf.for %[[I:.*]] = %c0_i32 to %[[END]] step %c1_i32
// CHECK: %[[FLAG:.*]] = tt.load %{{.*}} : !tt.ptr<i1>
// CHECK: scf.if %[[FLAG]]
// CHECK: tt.return
tt.func @limit(%px: !tt.ptr<f32>, %pflags: !tt.ptr<i1>, %n: i32, %limit: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %f = tt.addptr %pflags, %i : !tt.ptr<i1>, i32
    %flag = tt.load %f : !tt.ptr<i1>
    %within = arith.cmpi sle, %i, %limit : i32
    %both = arith.andi %within, %flag : i1
    scf.if %both {
      %q = tt.addptr %px, %i : !tt.ptr<f32>, i32
      %x = tt.load %q : !tt.ptr<f32>
      %e = math.exp %x : f32
      tt.store %q, %e : !tt.ptr<f32>
    }
  }
  tt.return
}

// -----

// A pointer that counts along may stop earlier, but not start later. An
// iteration that stores, or hands on something else, is not skipped.
// CHECK-LABEL: tt.func @others(
// CHECK: scf.for %{{.*}} = %c0_i32 to %arg2
// CHECK: scf.if
// CHECK: scf.for %{{.*}} = %c0_i32 to %arg2
// CHECK: scf.if
// CHECK: scf.for %{{.*}} = %c0_i32 to %arg2
// CHECK: scf.if
// CHECK: tt.return
tt.func @others(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %y:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %q = %px) -> (f32, !tt.ptr<f32>) : i32 {
    %c = arith.cmpi sge, %i, %m : i32
    %next = scf.if %c -> f32 {
      %x = tt.load %q : !tt.ptr<f32>
      %s = arith.addf %a, %x : f32
      scf.yield %s : f32
    } else {
      scf.yield %a : f32
    }
    %r = tt.addptr %q, %c1 : !tt.ptr<f32>, i32
    scf.yield %next, %r : f32, !tt.ptr<f32>
  }
  %z = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> f32 : i32 {
    %c = arith.cmpi slt, %i, %m : i32
    %next = scf.if %c -> f32 {
      %s = arith.addf %a, %one : f32
      scf.yield %s : f32
    } else {
      scf.yield %a : f32
    }
    tt.store %py, %next : !tt.ptr<f32>
    scf.yield %next : f32
  }
  %w = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> f32 : i32 {
    %c = arith.cmpi slt, %i, %m : i32
    %next = scf.if %c -> f32 {
      %s = arith.addf %a, %one : f32
      scf.yield %s : f32
    } else {
      scf.yield %one : f32
    }
    scf.yield %next : f32
  }
  %sum = arith.addf %y#0, %z : f32
  %all = arith.addf %sum, %w : f32
  tt.store %py, %all : !tt.ptr<f32>
  tt.return
}
