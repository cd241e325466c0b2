// RUN: triton-autodiff-opt -autodiff-batch-loops -split-input-file %s | FileCheck %s --check-prefix=OFFER
// RUN: triton-autodiff-opt -autodiff-batch-loops=length=4 -canonicalize -cse -split-input-file %s | FileCheck %s

// A row is read twice: its tiles are one, loaded once. A fourth iteration of
// three adds nothing; what it would load and store, masks leave out.
// OFFER: autodiff.offer #autodiff.batch<max(ceildiv(arg2, 16), 0) at_most 1024>
// OFFER-LABEL: tt.func public @masked(
// OFFER-COUNT-2: scf.for
// CHECK: autodiff.rearranged
// CHECK-SAME: assumed [4 - max(ceildiv(arg2, 16), 0), max(ceildiv(arg2, 16), 0) - 1
// CHECK-SAME: checks [<distinct 1 {{.*}}<16 x 4>, <1 x 16>
// CHECK-SAME: batched 4 [
// CHECK-LABEL: tt.func public @masked(
// CHECK-NOT: scf.for
// CHECK-DAG: %[[NUMBER:.*]] = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
// CHECK: %[[INDEX:.*]] = arith.muli %[[NUMBER]]
// CHECK: %[[REAL:.*]] = arith.cmpi slt, %[[INDEX]], %{{.*}} : tensor<4xi32>
// CHECK: %[[X:.*]] = tt.load %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x16x!tt.ptr<f32>>
// CHECK: %[[WHERE:.*]] = tt.expand_dims %[[REAL]] {axis = 1 : i32}
// CHECK: %[[ADDED:.*]] = tt.broadcast %[[WHERE]]
// CHECK: %[[SUMMANDS:.*]] = arith.select %[[ADDED]], %[[X]], %{{.*}} : tensor<4x16xi1>, tensor<4x16xf32>
// CHECK: "tt.reduce"(%[[SUMMANDS]]) <{axis = 0 : i32}>
// CHECK: (tensor<4x16xf32>) -> tensor<16xf32>
// CHECK: %[[TOTAL:.*]] = "tt.reduce"
// CHECK: (tensor<16xf32>) -> f32
// CHECK-NOT: tt.load
// CHECK: %[[SPLAT:.*]] = tt.splat %[[TOTAL]] : f32 -> tensor<4x16xf32>
// CHECK: %[[Y:.*]] = arith.mulf %[[X]], %[[SPLAT]]
// CHECK: tt.store %{{.*}}, %[[Y]], %{{.*}} : tensor<4x16x!tt.ptr<f32>>
tt.func public @masked(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %lower = arith.constant 0 : i32
  %step = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %lanes = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %ns = tt.splat %n : i32 -> tensor<16xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %sum = scf.for %i = %lower to %n step %step iter_args(%s = %zero) -> (tensor<16xf32>) : i32 {
    %f = tt.splat %i : i32 -> tensor<16xi32>
    %o = arith.addi %f, %lanes : tensor<16xi32>
    %m = arith.cmpi slt, %o, %ns : tensor<16xi32>
    %p = tt.addptr %xs, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %v = tt.load %p, %m, %zero : tensor<16x!tt.ptr<f32>>
    %t = arith.addf %s, %v : tensor<16xf32>
    scf.yield %t : tensor<16xf32>
  }
  %total = "tt.reduce"(%sum) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<16xf32>) -> f32
  %ts = tt.splat %total : f32 -> tensor<16xf32>
  scf.for %i = %lower to %n step %step : i32 {
    %f = tt.splat %i : i32 -> tensor<16xi32>
    %o = arith.addi %f, %lanes : tensor<16xi32>
    %m = arith.cmpi slt, %o, %ns : tensor<16xi32>
    %p = tt.addptr %xs, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %v = tt.load %p, %m, %zero : tensor<16x!tt.ptr<f32>>
    %w = arith.mulf %v, %ts : tensor<16xf32>
    %q = tt.addptr %ys, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    tt.store %q, %w, %m : tensor<16x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// Nothing leaves out a fourth iteration: there must be as many as on the axis.
// Scalars are an axis by themselves, and so is what advances beside the loop.
// OFFER: exact = true
// OFFER-LABEL: tt.func public @scalars(
// CHECK: autodiff.rearranged
// CHECK-SAME: assumed [4 - max(arg2, 0), max(arg2, 0) - 4]
// CHECK-LABEL: tt.func public @scalars(
// CHECK-SAME: %[[X:[a-z0-9]+]]: !tt.ptr<f32>, %{{[a-z0-9]+}}: !tt.ptr<f32>, %[[N:[a-z0-9]+]]: i32
// CHECK-NOT: scf.for
// CHECK-NOT: arith.cmpi
// CHECK: %[[PLACES:.*]] = tt.addptr %{{.*}}, %{{.*}} : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
// CHECK: %[[V:.*]] = tt.load %[[PLACES]] : tensor<4x!tt.ptr<f32>>
// CHECK: "tt.reduce"(%[[V]]) <{axis = 0 : i32}>
// CHECK: (tensor<4xf32>) -> f32
// CHECK: %[[END:.*]] = tt.addptr %[[X]]
// CHECK: tt.load %[[END]] : !tt.ptr<f32>
// CHECK: tt.store %{{.*}} : tensor<4x!tt.ptr<f32>>
tt.func public @scalars(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %lower = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %sum, %end = scf.for %i = %lower to %n step %one iter_args(%s = %zero, %p = %x) -> (f32, !tt.ptr<f32>) : i32 {
    %v = tt.load %p : !tt.ptr<f32>
    %t = arith.addf %s, %v : f32
    %next = tt.addptr %p, %one : !tt.ptr<f32>, i32
    scf.yield %t, %next : f32, !tt.ptr<f32>
  }
  %last = tt.load %end : !tt.ptr<f32>
  %total = arith.addf %sum, %last : f32
  scf.for %i = %lower to %n step %one : i32 {
    %p = tt.addptr %x, %i : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32>
    %w = arith.mulf %v, %total : f32
    %q = tt.addptr %y, %i : !tt.ptr<f32>, i32
    tt.store %q, %w : !tt.ptr<f32>
  }
  tt.return
}

// -----

// A maximum that the result depends on, whose ties the loop divides in its own
// way.
// OFFER-NOT: autodiff.offer
// OFFER-LABEL: tt.func public @maximum(
// CHECK-NOT: autodiff.rearranged
// CHECK-LABEL: tt.func public @maximum(
// CHECK: scf.for
tt.func public @maximum(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %lower = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %max = scf.for %i = %lower to %n step %one iter_args(%s = %zero) -> (f32) : i32 {
    %p = tt.addptr %x, %i : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32>
    %t = arith.maxnumf %s, %v : f32
    scf.yield %t : f32
  }
  scf.for %i = %lower to %n step %one : i32 {
    %p = tt.addptr %x, %i : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32>
    %w = arith.subf %v, %max : f32
    %q = tt.addptr %y, %i : !tt.ptr<f32>, i32
    tt.store %q, %w : !tt.ptr<f32>
  }
  tt.return
}

// -----

// An online softmax is put in the frame of its final maximum, which is one over
// the axis. The result does not depend on it: it may as well be that of a tile.
// OFFER: autodiff.offer #autodiff.batch
// OFFER-LABEL: tt.func public @softmax(
// OFFER: scf.for {{.*}} -> (f32, f32)
// CHECK: autodiff.rearranged
// CHECK-LABEL: tt.func public @softmax(
// CHECK-NOT: scf.for
// CHECK: %[[X:.*]] = tt.load %{{.*}} : tensor<4x16x!tt.ptr<f32>>
// CHECK: %[[MS:.*]] = "tt.reduce"(%[[X]]) <{axis = 1 : i32}>
// CHECK: arith.maxnumf
// CHECK: %[[REAL:.*]] = arith.select %[[IS_REAL:.*]], %[[MS]], %{{.*}} : tensor<4xi1>, tensor<4xf32>
// CHECK: %[[M:.*]] = "tt.reduce"(%[[REAL]]) <{axis = 0 : i32}>
// CHECK: %[[SPLAT:.*]] = tt.splat %[[M]] : f32 -> tensor<4x16xf32>
// CHECK: %[[DISTANCE:.*]] = arith.subf %[[X]], %[[SPLAT]]
// CHECK: %[[E:.*]] = math.exp %[[DISTANCE]]
// CHECK: %[[ROWS:.*]] = "tt.reduce"(%[[E]]) <{axis = 1 : i32}>
// CHECK: %[[ADDED:.*]] = arith.select %[[IS_REAL]], %[[ROWS]], %{{.*}} : tensor<4xi1>, tensor<4xf32>
// CHECK: %[[SUM:.*]] = "tt.reduce"(%[[ADDED]]) <{axis = 0 : i32}>
// CHECK: %[[SUMS:.*]] = tt.splat %[[SUM]]
// CHECK: %[[Y:.*]] = arith.divf %[[E]], %[[SUMS]]
// CHECK: tt.store %{{.*}}, %[[Y]]
tt.func public @softmax(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %lower = arith.constant 0 : i32
  %step = arith.constant 16 : i32
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0xFF800000 : f32
  %nones = arith.constant dense<0xFF800000> : tensor<16xf32>
  %lanes = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %ns = tt.splat %n : i32 -> tensor<16xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %r:2 = scf.for %i = %lower to %n step %step iter_args(%m = %none, %s = %zero) -> (f32, f32) : i32 {
    %f = tt.splat %i : i32 -> tensor<16xi32>
    %o = arith.addi %f, %lanes : tensor<16xi32>
    %in = arith.cmpi slt, %o, %ns : tensor<16xi32>
    %p = tt.addptr %xs, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %v = tt.load %p, %in, %nones : tensor<16x!tt.ptr<f32>>
    %max = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<16xf32>) -> f32
    %m1 = arith.maxnumf %m, %max : f32
    %d = arith.subf %m, %m1 : f32
    %scale = math.exp %d : f32
    %s1 = arith.mulf %s, %scale : f32
    %m1s = tt.splat %m1 : f32 -> tensor<16xf32>
    %d1 = arith.subf %v, %m1s : tensor<16xf32>
    %e = math.exp %d1 : tensor<16xf32>
    %sum = "tt.reduce"(%e) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<16xf32>) -> f32
    %s2 = arith.addf %s1, %sum : f32
    scf.yield %m1, %s2 : f32, f32
  }
  scf.for %i = %lower to %n step %step : i32 {
    %f = tt.splat %i : i32 -> tensor<16xi32>
    %o = arith.addi %f, %lanes : tensor<16xi32>
    %in = arith.cmpi slt, %o, %ns : tensor<16xi32>
    %p = tt.addptr %xs, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %v = tt.load %p, %in, %nones : tensor<16x!tt.ptr<f32>>
    %ms = tt.splat %r#0 : f32 -> tensor<16xf32>
    %d = arith.subf %v, %ms : tensor<16xf32>
    %e = math.exp %d : tensor<16xf32>
    %ss = tt.splat %r#1 : f32 -> tensor<16xf32>
    %w = arith.divf %e, %ss : tensor<16xf32>
    %q = tt.addptr %ys, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    tt.store %q, %w, %in : tensor<16x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// Weights that all programs share get sums over the rows, in registers, too.
// OFFER: autodiff.offer #autodiff.batch
// OFFER-SAME: at_most 512
// OFFER-LABEL: tt.func public @weights(
// CHECK-LABEL: tt.func public @weights(
// CHECK-NOT: scf.for
tt.func public @weights(%x: !tt.ptr<f32>, %w: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %lower = arith.constant 0 : i32
  %step = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %row = tt.get_program_id x : i32
  %start = arith.muli %row, %n : i32
  %x_row = tt.addptr %x, %start : !tt.ptr<f32>, i32
  %y_row = tt.addptr %y, %start : !tt.ptr<f32>, i32
  %lanes = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %ns = tt.splat %n : i32 -> tensor<16xi32>
  %xs = tt.splat %x_row : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ws = tt.splat %w : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ys = tt.splat %y_row : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %sum = scf.for %i = %lower to %n step %step iter_args(%s = %zero) -> (tensor<16xf32>) : i32 {
    %f = tt.splat %i : i32 -> tensor<16xi32>
    %o = arith.addi %f, %lanes : tensor<16xi32>
    %m = arith.cmpi slt, %o, %ns : tensor<16xi32>
    %p = tt.addptr %xs, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %v = tt.load %p, %m, %zero : tensor<16x!tt.ptr<f32>>
    %t = arith.addf %s, %v : tensor<16xf32>
    scf.yield %t : tensor<16xf32>
  }
  scf.for %i = %lower to %n step %step : i32 {
    %f = tt.splat %i : i32 -> tensor<16xi32>
    %o = arith.addi %f, %lanes : tensor<16xi32>
    %m = arith.cmpi slt, %o, %ns : tensor<16xi32>
    %p = tt.addptr %xs, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %v = tt.load %p, %m, %zero : tensor<16x!tt.ptr<f32>>
    %q = tt.addptr %ws, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %u = tt.load %q, %m, %zero : tensor<16x!tt.ptr<f32>>
    %a = arith.mulf %v, %sum : tensor<16xf32>
    %b = arith.mulf %a, %u : tensor<16xf32>
    %r = tt.addptr %ys, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    tt.store %r, %b, %m : tensor<16x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// Rows that are read once, and one that the next iteration reads.
// OFFER-NOT: autodiff.offer
// OFFER-LABEL: tt.func public @once(
// CHECK-NOT: autodiff.rearranged
// CHECK-LABEL: tt.func public @once(
// CHECK: scf.for
tt.func public @once(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %lower = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %lower to %n step %one : i32 {
    %p = tt.addptr %x, %i : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32>
    %q = tt.addptr %y, %i : !tt.ptr<f32>, i32
    tt.store %q, %v : !tt.ptr<f32>
  }
  tt.return
}

// -----

// OFFER-NOT: autodiff.offer
// OFFER-LABEL: tt.func public @recurrence(
// CHECK-NOT: autodiff.rearranged
// CHECK-LABEL: tt.func public @recurrence(
// CHECK: scf.for
tt.func public @recurrence(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %lower = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %lower to %n step %one iter_args(%s = %zero) -> (f32) : i32 {
    %p = tt.addptr %x, %i : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32>
    %t = arith.addf %s, %v : f32
    scf.yield %t : f32
  }
  scf.for %i = %lower to %n step %one : i32 {
    %p = tt.addptr %x, %i : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32>
    %w = arith.mulf %v, %sum : f32
    %next = arith.addi %i, %one : i32
    %q = tt.addptr %x, %next : !tt.ptr<f32>, i32
    tt.store %q, %w : !tt.ptr<f32>
  }
  tt.return
}

// -----

// What a loop stores, the next one reads: it is handed on, where the mask has
// it stored, and is what the load gives other lanes.
// OFFER: autodiff.offer #autodiff.batch
// OFFER-LABEL: tt.func public @stored(
// OFFER-COUNT-2: scf.for
// CHECK-LABEL: tt.func public @stored(
// CHECK-DAG: %[[ONES:.*]] = arith.constant dense<1.000000e+00> : tensor<4x16xf32>
// CHECK: %[[V:.*]] = tt.load
// CHECK: %[[W:.*]] = arith.addf %[[V]], %[[V]]
// CHECK: tt.store %{{.*}}, %[[W]], %[[MASK:.*]] :
// CHECK-NOT: tt.load
// CHECK: %[[R:.*]] = arith.select %[[MASK]], %[[W]], %[[ONES]]
// CHECK: tt.store %{{.*}}, %[[R]], %[[MASK]]
tt.func public @stored(%x: !tt.ptr<f32>, %s: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %lower = arith.constant 0 : i32
  %step = arith.constant 16 : i32
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %lanes = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %ns = tt.splat %n : i32 -> tensor<16xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ss = tt.splat %s : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  scf.for %i = %lower to %n step %step : i32 {
    %f = tt.splat %i : i32 -> tensor<16xi32>
    %o = arith.addi %f, %lanes : tensor<16xi32>
    %m = arith.cmpi slt, %o, %ns : tensor<16xi32>
    %p = tt.addptr %xs, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %v = tt.load %p, %m : tensor<16x!tt.ptr<f32>>
    %w = arith.addf %v, %v : tensor<16xf32>
    %q = tt.addptr %ss, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    tt.store %q, %w, %m : tensor<16x!tt.ptr<f32>>
  }
  scf.for %i = %lower to %n step %step : i32 {
    %f = tt.splat %i : i32 -> tensor<16xi32>
    %o = arith.addi %f, %lanes : tensor<16xi32>
    %m = arith.cmpi slt, %o, %ns : tensor<16xi32>
    %q = tt.addptr %ss, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %v = tt.load %q, %m, %one : tensor<16x!tt.ptr<f32>>
    %p = tt.addptr %ys, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    tt.store %p, %v, %m : tensor<16x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// Other lanes of it than were stored: what they read would have to be saved.
// OFFER-NOT: autodiff.offer
// OFFER-LABEL: tt.func public @other_lanes(
// CHECK-NOT: autodiff.rearranged
// CHECK-LABEL: tt.func public @other_lanes(
// CHECK-COUNT-2: scf.for
tt.func public @other_lanes(%x: !tt.ptr<f32>, %s: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %lower = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %lower to %n step %one : i32 {
    %p = tt.addptr %x, %i : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32>
    %w = arith.addf %v, %v : f32
    %q = tt.addptr %s, %i : !tt.ptr<f32>, i32
    tt.store %q, %w : !tt.ptr<f32>
  }
  scf.for %i = %lower to %n step %one : i32 {
    %j = arith.subi %n, %i : i32
    %q = tt.addptr %s, %j : !tt.ptr<f32>, i32
    %v = tt.load %q : !tt.ptr<f32>
    %p = tt.addptr %y, %i : !tt.ptr<f32>, i32
    tt.store %p, %v : !tt.ptr<f32>
  }
  tt.return
}

// -----

// What is decided by a sum over the row would have to be saved, too.
// OFFER-NOT: autodiff.batch
// OFFER-LABEL: tt.func public @decided(
// CHECK-NOT: autodiff.launch
// CHECK-LABEL: tt.func public @decided(
// CHECK-COUNT-2: scf.for
tt.func public @decided(%x: !tt.ptr<f32>, %w: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %lower = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %lower to %n step %one iter_args(%s = %zero) -> (f32) : i32 {
    %p = tt.addptr %x, %i : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32>
    %t = arith.addf %s, %v : f32
    scf.yield %t : f32
  }
  %code = arith.fptosi %sum : f32 to i32
  %at = tt.addptr %w, %code : !tt.ptr<f32>, i32
  %factor = tt.load %at : !tt.ptr<f32>
  scf.for %i = %lower to %n step %one : i32 {
    %p = tt.addptr %x, %i : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32>
    %u = arith.mulf %v, %factor : f32
    %q = tt.addptr %y, %i : !tt.ptr<f32>, i32
    tt.store %q, %u : !tt.ptr<f32>
  }
  tt.return
}
