// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse -autodiff-read-cotangents -autodiff-lower-accumulates \
// RUN:   -autodiff-tally-sums -canonicalize -cse | FileCheck %s

// A row of a table in half precision. It is stored if no other one is counted
// in its block, and added otherwise.
// CHECK: autodiff.buffer 0 <tally
// CHECK: autodiff.launch @row_bwd_round0 grid [ceildiv({{.*}}, 2048), 1, 1]
// CHECK: autodiff.launch @row_bwd_tally0 when {{.*}}extent{{.*}} options {num_warps = 1 : i32}
// CHECK-LABEL: tt.func @row_bwd(
// CHECK-SAME: %[[SUM:[a-z0-9]+]]: !tt.ptr<f32> {{[^%]*}}#autodiff.operand<gradient 0>
// CHECK-SAME: %[[TALLY:[a-z0-9]+]]: !tt.ptr<i32> {{[^%]*}}#autodiff.operand<buffer 0>
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: !tt.ptr<f16> {{[^%]*}}#autodiff.operand<rounded 0>
// CHECK-DAG: %[[MASK:.*]] = arith.cmpi slt
// CHECK: %[[D:.*]] = tt.load {{.*}} : tensor<8x!tt.ptr<f16>>
// CHECK: %[[COUNTS:.*]] = autodiff.size <min(1,
// CHECK: %[[ANY:.*]] = arith.cmpi ne, %[[COUNTS]]
// CHECK: %[[ALONE:.*]] = scf.if %[[ANY]] -> (i1)
// CHECK-NOT: tt.reduce
// CHECK: %[[START:.*]] = tt.ptr_to_int %{{.*}} : !tt.ptr<f32> -> i64
// CHECK: %[[BEGIN:.*]] = tt.ptr_to_int %[[SUM]]
// CHECK: %[[BYTES:.*]] = arith.subi %[[START]], %[[BEGIN]]
// CHECK: %[[FIRST:.*]] = arith.shrsi %[[BYTES]]
// CHECK: %[[LANES:.*]] = arith.minsi
// CHECK: %[[ACTIVE:.*]] = arith.cmpi sgt, %[[LANES]], %c0_i64
// CHECK: autodiff.size <pitch(arg0, 8)>
// CHECK: %[[AT:.*]] = tt.addptr %[[TALLY]]
// CHECK: %[[COUNT:.*]] = tt.load %[[AT]], %[[ACTIVE]]
// CHECK: %[[ONE:.*]] = arith.cmpi eq, %[[COUNT]], %c1_i32
// CHECK: scf.yield %[[ONE]]
// CHECK: scf.yield %false
// CHECK: %[[STORED:.*]] = tt.splat %[[ALONE]]
// CHECK: %[[ADDED:.*]] = arith.xori %[[STORED]]
// CHECK-DAG: %[[MS:.*]] = arith.andi %[[MASK]], %[[STORED]]
// CHECK-DAG: %[[MA:.*]] = arith.andi %[[MASK]], %[[ADDED]]
// CHECK: tt.store %{{.*}}, %[[D]], %[[MS]]
// CHECK: tt.atomic_rmw fadd, {{.*}}, %[[MA]]
// CHECK: tt.return

// CHECK-LABEL: tt.func @row_bwd_round0(
// CHECK: %[[ALL:.*]] = tt.load {{.*}} : tensor<8x256x!tt.ptr<i32>>
// CHECK: "tt.reduce"(%[[ALL]])
// CHECK: %[[SHARED:.*]] = arith.cmpi sgt, %{{.*}}, %c1_i32
// CHECK: scf.if %[[SHARED]]
// CHECK: scf.for
// CHECK: %[[COUNTS:.*]] = tt.load {{.*}} : tensor<256x!tt.ptr<i32>>
// CHECK: "tt.reduce"(%[[COUNTS]])
// CHECK: %[[HERE:.*]] = arith.cmpi sgt, %{{.*}}, %c1_i32
// CHECK: scf.if %[[HERE]]
// CHECK: arith.cmpi sgt, %[[COUNTS]]
// CHECK: %[[BEGUN:.*]] = arith.cmpi sge
// CHECK: %[[LEFT:.*]] = arith.cmpi slt
// CHECK: %[[MASK:.*]] = arith.andi %[[BEGUN]], %[[LEFT]]
// CHECK: %[[S:.*]] = tt.load %{{.*}}, %[[MASK]], {{.*}} : tensor<256x8x!tt.ptr<f32>>
// CHECK: %[[H:.*]] = arith.truncf %[[S]]
// CHECK: tt.store %{{.*}}, %[[H]], %[[MASK]]
// CHECK-NOT: tt.store

