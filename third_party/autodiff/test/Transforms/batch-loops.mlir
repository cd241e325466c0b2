// RUN: triton-autodiff-opt -autodiff-batch-loops -split-input-file %s | FileCheck %s --check-prefix=OFFER
// RUN: triton-autodiff-opt -autodiff-batch-loops=length=4 -canonicalize -cse -split-input-file %s | FileCheck %s

// A row is read twice: its tiles are one, loaded once. A fourth iteration of
// three adds nothing; what it would load and store, masks leave out.
// OFFER: module attributes {autodiff.batch =
// OFFER-SAME: \22exact\22:false,\22most\22:512
// OFFER-SAME: \22trips\22:[\22max\22,[\22ceildiv\22,[\22arg\22,2],16],0]
// OFFER-LABEL: tt.func public @masked(
// OFFER-COUNT-2: scf.for
// CHECK: module attributes {autodiff.launch =
// CHECK-SAME: \22assumed\22:{{\[\[}}\22sub\22,4,[\22max\22,[\22ceildiv\22,[\22arg\22,2],16],0]],[\22sub\22,[\22max\22,[\22ceildiv\22,[\22arg\22,2],16],0],1{{\]\]}}
// CHECK-SAME: \22batch\22:{\22length\22:4,
// CHECK-SAME: \22checks\22:[{\22argument\22:1,
// CHECK-SAME: \22digits\22:{{\[\[}}16,4],[1,16{{\]\]}}
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
// OFFER: \22exact\22:true
// OFFER-LABEL: tt.func public @scalars(
// CHECK: module attributes {autodiff.launch =
// CHECK-SAME: \22assumed\22:{{\[\[}}\22sub\22,4,[\22max\22,[\22arg\22,2],0]],[\22sub\22,[\22max\22,[\22arg\22,2],0],4{{\]\]}}
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

// A maximum, whose ties the loop divides in its own way.
// OFFER-NOT: autodiff.batch
// OFFER-LABEL: tt.func public @maximum(
// CHECK-NOT: autodiff.launch
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

// Rows that are read once, and one that the next iteration reads.
// OFFER-NOT: autodiff.batch
// OFFER-LABEL: tt.func public @once(
// CHECK-NOT: autodiff.launch
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

// OFFER-NOT: autodiff.batch
// OFFER-LABEL: tt.func public @recurrence(
// CHECK-NOT: autodiff.launch
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
// OFFER: module attributes {autodiff.batch =
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
// OFFER-NOT: autodiff.batch
// OFFER-LABEL: tt.func public @other_lanes(
// CHECK-NOT: autodiff.launch
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
