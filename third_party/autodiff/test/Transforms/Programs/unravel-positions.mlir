// RUN: triton-autodiff-opt -autodiff-unravel-positions -split-input-file %s | FileCheck %s --check-prefix=OFFER
// RUN: triton-autodiff-opt "-autodiff-unravel-positions=lengths=16,4" -canonicalize -cse -split-input-file %s | FileCheck %s
// RUN: triton-autodiff-opt "-autodiff-unravel-positions=lengths=16,2,2" -canonicalize -cse -split-input-file %s | FileCheck %s --check-prefix=THREE
// RUN: triton-autodiff-opt "-autodiff-unravel-positions=all-wanted=false wanted=0" -split-input-file %s | FileCheck %s --check-prefix=OTHER

// Nobody asks for what positions share.
// OTHER-NOT: autodiff.offer

// Each column has an element of b: it is loaded, and later added to, once for
// four rows. The end of the line is that of the last row. What was said of the
// alignment of a tile with one axis, goes.
// OFFER: autodiff.offer #autodiff.unravel<[arg4, div(arg3, arg4)] lanes = 64>
// OFFER-LABEL: tt.func public @column(
// OFFER: arith.remsi %{{.*}} : tensor<64xi32>
// CHECK: autodiff.rearranged
// CHECK-SAME: assumed [arg4 - 1, arg3 - 1, 0 - rem(arg3, arg4), grid0 * 64 - arg3,
// CHECK-SAME: checks [<distinct 2 at
// CHECK-SAME: unraveled[16, 4]
// CHECK-LABEL: tt.func public @column(
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : i32
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : i32
// CHECK: %[[PROGRAM:.*]] = tt.get_program_id x
// CHECK: %[[PLACE:.*]] = arith.remsi %[[PROGRAM]], %[[COUNT:.*]] : i32
// CHECK: %[[REST:.*]] = arith.divsi %[[PROGRAM]], %[[COUNT]] : i32
// CHECK: arith.muli %[[PLACE]], %[[C16]]
// CHECK: %[[COLUMN:.*]] = arith.addi %{{.*}} : tensor<16x1xi32>
// CHECK: %[[INROW:.*]] = arith.cmpi slt, %[[COLUMN]], %{{.*}} : tensor<16x1xi32>
// CHECK: arith.muli %[[REST]], %[[C4]]
// CHECK: %[[ROW:.*]] = arith.addi %{{.*}} : tensor<1x4xi32>
// CHECK: arith.cmpi slt, %[[ROW]], %{{.*}} : tensor<1x4xi32>
// CHECK: %[[FIRST:.*]] = arith.muli %[[ROW]], %{{.*}} : tensor<1x4xi32>
// CHECK: %[[P:.*]] = arith.addi %{{.*}}, %{{.*}} : tensor<16x4xi32>
// CHECK: %[[TWICE:.*]] = arith.muli %[[COLUMN]], %{{[^ ]*}} : tensor<16x1xi32>
// CHECK: %[[BP:.*]] = tt.addptr %{{.*}}, %[[TWICE]] : tensor<16x1x!tt.ptr<f32>>
// CHECK: %[[X:.*]] = tt.load %{{.*}}, %[[MASK:.*]] : tensor<16x4x!tt.ptr<f32>>
// CHECK: %[[B:.*]] = tt.load %[[BP]], %[[INROW]] : tensor<16x1x!tt.ptr<f32>>
// CHECK: %[[ALL:.*]] = tt.broadcast %[[B]] : tensor<16x1xf32> -> tensor<16x4xf32>
// CHECK: %[[V:.*]] = arith.mulf %[[X]], %[[ALL]]
// CHECK: tt.store %{{.*}}, %[[V]], %[[MASK]] : tensor<16x4x!tt.ptr<f32>>
tt.func public @column(%x: !tt.ptr<f32>, %b: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %c: i32) {
  %size = arith.constant 64 : i32
  %lanes = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %program = tt.get_program_id x : i32
  %first = arith.muli %program, %size : i32
  %f = tt.splat %first : i32 -> tensor<64xi32>
  %p = arith.addi %f, %lanes : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %bs = tt.splat %b : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ns = tt.splat %n : i32 -> tensor<64xi32>
  %m = arith.cmpi slt, %p, %ns : tensor<64xi32>
  %cs = tt.splat %c : i32 -> tensor<64xi32>
  %r = arith.remsi %p, %cs : tensor<64xi32>
  %two = arith.constant dense<2> : tensor<64xi32>
  %q = arith.muli %r, %two {tt.contiguity = dense<1> : tensor<1xi32>, tt.divisibility = dense<2> : tensor<1xi32>} : tensor<64xi32>
  %xp = tt.addptr %xs, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %bp = tt.addptr %bs, %q : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %yp = tt.addptr %ys, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %xv = tt.load %xp, %m : tensor<64x!tt.ptr<f32>>
  %bv = tt.load %bp, %m : tensor<64x!tt.ptr<f32>>
  %v = arith.mulf %xv, %bv : tensor<64xf32>
  tt.store %yp, %v, %m : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// A channel is a digit between two others. The program's places for it are the
// lowest: what is summed over the others may be summed by one program.
// OFFER: [arg5, arg4, div(arg3, arg4 * arg5)]
// THREE-LABEL: tt.func public @channel(
// THREE: %[[PROGRAM:.*]] = tt.get_program_id x
// THREE: %[[PLACE:.*]] = arith.remsi %[[PROGRAM]], %{{.*}} : i32
// THREE: %[[SIZE:.*]] = arith.muli %[[PLACE]], %{{.*}} : i32
// THREE: %[[SPLAT:.*]] = tt.splat %[[SIZE]] : i32 -> tensor<1x2x1xi32>
// THREE: %[[CHANNEL:.*]] = arith.addi %[[SPLAT]]
// THREE: tt.addptr %{{.*}}, %[[CHANNEL]] : tensor<1x2x1x!tt.ptr<f32>>
tt.func public @channel(%x: !tt.ptr<f32>, %b: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %c: i32, %s: i32) {
  %size = arith.constant 64 : i32
  %lanes = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %program = tt.get_program_id x : i32
  %first = arith.muli %program, %size : i32
  %f = tt.splat %first : i32 -> tensor<64xi32>
  %p = arith.addi %f, %lanes : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %bs = tt.splat %b : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ns = tt.splat %n : i32 -> tensor<64xi32>
  %m = arith.cmpi slt, %p, %ns : tensor<64xi32>
  %cs = tt.splat %c : i32 -> tensor<64xi32>
  %ss = tt.splat %s : i32 -> tensor<64xi32>
  %r = arith.divsi %p, %ss : tensor<64xi32>
  %q = arith.remsi %r, %cs : tensor<64xi32>
  %xp = tt.addptr %xs, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %bp = tt.addptr %bs, %q : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %yp = tt.addptr %ys, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %xv = tt.load %xp, %m : tensor<64x!tt.ptr<f32>>
  %bv = tt.load %bp, %m : tensor<64x!tt.ptr<f32>>
  %v = arith.mulf %xv, %bv : tensor<64xf32>
  tt.store %yp, %v, %m : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// Without a mask, all programs are on the line, and rows must fill their tiles.
// The remainder is the difference to a multiple.
// OFFER: [10, div(grid0 * 64, 10)]
// CHECK: 0 - rem(div(grid0 * 64, 10), 4)
// CHECK-LABEL: tt.func public @unmasked(
// CHECK: %[[COLUMN:.*]] = tt.expand_dims %{{.*}} -> tensor<16x1xi32>
// CHECK: %[[INROW:.*]] = arith.cmpi slt, %[[COLUMN]], %{{.*}} : tensor<16x1xi32>
// CHECK: tt.load %{{.*}}, %[[INROW]] : tensor<16x1x!tt.ptr<f32>>
tt.func public @unmasked(%x: !tt.ptr<f32>, %b: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %c: i32) {
  %size = arith.constant 64 : i32
  %lanes = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %program = tt.get_program_id x : i32
  %first = arith.muli %program, %size : i32
  %f = tt.splat %first : i32 -> tensor<64xi32>
  %p = arith.addi %f, %lanes : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %bs = tt.splat %b : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %cs = arith.constant dense<10> : tensor<64xi32>
  %r = arith.divsi %p, %cs : tensor<64xi32>
  %t = arith.muli %r, %cs : tensor<64xi32>
  %q = arith.subi %p, %t : tensor<64xi32>
  %xp = tt.addptr %xs, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %bp = tt.addptr %bs, %q : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %yp = tt.addptr %ys, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %xv = tt.load %xp : tensor<64x!tt.ptr<f32>>
  %bv = tt.load %bp : tensor<64x!tt.ptr<f32>>
  %v = arith.mulf %xv, %bv : tensor<64xf32>
  tt.store %yp, %v : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// Lanes meet.
// OFFER-NOT: autodiff.offer
// OFFER-LABEL: tt.func public @summed(
// CHECK-NOT: autodiff.rearranged
// CHECK-LABEL: tt.func public @summed(
tt.func public @summed(%x: !tt.ptr<f32>, %b: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %c: i32) {
  %size = arith.constant 64 : i32
  %lanes = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %program = tt.get_program_id x : i32
  %first = arith.muli %program, %size : i32
  %f = tt.splat %first : i32 -> tensor<64xi32>
  %p = arith.addi %f, %lanes : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %bs = tt.splat %b : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ns = tt.splat %n : i32 -> tensor<64xi32>
  %m = arith.cmpi slt, %p, %ns : tensor<64xi32>
  %cs = tt.splat %c : i32 -> tensor<64xi32>
  %q = arith.remsi %p, %cs : tensor<64xi32>
  %xp = tt.addptr %xs, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %bp = tt.addptr %bs, %q : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %yp = tt.addptr %ys, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %xv = tt.load %xp, %m : tensor<64x!tt.ptr<f32>>
  %bv = tt.load %bp, %m : tensor<64x!tt.ptr<f32>>
  %s = "tt.reduce"(%xv) <{axis = 0 : i32}> ({
  ^bb0(%l: f32, %r: f32):
    %a = arith.addf %l, %r : f32
    tt.reduce.return %a : f32
  }) : (tensor<64xf32>) -> f32
  %v = arith.mulf %xv, %bv : tensor<64xf32>
  tt.store %yp, %v, %m : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// What is stored depends on the lane.
// OFFER-NOT: autodiff.offer
// OFFER-LABEL: tt.func public @lane(
// CHECK-NOT: autodiff.rearranged
// CHECK-LABEL: tt.func public @lane(
tt.func public @lane(%x: !tt.ptr<f32>, %b: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %c: i32) {
  %size = arith.constant 64 : i32
  %lanes = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %program = tt.get_program_id x : i32
  %first = arith.muli %program, %size : i32
  %f = tt.splat %first : i32 -> tensor<64xi32>
  %p = arith.addi %f, %lanes : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %bs = tt.splat %b : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ns = tt.splat %n : i32 -> tensor<64xi32>
  %m = arith.cmpi slt, %p, %ns : tensor<64xi32>
  %cs = tt.splat %c : i32 -> tensor<64xi32>
  %q = arith.remsi %p, %cs : tensor<64xi32>
  %xp = tt.addptr %xs, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %bp = tt.addptr %bs, %q : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %yp = tt.addptr %ys, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %xv = tt.load %xp, %m : tensor<64x!tt.ptr<f32>>
  %bv = tt.load %bp, %m : tensor<64x!tt.ptr<f32>>
  %l = arith.sitofp %lanes : tensor<64xi32> to tensor<64xf32>
  %v = arith.mulf %xv, %bv : tensor<64xf32>
  tt.store %yp, %l, %m : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// It depends on the number of the program.
// OFFER-NOT: autodiff.offer
// OFFER-LABEL: tt.func public @program(
// CHECK-NOT: autodiff.rearranged
// CHECK-LABEL: tt.func public @program(
tt.func public @program(%x: !tt.ptr<f32>, %b: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %c: i32) {
  %size = arith.constant 64 : i32
  %lanes = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %program = tt.get_program_id x : i32
  %first = arith.muli %program, %size : i32
  %f = tt.splat %first : i32 -> tensor<64xi32>
  %p = arith.addi %f, %lanes : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %bs = tt.splat %b : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ns = tt.splat %n : i32 -> tensor<64xi32>
  %m = arith.cmpi slt, %p, %ns : tensor<64xi32>
  %cs = tt.splat %c : i32 -> tensor<64xi32>
  %q = arith.remsi %p, %cs : tensor<64xi32>
  %xp = tt.addptr %xs, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %bp = tt.addptr %bs, %q : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %yp = tt.addptr %ys, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %xv = tt.load %xp, %m : tensor<64x!tt.ptr<f32>>
  %bv = tt.load %bp, %m : tensor<64x!tt.ptr<f32>>
  %i = arith.sitofp %program : i32 to f32
  %l = tt.splat %i : f32 -> tensor<64xf32>
  %v = arith.mulf %xv, %bv : tensor<64xf32>
  tt.store %yp, %l, %m : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// A number of 16 bits is not a part of the position.
// OFFER-NOT: autodiff.offer
// OFFER-LABEL: tt.func public @short(
// CHECK-NOT: autodiff.rearranged
// CHECK-LABEL: tt.func public @short(
tt.func public @short(%x: !tt.ptr<f32>, %b: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %c: i32) {
  %size = arith.constant 64 : i32
  %lanes = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %program = tt.get_program_id x : i32
  %first = arith.muli %program, %size : i32
  %f = tt.splat %first : i32 -> tensor<64xi32>
  %p = arith.addi %f, %lanes : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %bs = tt.splat %b : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ns = tt.splat %n : i32 -> tensor<64xi32>
  %m = arith.cmpi slt, %p, %ns : tensor<64xi32>
  %cs = arith.constant dense<10> : tensor<64xi16>
  %s = arith.trunci %p : tensor<64xi32> to tensor<64xi16>
  %q = arith.remsi %s, %cs : tensor<64xi16>
  %xp = tt.addptr %xs, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %bp = tt.addptr %bs, %q : tensor<64x!tt.ptr<f32>>, tensor<64xi16>
  %yp = tt.addptr %ys, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %xv = tt.load %xp, %m : tensor<64x!tt.ptr<f32>>
  %bv = tt.load %bp, %m : tensor<64x!tt.ptr<f32>>
  %v = arith.mulf %xv, %bv : tensor<64xf32>
  tt.store %yp, %v, %m : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// A grid of rows and columns would have another number of programs.
// OFFER-NOT: autodiff.offer
// OFFER-LABEL: tt.func public @count(
// CHECK-NOT: autodiff.rearranged
// CHECK-LABEL: tt.func public @count(
tt.func public @count(%x: !tt.ptr<f32>, %b: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %c: i32) {
  %size = arith.constant 64 : i32
  %lanes = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %program = tt.get_program_id x : i32
  %first = arith.muli %program, %size : i32
  %f = tt.splat %first : i32 -> tensor<64xi32>
  %p = arith.addi %f, %lanes : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %bs = tt.splat %b : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ns = tt.splat %n : i32 -> tensor<64xi32>
  %m = arith.cmpi slt, %p, %ns : tensor<64xi32>
  %count = tt.get_num_programs x : i32
  %cs = tt.splat %count : i32 -> tensor<64xi32>
  %q = arith.remsi %p, %cs : tensor<64xi32>
  %xp = tt.addptr %xs, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %bp = tt.addptr %bs, %q : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %yp = tt.addptr %ys, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %xv = tt.load %xp, %m : tensor<64x!tt.ptr<f32>>
  %bv = tt.load %bp, %m : tensor<64x!tt.ptr<f32>>
  %v = arith.mulf %xv, %bv : tensor<64xf32>
  tt.store %yp, %v, %m : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// Numbers do not divide one another, as far as is known.
// OFFER-NOT: autodiff.offer
// OFFER-LABEL: tt.func public @others(
// CHECK-NOT: autodiff.rearranged
// CHECK-LABEL: tt.func public @others(
tt.func public @others(%x: !tt.ptr<f32>, %b: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %c: i32, %s: i32) {
  %size = arith.constant 64 : i32
  %lanes = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %program = tt.get_program_id x : i32
  %first = arith.muli %program, %size : i32
  %f = tt.splat %first : i32 -> tensor<64xi32>
  %p = arith.addi %f, %lanes : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %bs = tt.splat %b : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ns = tt.splat %n : i32 -> tensor<64xi32>
  %m = arith.cmpi slt, %p, %ns : tensor<64xi32>
  %cs = tt.splat %c : i32 -> tensor<64xi32>
  %ss = tt.splat %s : i32 -> tensor<64xi32>
  %r = arith.divsi %p, %ss : tensor<64xi32>
  %t = arith.remsi %p, %cs : tensor<64xi32>
  %q = arith.addi %r, %t : tensor<64xi32>
  %xp = tt.addptr %xs, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %bp = tt.addptr %bs, %q : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %yp = tt.addptr %ys, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %xv = tt.load %xp, %m : tensor<64x!tt.ptr<f32>>
  %bv = tt.load %bp, %m : tensor<64x!tt.ptr<f32>>
  %v = arith.mulf %xv, %bv : tensor<64xf32>
  tt.store %yp, %v, %m : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// Addresses are sums already.
// OFFER-NOT: autodiff.offer
// OFFER-LABEL: tt.func public @affine(
// CHECK-NOT: autodiff.rearranged
// CHECK-LABEL: tt.func public @affine(
tt.func public @affine(%x: !tt.ptr<f32>, %b: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %c: i32) {
  %size = arith.constant 64 : i32
  %lanes = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %program = tt.get_program_id x : i32
  %first = arith.muli %program, %size : i32
  %f = tt.splat %first : i32 -> tensor<64xi32>
  %p = arith.addi %f, %lanes : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %bs = tt.splat %b : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ns = tt.splat %n : i32 -> tensor<64xi32>
  %m = arith.cmpi slt, %p, %ns : tensor<64xi32>
  %cs = tt.splat %c : i32 -> tensor<64xi32>
  %q = arith.remsi %p, %cs : tensor<64xi32>
  %xp = tt.addptr %xs, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %bp = tt.addptr %bs, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %yp = tt.addptr %ys, %p : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %xv = tt.load %xp, %m : tensor<64x!tt.ptr<f32>>
  %bv = tt.load %bp, %m : tensor<64x!tt.ptr<f32>>
  %l = arith.sitofp %q : tensor<64xi32> to tensor<64xf32>
  %v = arith.mulf %xv, %bv : tensor<64xf32>
  tt.store %yp, %l, %m : tensor<64x!tt.ptr<f32>>
  tt.return
}