// CHECK-LABEL: tt.func @row_bwd_clear0(
// CHECK: %[[Z:.*]] = arith.constant dense<0.000000e+00> : tensor<256x8xf32>
// CHECK: scf.if
// CHECK: scf.for
// CHECK: scf.if
// CHECK-NOT: tt.load
// CHECK: tt.store %{{.*}}, %[[Z]]

// A run in several blocks counts twice in each.
// CHECK-LABEL: tt.func @row_bwd_tally0(
// CHECK-SAME: autodiff.role = "tally"
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : i32
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : i32
// CHECK-NOT: tensor
// CHECK: %[[OTHERS:.*]] = arith.trunci
// CHECK: %[[SEVERAL:.*]] = arith.cmpi sgt, %[[OTHERS]], %[[C0]]
// CHECK: %[[WEIGHT:.*]] = arith.select %[[SEVERAL]], %[[C2]], %[[C1]]
// CHECK: %[[N:.*]] = arith.addi %[[OTHERS]], %[[C1]]
// CHECK: %[[BLOCKS:.*]] = arith.select %{{.*}}, %[[N]], %[[C0]]
// CHECK: scf.for %{{.*}} = %[[C0]] to %[[BLOCKS]] step %[[C1]]
// CHECK: tt.atomic_rmw add, relaxed, gpu, %{{.*}}, %[[WEIGHT]]
// CHECK-NOT: tt.atomic_rmw
// CHECK: tt.return
tt.func @row(%px: !tt.ptr<f16>, %pi: !tt.ptr<i32>, %py: !tt.ptr<f16>, %n: i32) {
  %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  %bound = tt.splat %n : i32 -> tensor<8xi32>
  %mask = arith.cmpi slt, %i, %bound : tensor<8xi32>
  %id = tt.get_program_id x : i32
  %0 = tt.addptr %pi, %id : !tt.ptr<i32>, i32
  %j = tt.load %0 : !tt.ptr<i32>
  %row = arith.muli %j, %n : i32
  %1 = tt.addptr %px, %row : !tt.ptr<f16>, i32
  %2 = tt.splat %1 : !tt.ptr<f16> -> tensor<8x!tt.ptr<f16>>
  // Hints are those of a tile.
  %k = tt.make_range {end = 16 : i32, start = 8 : i32} : tensor<8xi32>
  %3 = tt.addptr %2, %k {tt.divisibility = dense<4> : tensor<1xi32>} : tensor<8x!tt.ptr<f16>>, tensor<8xi32>
  %x = tt.load %3, %mask : tensor<8x!tt.ptr<f16>>
  %4 = arith.muli %id, %n : i32
  %5 = tt.addptr %py, %4 : !tt.ptr<f16>, i32
  %6 = tt.splat %5 : !tt.ptr<f16> -> tensor<8x!tt.ptr<f16>>
  %7 = tt.addptr %6, %i : tensor<8x!tt.ptr<f16>>, tensor<8xi32>
  tt.store %7, %x, %mask : tensor<8x!tt.ptr<f16>>
  tt.return
}

// -----

