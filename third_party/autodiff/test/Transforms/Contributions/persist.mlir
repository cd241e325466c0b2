// RUN: %persist -split-input-file %s | FileCheck %s
// RUN: %persist-always -split-input-file %s | FileCheck --check-prefix=ALWAYS %s

// All programs read the same weights. Few programs do the work of all: each
// runs over a part of the old ones, stores the gradient of their elements of x,
// keeps the sum for the weights, and stores that as one of several. There are no
// more programs than there were, and as many for each processor as it takes to
// hide what programs of one warp wait for.
// CHECK: autodiff.launch @scale_bwd_persistent grid [max(min(1 * grid0,
// CHECK-SAME: ceildiv(8 * processors, max(1, 1))), 1), 1, 1]
// CHECK-LABEL: tt.func @scale_bwd_persistent(
// CHECK: %[[PART:.*]] = autodiff.programs
// CHECK: %[[PARTS:.*]] = arith.trunci
// CHECK: %[[W:.*]] = tt.load
// CHECK: %[[SUM:.*]] = scf.for %[[P:.*]] = %[[PART]] to %{{.*}} step %[[PARTS]] iter_args(%[[ACC:.*]] = %cst
// CHECK-DAG: %[[NEXT:.*]] = arith.addf %[[ACC]],
// CHECK-DAG: autodiff.accumulate {{.*}} {argument = 0
// CHECK: scf.yield %[[NEXT]]
// CHECK: autodiff.accumulate {{.*}}, %[[SUM]] partial %[[PART]] of <
// CHECK-SAME: whole <
// CHECK-SAME: {argument = 1
tt.func @scale(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %width = arith.constant 16 : i32
  %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %id = tt.get_program_id x : i32
  %row = arith.muli %id, %width : i32
  %rowx = tt.addptr %px, %row : !tt.ptr<f32>, i32
  %rowy = tt.addptr %py, %row : !tt.ptr<f32>, i32
  %bx = tt.splat %rowx : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %bw = tt.splat %pw : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %by = tt.splat %rowy : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qx = tt.addptr %bx, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qw = tt.addptr %bw, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qy = tt.addptr %by, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %qx : tensor<16x!tt.ptr<f32>>
  %w = tt.load %qw : tensor<16x!tt.ptr<f32>>
  %y = arith.mulf %x, %w : tensor<16xf32>
  tt.store %qy, %y : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// Each processor has the registers for three programs, and runs two where three
// would have many rows each.
// CHECK: autodiff.launch @scale_middle_bwd_persistent grid [max(min(1 * grid0,
// CHECK-SAME: ceildiv(
// CHECK-SAME: max(2, min(3, ceildiv(128 * processors, max(1 * grid0, 1))))
// CHECK-SAME:  * processors, max(1, 1))), 1), 1, 1]
// CHECK-LABEL: tt.func @scale_middle_bwd_persistent(
tt.func @scale_middle(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %width = arith.constant 4096 : i32
  %i = tt.make_range {end = 4096 : i32, start = 0 : i32} : tensor<4096xi32>
  %id = tt.get_program_id x : i32
  %row = arith.muli %id, %width : i32
  %rowx = tt.addptr %px, %row : !tt.ptr<f32>, i32
  %rowy = tt.addptr %py, %row : !tt.ptr<f32>, i32
  %bx = tt.splat %rowx : !tt.ptr<f32> -> tensor<4096x!tt.ptr<f32>>
  %bw = tt.splat %pw : !tt.ptr<f32> -> tensor<4096x!tt.ptr<f32>>
  %by = tt.splat %rowy : !tt.ptr<f32> -> tensor<4096x!tt.ptr<f32>>
  %qx = tt.addptr %bx, %i : tensor<4096x!tt.ptr<f32>>, tensor<4096xi32>
  %qw = tt.addptr %bw, %i : tensor<4096x!tt.ptr<f32>>, tensor<4096xi32>
  %qy = tt.addptr %by, %i : tensor<4096x!tt.ptr<f32>>, tensor<4096xi32>
  %x = tt.load %qx : tensor<4096x!tt.ptr<f32>>
  %w = tt.load %qw : tensor<4096x!tt.ptr<f32>>
  %y = arith.mulf %x, %w : tensor<4096xf32>
  tt.store %qy, %y : tensor<4096x!tt.ptr<f32>>
  tt.return
}

// -----

// Rows that take the registers of half a processor: one program for each.
// CHECK: autodiff.launch @scale_long_bwd_persistent grid [max(min(1 * grid0,
// CHECK-SAME: ceildiv(1 * processors, max(1, 1))), 1), 1, 1]
// CHECK-LABEL: tt.func @scale_long_bwd_persistent(
tt.func @scale_long(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %width = arith.constant 8192 : i32
  %i = tt.make_range {end = 8192 : i32, start = 0 : i32} : tensor<8192xi32>
  %id = tt.get_program_id x : i32
  %row = arith.muli %id, %width : i32
  %rowx = tt.addptr %px, %row : !tt.ptr<f32>, i32
  %rowy = tt.addptr %py, %row : !tt.ptr<f32>, i32
  %bx = tt.splat %rowx : !tt.ptr<f32> -> tensor<8192x!tt.ptr<f32>>
  %bw = tt.splat %pw : !tt.ptr<f32> -> tensor<8192x!tt.ptr<f32>>
  %by = tt.splat %rowy : !tt.ptr<f32> -> tensor<8192x!tt.ptr<f32>>
  %qx = tt.addptr %bx, %i : tensor<8192x!tt.ptr<f32>>, tensor<8192xi32>
  %qw = tt.addptr %bw, %i : tensor<8192x!tt.ptr<f32>>, tensor<8192xi32>
  %qy = tt.addptr %by, %i : tensor<8192x!tt.ptr<f32>>, tensor<8192xi32>
  %x = tt.load %qx : tensor<8192x!tt.ptr<f32>>
  %w = tt.load %qw : tensor<8192x!tt.ptr<f32>>
  %y = arith.mulf %x, %w : tensor<8192xf32>
  tt.store %qy, %y : tensor<8192x!tt.ptr<f32>>
  tt.return
}

// -----

// A scalar beside a row of 16 costs next to nothing: it stays atomic, unless
// atomics are forbidden.
// CHECK-LABEL: tt.func @shift(
// CHECK-NOT: persistent
// ALWAYS-LABEL: tt.func @shift_bwd_persistent(
tt.func @shift(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %width = arith.constant 16 : i32
  %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %id = tt.get_program_id x : i32
  %row = arith.muli %id, %width : i32
  %rowx = tt.addptr %px, %row : !tt.ptr<f32>, i32
  %rowy = tt.addptr %py, %row : !tt.ptr<f32>, i32
  %bx = tt.splat %rowx : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %by = tt.splat %rowy : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qx = tt.addptr %bx, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qy = tt.addptr %by, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %qx : tensor<16x!tt.ptr<f32>>
  %w = tt.load %pw : !tt.ptr<f32>
  %ws = tt.splat %w : f32 -> tensor<16xf32>
  %y = arith.addf %x, %ws : tensor<16xf32>
  tt.store %qy, %y : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// Two parts of the weights: a sum for each, and one check that they are all.
// CHECK: autodiff.plan
// CHECK-LABEL: tt.func @parts_bwd_persistent(
// CHECK: %[[PART:.*]] = autodiff.programs
// CHECK: %[[SUMS:.*]]:2 = scf.for {{.*}} iter_args(%[[A:[^ ,:)]+]] = %[[ZERO:[^ ,]+]], %[[B:[^ ,:)]+]] = %[[ZERO]])
// CHECK-DAG: arith.addf %[[A]],
// CHECK-DAG: arith.addf %[[B]],
// CHECK-DAG: autodiff.accumulate %{{.*}}, %[[SUMS]]#0 partial %[[PART]] of <{{.*}}> whole [[CHECK:<bijective[^{]*>]] {
// CHECK-DAG: autodiff.accumulate %{{.*}}, %[[SUMS]]#1 partial %[[PART]] of <{{.*}}> whole [[CHECK]] {
tt.func @parts(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %width = arith.constant 16 : i32
  %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %far = arith.constant dense<16> : tensor<16xi32>
  %j = arith.addi %i, %far : tensor<16xi32>
  %id = tt.get_program_id x : i32
  %row = arith.muli %id, %width : i32
  %rowx = tt.addptr %px, %row : !tt.ptr<f32>, i32
  %rowy = tt.addptr %py, %row : !tt.ptr<f32>, i32
  %bx = tt.splat %rowx : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %bw = tt.splat %pw : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %by = tt.splat %rowy : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qx = tt.addptr %bx, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qw = tt.addptr %bw, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qv = tt.addptr %bw, %j : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qy = tt.addptr %by, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %qx : tensor<16x!tt.ptr<f32>>
  %w = tt.load %qw : tensor<16x!tt.ptr<f32>>
  %v = tt.load %qv : tensor<16x!tt.ptr<f32>>
  %z = arith.mulf %x, %w : tensor<16xf32>
  %y = arith.mulf %z, %v : tensor<16xf32>
  tt.store %qy, %y : tensor<16x!tt.ptr<f32>>
  tt.return
}
