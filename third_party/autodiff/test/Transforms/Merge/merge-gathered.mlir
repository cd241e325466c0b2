// RUN: %gather -split-input-file %s | FileCheck %s

// The row is read in a loop, and its target once more. The lane whose position
// is the target adds what goes there.
// CHECK-LABEL: tt.func @target_bwd(
// CHECK-DAG: %[[T:.*]] = tt.load {{.*}} : !tt.ptr<i64>
// CHECK-DAG: %[[SIZE:.*]] = autodiff.size <max(min(1 * 16 * max(ceildiv(arg3, 16), 0), arg3), 0)>
// CHECK-DAG: %[[COVERED:.*]] = arith.cmpi ult, %[[T]], %[[SIZE]] : i64
// CHECK-DAG: %[[SHORT:.*]] = arith.trunci %[[T]] : i64 to i32
// CHECK-DAG: %[[PLACE:.*]] = arith.select %[[COVERED]], %[[SHORT]], %c-1_i32 : i32
// CHECK-DAG: %[[PLACES:.*]] = tt.splat %[[PLACE]] : i32 -> tensor<16xi32>
// CHECK: scf.for
// CHECK: %[[HIT:.*]] = arith.cmpi eq, %{{.*}}, %[[PLACES]] : tensor<16xi32>
// CHECK: %[[PICKED:.*]] = arith.select %[[HIT]], %{{.*}}, %{{.*}} : tensor<16xi1>, tensor<16xf32>
// CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %[[PICKED]] : tensor<16xf32>
// CHECK: autodiff.accumulate %{{.*}}, %[[SUM]] mask
// CHECK-NOT: autodiff.accumulate
// CHECK: tt.return

// What no lane stands for is added afterwards.
// CHECK-LABEL: tt.func @target_bwd_remainder(
// CHECK-NOT: scf.for
// CHECK-DAG: %[[BEYOND:.*]] = arith.cmpi uge, %{{.*}}, %{{.*}} : i64
// CHECK: autodiff.accumulate %{{.*}} mask %[[BEYOND]] : i1 remainder
// CHECK: tt.return
tt.func @target(%px: !tt.ptr<f32>, %pt: !tt.ptr<i64>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : tensor<16xf32>
  %row = tt.get_program_id x : i32
  %start = arith.muli %row, %n : i32
  %base = tt.addptr %px, %start : !tt.ptr<f32>, i32
  %qt = tt.addptr %pt, %row : !tt.ptr<i64>, i32
  %t = tt.load %qt : !tt.ptr<i64>
  %qp = tt.addptr %base, %t : !tt.ptr<f32>, i64
  %picked = tt.load %qp : !tt.ptr<f32>
  %sum = scf.for %j = %c0 to %n step %c16 iter_args(%acc = %zero) -> (f32) : i32 {
    %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
    %first = tt.splat %j : i32 -> tensor<16xi32>
    %columns = arith.addi %first, %range : tensor<16xi32>
    %limit = tt.splat %n : i32 -> tensor<16xi32>
    %mask = arith.cmpi slt, %columns, %limit : tensor<16xi32>
    %tile = tt.splat %base : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %qx = tt.addptr %tile, %columns : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %x = tt.load %qx, %mask, %none : tensor<16x!tt.ptr<f32>>
    %xx = arith.mulf %x, %x : tensor<16xf32>
    %part = "tt.reduce"(%xx) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %ab = arith.addf %a, %b : f32
      tt.reduce.return %ab : f32
    }) : (tensor<16xf32>) -> f32
    %next = arith.addf %acc, %part : f32
    scf.yield %next : f32
  }
  %y = arith.subf %sum, %picked : f32
  %qy = tt.addptr %py, %row : !tt.ptr<f32>, i32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}

// -----

