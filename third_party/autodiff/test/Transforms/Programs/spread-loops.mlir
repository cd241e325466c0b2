// RUN: triton-autodiff-opt -autodiff-spread-loops -split-input-file %s | FileCheck %s

// Rows are independent, and stored apart: each becomes a program.
// CHECK: autodiff.rearranged <[max(arg2, 0), grid1, grid2]
// CHECK-SAME: assumed [grid0 - 1, 2147483647 - arg2]
// CHECK-SAME: checks [<distinct 1 at
// CHECK-LABEL: tt.func public @rows(
// CHECK: %[[PID:.*]] = tt.get_program_id x
// CHECK-NOT: scf.for
// CHECK: arith.muli %[[PID]], %{{.*}} : i32
// CHECK-NOT: scf.for
// CHECK: tt.store
tt.func public @rows(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %p = tt.get_program_id x : i32
  %s = tt.get_num_programs x : i32
  %c16 = arith.constant 16 : i32
  %lanes = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  scf.for %i = %p to %n step %s : i32 {
    %first = arith.muli %i, %c16 : i32
    %f = tt.splat %first : i32 -> tensor<16xi32>
    %o = arith.addi %f, %lanes : tensor<16xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %xp = tt.addptr %xs, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %v = tt.load %xp : tensor<16x!tt.ptr<f32>>
    %e = math.exp %v : tensor<16xf32>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %yp = tt.addptr %ys, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    tt.store %yp, %e : tensor<16x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// Steps that the kernel is compiled with, along another axis: as many as there
// are programs, or no fewer than there is work. A number is counted beside.
// CHECK: autodiff.rearranged
// CHECK-SAME: 65535 - arg2
// CHECK-SAME: , max(min(
// CHECK-SAME: min(
// CHECK-LABEL: tt.func public @counted(
// CHECK: %[[PID:.*]] = tt.get_program_id y
// CHECK-NOT: scf.for
// CHECK: %[[BEFORE:.*]] = arith.subi %[[PID]], %{{.*}} : i32
// CHECK: %[[NEXT:.*]] = arith.addi %[[BEFORE]], %{{.*}} : i32
// CHECK: tt.addptr %{{.*}}, %[[NEXT]]
// CHECK: tt.store
tt.func public @counted(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %p = tt.get_program_id y : i32
  %s = arith.constant 8 : i32
  %before = arith.subi %p, %s : i32
  %last = scf.for %i = %p to %n step %s iter_args(%number = %before) -> (i32) : i32 {
    %xp = tt.addptr %x, %i : !tt.ptr<f32>, i32
    %v = tt.load %xp : !tt.ptr<f32>
    %next = arith.addi %number, %s : i32
    %yp = tt.addptr %y, %next : !tt.ptr<f32>, i32
    tt.store %yp, %v : !tt.ptr<f32>
    scf.yield %next : i32
  }
  tt.return
}

// -----

// Places that advance as far as the rows that are left out.
// CHECK: autodiff.rearranged
// CHECK-LABEL: tt.func public @advanced(
// CHECK: %[[PID:.*]] = tt.get_program_id x
// CHECK-NOT: scf.for
// CHECK: %[[PLACE:.*]] = arith.muli %[[PID]], %{{.*}} : i32
// CHECK: tt.addptr %{{.*}}, %[[PLACE]]
// CHECK: tt.store
tt.func public @advanced(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %stride: i32) {
  %p = tt.get_program_id x : i32
  %s = tt.get_num_programs x : i32
  %first = arith.muli %p, %stride : i32
  %skipped = arith.muli %s, %stride : i32
  %last = scf.for %i = %p to %n step %s iter_args(%place = %first) -> (i32) : i32 {
    %xp = tt.addptr %x, %place : !tt.ptr<f32>, i32
    %v = tt.load %xp : !tt.ptr<f32>
    %yp = tt.addptr %y, %i : !tt.ptr<f32>, i32
    tt.store %yp, %v : !tt.ptr<f32>
    %next = arith.addi %place, %skipped : i32
    scf.yield %next : i32
  }
  tt.return
}

// -----

// CHECK-NOT: autodiff.rearranged
// CHECK-LABEL: tt.func public @elsewhere(
// CHECK: scf.for
tt.func public @elsewhere(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %stride: i32) {
  %p = tt.get_program_id x : i32
  %s = tt.get_num_programs x : i32
  %first = arith.muli %p, %stride : i32
  %last = scf.for %i = %p to %n step %s iter_args(%place = %first) -> (i32) : i32 {
    %xp = tt.addptr %x, %place : !tt.ptr<f32>, i32
    %v = tt.load %xp : !tt.ptr<f32>
    %yp = tt.addptr %y, %i : !tt.ptr<f32>, i32
    tt.store %yp, %v : !tt.ptr<f32>
    %next = arith.addi %place, %s : i32
    scf.yield %next : i32
  }
  tt.return
}

// -----

// One reads what another one has stored.
// CHECK-NOT: autodiff.rearranged
// CHECK-LABEL: tt.func public @in_place(
// CHECK: scf.for
tt.func public @in_place(%x: !tt.ptr<f32>, %n: i32) {
  %p = tt.get_program_id x : i32
  %s = tt.get_num_programs x : i32
  scf.for %i = %p to %n step %s : i32 {
    %xp = tt.addptr %x, %i : !tt.ptr<f32>, i32
    %v = tt.load %xp : !tt.ptr<f32>
    %e = math.exp %v : f32
    tt.store %xp, %e : !tt.ptr<f32>
  }
  tt.return
}

// -----

// What is stored depends on the program, in a branch before the loop.
// CHECK-NOT: autodiff.rearranged
// CHECK-LABEL: tt.func public @numbered(
// CHECK: scf.for
tt.func public @numbered(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %c: i1) {
  %p = tt.get_program_id x : i32
  %s = tt.get_num_programs x : i32
  %zero = arith.constant 0 : i32
  %k = scf.if %c -> i32 {
    scf.yield %p : i32
  } else {
    scf.yield %zero : i32
  }
  scf.for %i = %p to %n step %s : i32 {
    %xp = tt.addptr %x, %i : !tt.ptr<f32>, i32
    %v = tt.load %xp : !tt.ptr<f32>
    %f = arith.sitofp %k : i32 to f32
    %e = arith.mulf %v, %f : f32
    %yp = tt.addptr %y, %i : !tt.ptr<f32>, i32
    tt.store %yp, %e : !tt.ptr<f32>
  }
  tt.return
}

// -----

// Nobody can tell whether the last store decides.
// CHECK-NOT: autodiff.rearranged
// CHECK-LABEL: tt.func public @scattered(
// CHECK: scf.for
tt.func public @scattered(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %t: !tt.ptr<i32>, %n: i32) {
  %p = tt.get_program_id x : i32
  %s = tt.get_num_programs x : i32
  scf.for %i = %p to %n step %s : i32 {
    %tp = tt.addptr %t, %i : !tt.ptr<i32>, i32
    %place = tt.load %tp : !tt.ptr<i32>
    %xp = tt.addptr %x, %i : !tt.ptr<f32>, i32
    %v = tt.load %xp : !tt.ptr<f32>
    %yp = tt.addptr %y, %place : !tt.ptr<f32>, i32
    tt.store %yp, %v : !tt.ptr<f32>
  }
  tt.return
}

// -----

// Sums don't ask who comes first; what they were before does.
// CHECK: autodiff.rearranged
// CHECK-NOT: checks
// CHECK-LABEL: tt.func public @added(
// CHECK-NOT: scf.for
// CHECK: tt.atomic_rmw
tt.func public @added(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %p = tt.get_program_id x : i32
  %s = tt.get_num_programs x : i32
  %true = arith.constant true
  scf.for %i = %p to %n step %s : i32 {
    %xp = tt.addptr %x, %i : !tt.ptr<f32>, i32
    %v = tt.load %xp : !tt.ptr<f32>
    %old = tt.atomic_rmw fadd, acq_rel, gpu, %y, %v, %true : (!tt.ptr<f32>, f32, i1) -> f32
  }
  tt.return
}

// -----

// CHECK-NOT: autodiff.rearranged
// CHECK-LABEL: tt.func public @tickets(
// CHECK: scf.for
tt.func public @tickets(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %z: !tt.ptr<f32>, %n: i32) {
  %p = tt.get_program_id x : i32
  %s = tt.get_num_programs x : i32
  %true = arith.constant true
  scf.for %i = %p to %n step %s : i32 {
    %xp = tt.addptr %x, %i : !tt.ptr<f32>, i32
    %v = tt.load %xp : !tt.ptr<f32>
    %old = tt.atomic_rmw fadd, acq_rel, gpu, %y, %v, %true : (!tt.ptr<f32>, f32, i1) -> f32
    %zp = tt.addptr %z, %i : !tt.ptr<f32>, i32
    tt.store %zp, %old : !tt.ptr<f32>
  }
  tt.return
}

// -----

// Blocks of a line: programs and steps are counted in them.
// CHECK: autodiff.rearranged
// CHECK-SAME: <[max(ceildiv(arg2, 16), 0), grid1, grid2]
// CHECK-SAME: 2147483647 - ceildiv(arg2, 16)
// CHECK-LABEL: tt.func public @blocks(
// CHECK: %[[PID:.*]] = tt.get_program_id x
// CHECK-NOT: scf.for
// CHECK: %[[FIRST:.*]] = arith.muli %[[PID]], %c16_i32
// CHECK: tt.splat %[[FIRST]]
// CHECK: tt.store
tt.func public @blocks(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %p = tt.get_program_id x : i32
  %s = tt.get_num_programs x : i32
  %c16 = arith.constant 16 : i32
  %lanes = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %start = arith.muli %p, %c16 : i32
  %step = arith.muli %s, %c16 : i32
  scf.for %i = %start to %n step %step : i32 {
    %f = tt.splat %i : i32 -> tensor<16xi32>
    %o = arith.addi %f, %lanes : tensor<16xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %xp = tt.addptr %xs, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %v = tt.load %xp : tensor<16x!tt.ptr<f32>>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %yp = tt.addptr %ys, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    tt.store %yp, %v : tensor<16x!tt.ptr<f32>>
  }
  tt.return
}
