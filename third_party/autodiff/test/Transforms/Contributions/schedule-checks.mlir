// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse -autodiff-lower-accumulates | FileCheck %s

// Program numbers computed from one id are enumerated by the launch, each with
// the stride that the address has.
// CHECK: autodiff.gradient <store 0 : {{.*}} checks [<bijective 0 at
// CHECK-SAME: <arg2 * 4 x [<1 x pids(div(pid0, arg4))>]>
// CHECK-SAME: <arg2 x [<1 x 4>]>
// CHECK-SAME: <arg3 x [<1 x pids(rem(pid0, arg4))>]>
// CHECK-LABEL: tt.func @grouped_bwd(
tt.func @grouped(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %sm: i32, %sn: i32, %n: i32) {
  %c4 = arith.constant 4 : i32
  %id = tt.get_program_id x : i32
  %m = arith.divsi %id, %n : i32
  %c = arith.remsi %id, %n : i32
  %m4 = arith.muli %m, %c4 : i32
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %0 = tt.splat %m4 : i32 -> tensor<4xi32>
  %1 = arith.addi %0, %i : tensor<4xi32>
  %2 = tt.splat %sm : i32 -> tensor<4xi32>
  %3 = arith.muli %1, %2 : tensor<4xi32>
  %4 = arith.muli %c, %sn : i32
  %5 = tt.splat %4 : i32 -> tensor<4xi32>
  %6 = arith.addi %3, %5 : tensor<4xi32>
  %p = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %q = tt.addptr %p, %6 : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %x = tt.load %q : tensor<4x!tt.ptr<f32>>
  %r = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %s = tt.addptr %r, %6 : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %s, %x : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// A loop over a row: the iteration is the high digit of the column, and the
// mask bounds the two together.
// CHECK: autodiff.gradient <store 0 : {{.*}} checks [<bijective 0 at
// CHECK-SAME: <4 x max(ceildiv(arg2, 4), 0)>
// CHECK-SAME: below arg2>
// CHECK-LABEL: tt.func @looped_bwd(
tt.func @looped(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %0 = tt.splat %n : i32 -> tensor<4xi32>
  %p = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %q = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  scf.for %j = %c0 to %n step %c4 : i32 {
    %1 = tt.splat %j : i32 -> tensor<4xi32>
    %o = arith.addi %1, %i : tensor<4xi32>
    %m = arith.cmpi slt, %o, %0 : tensor<4xi32>
    %2 = tt.addptr %p, %o : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    %x = tt.load %2, %m : tensor<4x!tt.ptr<f32>>
    %3 = tt.addptr %q, %o : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    tt.store %3, %x, %m : tensor<4x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// The same address in every iteration: contributions must add up.
// CHECK: autodiff.gradient <atomic 0 :
// CHECK-LABEL: tt.func @invariant_bwd(
// CHECK: scf.for
// CHECK: tt.atomic_rmw fadd, relaxed, gpu, %arg3,
tt.func @invariant(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %j = %c0 to %n step %c1 : i32 {
    %x = tt.load %px : !tt.ptr<f32>
    %q = tt.addptr %py, %j : !tt.ptr<f32>, i32
    tt.store %q, %x : !tt.ptr<f32>
  }
  tt.return
}

// -----

// A mask that data decide leaves elements out, whose gradient is zero then.
// CHECK: autodiff.gradient <store 0 :
// CHECK-SAME: init = zero
// CHECK-SAME: checks [<distinct
// CHECK-LABEL: tt.func @data_mask_bwd(
tt.func @data_mask(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %m: tensor<4xi1>) {
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %p = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %0 = tt.addptr %p, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %x = tt.load %0, %m : tensor<4x!tt.ptr<f32>>
  %q = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %1 = tt.addptr %q, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %1, %x : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// So does a branch.
// CHECK: autodiff.gradient <store 0 :
// CHECK-SAME: init = zero
// CHECK-SAME: checks [<distinct
// CHECK-LABEL: tt.func @branch_bwd(
tt.func @branch(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1) {
  %id = tt.get_program_id x : i32
  scf.if %c {
    %p = tt.addptr %px, %id : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %q = tt.addptr %py, %id : !tt.ptr<f32>, i32
    tt.store %q, %x : !tt.ptr<f32>
  }
  tt.return
}

// -----

// The pixels of a window: two loads in each of two rows, which are as far from
// one another as an argument says.
// CHECK: autodiff.gradient <store 0 : {{.*}} checks [<bijective
// CHECK-SAME: <2 x [<1 x 4>]>
// CHECK-SAME: <1 x [<1 x 2>]>
// CHECK-SAME: <arg2 x [<1 x 2>]>
// CHECK-LABEL: tt.func @window_bwd(
tt.func @window(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %width: i32) {
  %one = arith.constant 1 : i32
  %two = arith.constant dense<2> : tensor<4xi32>
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %k = arith.muli %i, %two : tensor<4xi32>
  %next = arith.addi %width, %one : i32
  %right = tt.addptr %px, %one : !tt.ptr<f32>, i32
  %below = tt.addptr %px, %width : !tt.ptr<f32>, i32
  %last = tt.addptr %px, %next : !tt.ptr<f32>, i32
  %b0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %b1 = tt.splat %right : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %b2 = tt.splat %below : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %b3 = tt.splat %last : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %q0 = tt.addptr %b0, %k : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %q1 = tt.addptr %b1, %k : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %q2 = tt.addptr %b2, %k : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %q3 = tt.addptr %b3, %k : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %x0 = tt.load %q0 : tensor<4x!tt.ptr<f32>>
  %x1 = tt.load %q1 : tensor<4x!tt.ptr<f32>>
  %x2 = tt.load %q2 : tensor<4x!tt.ptr<f32>>
  %x3 = tt.load %q3 : tensor<4x!tt.ptr<f32>>
  %s0 = arith.mulf %x0, %x1 : tensor<4xf32>
  %s1 = arith.mulf %x2, %x3 : tensor<4xf32>
  %s = arith.mulf %s0, %s1 : tensor<4xf32>
  %by = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %qy = tt.addptr %by, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %qy, %s : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// Chunks of a sequence, of which the last one may be shorter: a place in a chunk
// is a number with a bound of its own. A minimum bounds by both of its operands.
// CHECK: autodiff.gradient <store 0 : {{.*}} checks [<bijective
// CHECK-SAME: <1 x [<1 x 4>, <arg3 x grid0>] below arg2 chunk 1 below arg3>
// CHECK-LABEL: tt.func @chunks_bwd(
tt.func @chunks(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %length: i32, %chunk: i32) {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %id = tt.get_program_id x : i32
  %start = arith.muli %id, %chunk : i32
  %left = arith.subi %length, %start : i32
  %end = arith.minsi %chunk, %left : i32
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %ends = tt.splat %end : i32 -> tensor<4xi32>
  %mask = arith.cmpi slt, %i, %ends : tensor<4xi32>
  %bx = tt.addptr %px, %start : !tt.ptr<f32>, i32
  %px4 = tt.splat %bx : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %qx = tt.addptr %px4, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %x = tt.load %qx, %mask, %zero : tensor<4x!tt.ptr<f32>>
  %by = tt.addptr %py, %start : !tt.ptr<f32>, i32
  %py4 = tt.splat %by : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %qy = tt.addptr %py4, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %qy, %x, %mask : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// Of a line, whose positions are tiles and lanes, only the first program loads:
// its number is no other one beside the position, and others leave elements out.
// CHECK: autodiff.gradient <store 0 :
// CHECK-SAME: init = zero
// CHECK-SAME: checks [<distinct
// CHECK-SAME: <1 x [<4 x grid0>, <1 x 4>] below arg2>
// CHECK-LABEL: tt.func @first_bwd(
tt.func @first(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %id = tt.get_program_id x : i32
  %start = arith.muli %id, %c4 : i32
  %range = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %starts = tt.splat %start : i32 -> tensor<4xi32>
  %places = arith.addi %starts, %range : tensor<4xi32>
  %ends = tt.splat %n : i32 -> tensor<4xi32>
  %inside = arith.cmpi slt, %places, %ends : tensor<4xi32>
  %isfirst = arith.cmpi eq, %id, %c0 : i32
  %first = tt.splat %isfirst : i1 -> tensor<4xi1>
  %mask = arith.andi %inside, %first : tensor<4xi1>
  %px4 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %qx = tt.addptr %px4, %places : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %x = tt.load %qx, %mask, %zero : tensor<4x!tt.ptr<f32>>
  %py4 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %qy = tt.addptr %py4, %places : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %qy, %x, %inside : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// A mask with a lower end, in either order: where the index starts, and what it
// stays below.
// CHECK: autodiff.gradient <store 0 :
// CHECK-SAME: at arg2 * -1 [
// CHECK-SAME: <1 x [<1 x 8>] below arg3 from arg2>
// CHECK-LABEL: tt.func @behind_bwd(
tt.func @behind(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %m: i32) {
  %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  %0 = tt.splat %n : i32 -> tensor<8xi32>
  %1 = tt.splat %m : i32 -> tensor<8xi32>
  %from = arith.cmpi sge, %i, %0 : tensor<8xi32>
  %below = arith.cmpi slt, %i, %1 : tensor<8xi32>
  %mask = arith.andi %from, %below : tensor<8xi1>
  %at = arith.subi %i, %0 : tensor<8xi32>
  %p = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %q = tt.addptr %p, %at : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %x = tt.load %q, %mask : tensor<8x!tt.ptr<f32>>
  %r = tt.splat %py : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %s = tt.addptr %r, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.store %s, %x : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// A load in front of a loop that is an iteration before its first one.
// CHECK: autodiff.gradient <store 0 :
// CHECK-SAME: checks [<bijective 0 at 0
// CHECK-SAME: <1 x max({{.*}}, 0) + 1>
// CHECK-LABEL: tt.func @peeled_bwd(
// CHECK: tt.return
tt.func @peeled(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c1 = arith.constant 1 : i32
  %x0 = tt.load %px : !tt.ptr<f32>
  %h = scf.for %j = %c1 to %n step %c1 iter_args(%h = %x0) -> (f32) : i32 {
    %p = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %s = math.sin %h : f32
    %next = arith.addf %s, %x : f32
    scf.yield %next : f32
  }
  tt.store %py, %h : !tt.ptr<f32>
  tt.return
}

// -----

// Not so if it is one of the loop's own.
// CHECK: autodiff.gradient <atomic 0 :
// CHECK-LABEL: tt.func @repeated_bwd(
// CHECK: tt.return
tt.func @repeated(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x0 = tt.load %px : !tt.ptr<f32>
  %h = scf.for %j = %c0 to %n step %c1 iter_args(%h = %x0) -> (f32) : i32 {
    %p = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %s = math.sin %h : f32
    %next = arith.addf %s, %x : f32
    scf.yield %next : f32
  }
  tt.store %py, %h : !tt.ptr<f32>
  tt.return
}

// -----

// Of two stores to a place, the one that comes first in the backward takes all
// of the cotangent, before threads of the other one look there.
// CHECK-LABEL: tt.func @twice_bwd(
// CHECK: gpu.barrier
// CHECK: tt.atomic_rmw exch
// CHECK: gpu.barrier
// CHECK: tt.atomic_rmw exch
// CHECK-NOT: tt.atomic_rmw exch
// CHECK: tt.return
tt.func @twice(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  %y = math.sin %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A loop from a block of each program's own on, to an end that all have in
// common: programs and iterations are digits of one index, whose bound is that
// of the mask.
// CHECK: autodiff.gradient <store 0 : {{.*}} checks [<bijective
// CHECK-SAME: <1 x [<4 x grid0>,
// CHECK-SAME: <grid0 * 4 x max(ceildiv(arg2, grid0 * 4), 0)>, <1 x 4>] below arg2>
// CHECK-LABEL: tt.func @strided_bwd(
tt.func @strided(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c4 = arith.constant 4 : i32
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %id = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %start = arith.muli %id, %c4 : i32
  %step = arith.muli %programs, %c4 : i32
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %0 = tt.splat %n : i32 -> tensor<4xi32>
  %p = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %sum = scf.for %j = %start to %n step %step iter_args(%h = %zero) -> (tensor<4xf32>) : i32 {
    %1 = tt.splat %j : i32 -> tensor<4xi32>
    %2 = arith.addi %1, %i : tensor<4xi32>
    %mask = arith.cmpi slt, %2, %0 : tensor<4xi32>
    %q = tt.addptr %p, %2 : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    %x = tt.load %q, %mask, %zero : tensor<4x!tt.ptr<f32>>
    %next = arith.addf %h, %x : tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  }
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %4 = tt.splat %start : i32 -> tensor<4xi32>
  %5 = arith.addi %4, %i : tensor<4xi32>
  %s = tt.addptr %3, %5 : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %s, %sum : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// Without a mask it is the end of the loop, counted in blocks.
// CHECK: autodiff.gradient <store 0 : {{.*}} checks [<bijective
// CHECK-SAME: <4 x [<1 x grid0>,
// CHECK-SAME: <grid0 x max(ceildiv(arg2, grid0 * 4), 0)>] below ceildiv(arg2, 4)>
// CHECK-LABEL: tt.func @whole_bwd(
tt.func @whole(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c4 = arith.constant 4 : i32
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %id = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %start = arith.muli %id, %c4 : i32
  %step = arith.muli %programs, %c4 : i32
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %p = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %sum = scf.for %j = %start to %n step %step iter_args(%h = %zero) -> (tensor<4xf32>) : i32 {
    %1 = tt.splat %j : i32 -> tensor<4xi32>
    %2 = arith.addi %1, %i : tensor<4xi32>
    %q = tt.addptr %p, %2 : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    %x = tt.load %q : tensor<4x!tt.ptr<f32>>
    %next = arith.addf %h, %x : tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  }
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %4 = tt.splat %start : i32 -> tensor<4xi32>
  %5 = arith.addi %4, %i : tensor<4xi32>
  %s = tt.addptr %3, %5 : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %s, %sum : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// A quotient by zero is no number, in a launch, either; nor is what is made of
// it.
// CHECK: autodiff.gradient <store 0 : {{.*}} checks [<bijective 0 at div(1, 0) [
// CHECK-LABEL: tt.func @nowhere_bwd(
tt.func @nowhere(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %far = arith.divsi %one, %zero : i32
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %s = tt.splat %far : i32 -> tensor<4xi32>
  %at = arith.addi %i, %s : tensor<4xi32>
  %px = tt.splat %x : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %p = tt.addptr %px, %at : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %v = tt.load %p : tensor<4x!tt.ptr<f32>>
  %py = tt.splat %y : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %q = tt.addptr %py, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %q, %v : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// The number of an iteration may be below zero: its mask leaves that out.
// CHECK: autodiff.gradient <store 0 :
// CHECK-SAME: checks [<bijective 0 at -3 [<1 x [<1 x grid0>, <1 x 4>] from 3>
// CHECK-LABEL: tt.func @below_zero_bwd(
tt.func @below_zero(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %other = arith.constant 0.000000e+00 : f32
  %id = tt.get_program_id x : i32
  %from = arith.subi %id, %c3 : i32
  %to = arith.addi %id, %c1 : i32
  %sum = scf.for %i = %from to %to step %c1 iter_args(%s = %other) -> (f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %seen = arith.cmpi sge, %i, %c0 : i32
    %x = tt.load %p, %seen, %other : !tt.ptr<f32>
    %t = arith.addf %s, %x : f32
    scf.yield %t : f32
  }
  %q = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %q, %sum : !tt.ptr<f32>
  tt.return
}