// The index counts pairs of elements: no lane's position is it.
// CHECK-LABEL: tt.func @pairs_bwd(
// CHECK-COUNT-2: autodiff.accumulate
// CHECK-NOT: remainder
tt.func @pairs(%px: !tt.ptr<f32>, %pt: !tt.ptr<i32>, %py: !tt.ptr<f32>, %n: i32) {
  %c2 = arith.constant 2 : i32
  %row = tt.get_program_id x : i32
  %start = arith.muli %row, %n : i32
  %base = tt.addptr %px, %start : !tt.ptr<f32>, i32
  %qt = tt.addptr %pt, %row : !tt.ptr<i32>, i32
  %t = tt.load %qt : !tt.ptr<i32>
  %pair = arith.muli %t, %c2 : i32
  %qp = tt.addptr %base, %pair : !tt.ptr<f32>, i32
  %picked = tt.load %qp : !tt.ptr<f32>
  %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %tile = tt.splat %base : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qx = tt.addptr %tile, %range : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %qx : tensor<16x!tt.ptr<f32>>
  %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %ab = arith.addf %a, %b : f32
    tt.reduce.return %ab : f32
  }) : (tensor<16xf32>) -> f32
  %y = arith.subf %sum, %picked : f32
  %qy = tt.addptr %py, %row : !tt.ptr<f32>, i32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Two programs read the same row: they meet elsewhere, not in a lane.
// CHECK-LABEL: tt.func @shared_bwd(
// CHECK-COUNT-2: autodiff.accumulate
// CHECK-NOT: remainder
tt.func @shared(%px: !tt.ptr<f32>, %pt: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %row = tt.get_program_id x : i32
  %qt = tt.addptr %pt, %row : !tt.ptr<i32>, i32
  %t = tt.load %qt : !tt.ptr<i32>
  %qp = tt.addptr %px, %t : !tt.ptr<f32>, i32
  %picked = tt.load %qp : !tt.ptr<f32>
  %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %tile = tt.splat %px : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qx = tt.addptr %tile, %range : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %qx : tensor<16x!tt.ptr<f32>>
  %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %ab = arith.addf %a, %b : f32
    tt.reduce.return %ab : f32
  }) : (tensor<16xf32>) -> f32
  %y = arith.subf %sum, %picked : f32
  %qy = tt.addptr %py, %row : !tt.ptr<f32>, i32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A row of one element has one position, the first.
// CHECK-LABEL: tt.func @one_lane_bwd(
// CHECK: arith.cmpi eq, %{{.*}} : tensor<1xi32>
// CHECK: tt.return
tt.func @one_lane(%px: !tt.ptr<f32>, %pt: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %row = tt.get_program_id x : i32
  %base = tt.addptr %px, %row : !tt.ptr<f32>, i32
  %qt = tt.addptr %pt, %row : !tt.ptr<i32>, i32
  %t = tt.load %qt : !tt.ptr<i32>
  %qp = tt.addptr %base, %t : !tt.ptr<f32>, i32
  %picked = tt.load %qp : !tt.ptr<f32>
  %lane = tt.make_range {start = 0 : i32, end = 1 : i32} : tensor<1xi32>
  %tile = tt.splat %base : !tt.ptr<f32> -> tensor<1x!tt.ptr<f32>>
  %qx = tt.addptr %tile, %lane : tensor<1x!tt.ptr<f32>>, tensor<1xi32>
  %x = tt.load %qx : tensor<1x!tt.ptr<f32>>
  %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %ab = arith.addf %a, %b : f32
    tt.reduce.return %ab : f32
  }) : (tensor<1xf32>) -> f32
  %y = arith.subf %sum, %picked : f32
  %qy = tt.addptr %py, %row : !tt.ptr<f32>, i32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Rows without a target run no iteration. Where there is a target, the loop