// Rows of a tile, at offsets that a loop carries: one run each.
// CHECK-LABEL: tt.func @rows_bwd(
// CHECK: %[[ALONE:.*]] = scf.if %{{.*}} -> (tensor<2xi1>)
// CHECK-NOT: tt.reduce
// CHECK: %[[COUNT:.*]] = tt.load {{.*}} : tensor<2x!tt.ptr<i32>>
// CHECK: %[[ROWS:.*]] = tt.expand_dims %[[ALONE]] {axis = 1 : i32}
// CHECK: tt.broadcast %[[ROWS]] : tensor<2x1xi1> -> tensor<2x4xi1>
// CHECK-LABEL: tt.func @rows_bwd_tally0(
// CHECK: %[[MOST:.*]] = "tt.reduce"(%{{.*}}) <{axis = 0 : i32}>
// CHECK: arith.maxsi
// CHECK: scf.for %{{.*}} to %[[MOST]]
// CHECK: tt.atomic_rmw add, {{.*}} : (tensor<2x!tt.ptr<i32>>
tt.func @rows(%px: !tt.ptr<f16>, %pi: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  %wide = arith.constant dense<4> : tensor<2x4xi32>
  %zero = arith.constant dense<0.0> : tensor<2x4xf32>
  %i = tt.make_range {end = 2 : i32, start = 0 : i32} : tensor<2xi32>
  %k = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %0 = tt.splat %pi : !tt.ptr<i32> -> tensor<2x!tt.ptr<i32>>
  %1 = tt.addptr %0, %i : tensor<2x!tt.ptr<i32>>, tensor<2xi32>
  %j = tt.load %1 : tensor<2x!tt.ptr<i32>>
  %2 = tt.expand_dims %j {axis = 1 : i32} : tensor<2xi32> -> tensor<2x1xi32>
  %3 = tt.broadcast %2 : tensor<2x1xi32> -> tensor<2x4xi32>
  %4 = tt.expand_dims %k {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
  %5 = tt.broadcast %4 : tensor<1x4xi32> -> tensor<2x4xi32>
  %6 = arith.addi %3, %5 : tensor<2x4xi32>
  %px4 = tt.splat %px : !tt.ptr<f16> -> tensor<2x4x!tt.ptr<f16>>
  %r:2 = scf.for %t = %c0 to %c5 step %c1 iter_args(%o = %6, %s = %zero) -> (tensor<2x4xi32>, tensor<2x4xf32>) : i32 {
    %7 = tt.addptr %px4, %o : tensor<2x4x!tt.ptr<f16>>, tensor<2x4xi32>
    %x = tt.load %7 : tensor<2x4x!tt.ptr<f16>>
    %8 = arith.extf %x : tensor<2x4xf16> to tensor<2x4xf32>
    %9 = arith.addf %s, %8 : tensor<2x4xf32>
    %10 = arith.addi %o, %wide : tensor<2x4xi32>
    scf.yield %10, %9 : tensor<2x4xi32>, tensor<2x4xf32>
  }
  %11 = tt.splat %py : !tt.ptr<f32> -> tensor<2x4x!tt.ptr<f32>>
  %12 = tt.expand_dims %i {axis = 1 : i32} : tensor<2xi32> -> tensor<2x1xi32>
  %13 = tt.broadcast %12 : tensor<2x1xi32> -> tensor<2x4xi32>
  %14 = arith.muli %13, %wide : tensor<2x4xi32>
  %15 = arith.addi %14, %5 : tensor<2x4xi32>
  %16 = tt.addptr %11, %15 : tensor<2x4x!tt.ptr<f32>>, tensor<2x4xi32>
  tt.store %16, %r#1 : tensor<2x4x!tt.ptr<f32>>
  tt.return
}

// -----

// Any lanes may be off.
// CHECK-LABEL: tt.func @masked_bwd(
// CHECK: %[[NOTHING:.*]] = arith.constant dense<9223372036854775807> : tensor<8xi64>
// CHECK: scf.if {{.*}} -> (i1)
// CHECK: %[[OFFSETS:.*]] = arith.shrsi {{.*}} : tensor<8xi64>
// CHECK: %[[ON:.*]] = arith.select %{{.*}}, %[[OFFSETS]], %[[NOTHING]]
// CHECK: %[[FIRST:.*]] = "tt.reduce"(%[[ON]])
// CHECK: arith.minsi
// CHECK: arith.cmpi ne, %[[FIRST]]
// CHECK-LABEL: tt.func @masked_bwd_tally0(
// CHECK: arith.minsi
// CHECK: arith.maxsi
tt.func @masked(%px: !tt.ptr<f16>, %pi: !tt.ptr<i32>, %pm: !tt.ptr<i32>, %py: !tt.ptr<f16>) {
  %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  %zeros = arith.constant dense<0> : tensor<8xi32>
  %0 = tt.splat %pm : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
  %1 = tt.addptr %0, %i : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
  %m = tt.load %1 : tensor<8x!tt.ptr<i32>>
  %mask = arith.cmpi ne, %m, %zeros : tensor<8xi32>
  %c3 = arith.constant 3 : i32
  %row = tt.load %pi : !tt.ptr<i32>
  %j = arith.shli %row, %c3 : i32
  %2 = tt.addptr %px, %j : !tt.ptr<f16>, i32
  %3 = tt.splat %2 : !tt.ptr<f16> -> tensor<8x!tt.ptr<f16>>
  %4 = tt.addptr %3, %i : tensor<8x!tt.ptr<f16>>, tensor<8xi32>
  %x = tt.load %4, %mask : tensor<8x!tt.ptr<f16>>
  %5 = tt.splat %py : !tt.ptr<f16> -> tensor<8x!tt.ptr<f16>>
  %6 = tt.addptr %5, %i : tensor<8x!tt.ptr<f16>>, tensor<8xi32>
  tt.store %6, %x : tensor<8x!tt.ptr<f16>>
  tt.return
}

// -----

// Lanes that may touch the same element are runs by themselves.
// CHECK-LABEL: tt.func @lanes_bwd(
// CHECK: scf.if {{.*}} -> (tensor<4xi1>)
// CHECK-NOT: tt.reduce
// CHECK: tt.return
// CHECK-LABEL: tt.func @lanes_bwd_tally0(
// CHECK-NOT: tt.reduce
// CHECK-NOT: scf.for
// CHECK: %[[ONE:.*]] = arith.constant dense<1> : tensor<4xi32>
// CHECK: tt.atomic_rmw add, {{.*}}, %[[ONE]]
tt.func @lanes(%px: !tt.ptr<f16>, %pi: !tt.ptr<i32>, %py: !tt.ptr<f16>) {
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %0 = tt.splat %pi : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>>
  %1 = tt.addptr %0, %i : tensor<4x!tt.ptr<i32>>, tensor<4xi32>
  %j = tt.load %1 : tensor<4x!tt.ptr<i32>>
  %2 = tt.splat %px : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>>
  %3 = tt.addptr %2, %j : tensor<4x!tt.ptr<f16>>, tensor<4xi32>
  %x = tt.load %3 : tensor<4x!tt.ptr<f16>>
  %e = math.exp %x : tensor<4xf16>
  %4 = tt.splat %py : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>>
  %5 = tt.addptr %4, %i : tensor<4x!tt.ptr<f16>>, tensor<4xi32>
  tt.store %5, %e : tensor<4x!tt.ptr<f16>>
  tt.return
}

// -----

// A float decides which elements are touched, and may be rounded otherwise in
// another kernel.
// CHECK-LABEL: tt.func @decided_by_floats_bwd(
// CHECK-NOT: autodiff.role = "tally"
tt.func @decided_by_floats(%px: !tt.ptr<f16>, %pi: !tt.ptr<i32>, %pf: !tt.ptr<f32>, %py: !tt.ptr<f16>) {
  %zero = arith.constant 0.0 : f32
  %f = tt.load %pf : !tt.ptr<f32>
  %s = math.sin %f : f32
  %mask = arith.cmpf ogt, %s, %zero : f32
  %j = tt.load %pi : !tt.ptr<i32>
  %0 = tt.addptr %px, %j : !tt.ptr<f16>, i32
  %other = arith.constant 0.0 : f16
  %x = tt.load %0, %mask, %other : !tt.ptr<f16>
  tt.store %py, %x : !tt.ptr<f16>
  tt.return
}

// -----

// Sums in f32 are what the tensor holds: nothing has to be rounded.
// CHECK-LABEL: tt.func @floats_bwd(
// CHECK-NOT: autodiff.role = "tally"
tt.func @floats(%px: !tt.ptr<f32>, %pi: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %j = tt.load %pi : !tt.ptr<i32>
  %0 = tt.addptr %px, %j : !tt.ptr<f32>, i32
  %x = tt.load %0 : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.return
}

// -----

// Lanes of a channel share its element: none is alone.
// CHECK-LABEL: tt.func @channel_bwd(
// CHECK-NOT: autodiff.role = "tally"
tt.func @channel(%px: !tt.ptr<f16>, %pi: !tt.ptr<i32>, %py: !tt.ptr<f16>, %pixels: i32) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %p = tt.splat %pixels : i32 -> tensor<64xi32>
  %c = arith.divsi %i, %p : tensor<64xi32>
  %j = tt.load %pi : !tt.ptr<i32>
  %0 = tt.addptr %px, %j : !tt.ptr<f16>, i32
  %1 = tt.splat %0 : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %2 = tt.addptr %1, %c : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %x = tt.load %2 : tensor<64x!tt.ptr<f16>>
  %3 = tt.splat %py : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %4 = tt.addptr %3, %i : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  tt.store %4, %x : tensor<64x!tt.ptr<f16>>
  tt.return
}