// stores to all of the row.
// CHECK-LABEL: tt.func @returns_bwd(
// CHECK: scf.for
// CHECK: %[[HIT:.*]] = arith.cmpi eq, %{{.*}} : tensor<16xi32>
// CHECK: autodiff.accumulate
// CHECK: tt.return
// CHECK-LABEL: tt.func @returns_bwd_remainder(
// CHECK: autodiff.accumulate %{{.*}} remainder
tt.func @returns(%px: !tt.ptr<f32>, %pt: !tt.ptr<i64>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %ignored = arith.constant -100 : i64
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : tensor<16xf32>
  %row = tt.get_program_id x : i32
  %start = arith.muli %row, %n : i32
  %base = tt.addptr %px, %start : !tt.ptr<f32>, i32
  %qt = tt.addptr %pt, %row : !tt.ptr<i64>, i32
  %t = tt.load %qt : !tt.ptr<i64>
  %counts = arith.cmpi ne, %t, %ignored : i64
  %qp = tt.addptr %base, %t : !tt.ptr<f32>, i64
  %picked = tt.load %qp, %counts, %zero : !tt.ptr<f32>
  %end = arith.select %counts, %n, %c0 : i32
  %sum = scf.for %j = %c0 to %end step %c16 iter_args(%acc = %zero) -> (f32) : i32 {
    %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
    %first = tt.splat %j : i32 -> tensor<16xi32>
    %columns = arith.addi %first, %range : tensor<16xi32>
    %limit = tt.splat %n : i32 -> tensor<16xi32>
    %mask = arith.cmpi slt, %columns, %limit : tensor<16xi32>
    %b = tt.splat %base : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %q = tt.addptr %b, %columns : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %x = tt.load %q, %mask, %none : tensor<16x!tt.ptr<f32>>
    %s = math.sin %x : tensor<16xf32>
    %part = "tt.reduce"(%s) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %both = arith.addf %l, %r : f32
      tt.reduce.return %both : f32
    }) : (tensor<16xf32>) -> f32
    %next = arith.addf %acc, %part : f32
    scf.yield %next : f32
  }
  %loss = arith.subf %sum, %picked : f32
  %qy = tt.addptr %py, %row : !tt.ptr<f32>, i32
  tt.store %qy, %loss : !tt.ptr<f32>
  tt.return
}

// -----

// If a row that runs no iteration has a target, nothing is stored there.
// CHECK-LABEL: tt.func @unguarded_bwd(
// CHECK-COUNT-2: autodiff.accumulate
// CHECK-NOT: remainder
tt.func @unguarded(%px: !tt.ptr<f32>, %pt: !tt.ptr<i64>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %ignored = arith.constant -100 : i64
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : tensor<16xf32>
  %row = tt.get_program_id x : i32
  %start = arith.muli %row, %n : i32
  %base = tt.addptr %px, %start : !tt.ptr<f32>, i32
  %qt = tt.addptr %pt, %row : !tt.ptr<i64>, i32
  %t = tt.load %qt : !tt.ptr<i64>
  %counts = arith.cmpi ne, %t, %ignored : i64
  %qp = tt.addptr %base, %t : !tt.ptr<f32>, i64
  %picked = tt.load %qp : !tt.ptr<f32>
  %end = arith.select %counts, %n, %c0 : i32
  %sum = scf.for %j = %c0 to %end step %c16 iter_args(%acc = %zero) -> (f32) : i32 {
    %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
    %first = tt.splat %j : i32 -> tensor<16xi32>
    %columns = arith.addi %first, %range : tensor<16xi32>
    %limit = tt.splat %n : i32 -> tensor<16xi32>
    %mask = arith.cmpi slt, %columns, %limit : tensor<16xi32>
    %b = tt.splat %base : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %q = tt.addptr %b, %columns : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %x = tt.load %q, %mask, %none : tensor<16x!tt.ptr<f32>>
    %s = math.sin %x : tensor<16xf32>
    %part = "tt.reduce"(%s) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %both = arith.addf %l, %r : f32
      tt.reduce.return %both : f32
    }) : (tensor<16xf32>) -> f32
    %next = arith.addf %acc, %part : f32
    scf.yield %next : f32
  }
  %loss = arith.subf %sum, %picked : f32
  %qy = tt.addptr %py, %row : !tt.ptr<f32>, i32
  tt.store %qy, %loss : !tt.ptr<f32>
  tt.return
}
