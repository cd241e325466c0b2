// RUN: %interchange %s | FileCheck %s
// RUN: %differentiate %s | FileCheck %s --check-prefix=PLAN

// The rows of x times its rows: what a block gets as the right factor is summed
// over programs along x, and as the left one over those along y. Each sum has
// a kernel; the second one adds to what the first one has stored.
// CHECK-LABEL: tt.func @gram_bwd_interchanged0(
// CHECK: tt.dot
// CHECK: autodiff.accumulate {{.*}} whole <{{.*}} programs [pid0, pid1]
// CHECK-LABEL: tt.func @gram_bwd_interchanged1(
// CHECK: tt.dot
// CHECK: autodiff.accumulate {{.*}} whole <{{.*}} programs [pid1, pid0]

// PLAN: autodiff.gradient <store 0 :
// PLAN-LABEL: tt.func @gram_bwd_interchanged0(
// PLAN: tt.dot
// PLAN: tt.store
// PLAN-LABEL: tt.func @gram_bwd_interchanged1(
// PLAN: tt.dot
// PLAN: %[[BEFORE:.*]] = tt.load %[[P:[^:]*]] : tensor<16x16x!tt.ptr<f32>>
// PLAN: %[[SUM:.*]] = arith.addf %[[BEFORE]],
// PLAN: tt.store %[[P]], %[[SUM]]
tt.func @gram(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %blocks: i32, %width: i32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %lane = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %down = tt.expand_dims %lane {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %along = tt.expand_dims %lane {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %steps = tt.broadcast %along : tensor<1x16xi32> -> tensor<16x16xi32>
  %w = tt.splat %width : i32 -> tensor<16x1xi32>
  %rows = arith.muli %down, %w : tensor<16x1xi32>
  %wide = tt.broadcast %rows : tensor<16x1xi32> -> tensor<16x16xi32>
  %tile = arith.addi %wide, %steps : tensor<16x16xi32>
  %height = arith.muli %width, %c16 : i32
  %i = tt.get_program_id x : i32
  %j = tt.get_program_id y : i32
  %ri = arith.muli %i, %height : i32
  %rj = arith.muli %j, %height : i32
  %acc = scf.for %k = %c0 to %blocks step %c1 iter_args(%sum = %zero) -> (tensor<16x16xf32>) : i32 {
    %start = arith.muli %k, %c16 : i32
    %oi = arith.addi %ri, %start : i32
    %oj = arith.addi %rj, %start : i32
    %qi = tt.addptr %px, %oi : !tt.ptr<f32>, i32
    %qj = tt.addptr %px, %oj : !tt.ptr<f32>, i32
    %si = tt.splat %qi : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
    %sj = tt.splat %qj : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
    %ti = tt.addptr %si, %tile : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
    %tj = tt.addptr %sj, %tile : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
    %a = tt.load %ti : tensor<16x16x!tt.ptr<f32>>
    %b = tt.load %tj : tensor<16x16x!tt.ptr<f32>>
    %t = tt.trans %b {order = array<i32: 1, 0>} : tensor<16x16xf32> -> tensor<16x16xf32>
    %next = tt.dot %a, %t, %sum : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  %n16 = tt.splat %n : i32 -> tensor<16x1xi32>
  %rowsy = arith.muli %down, %n16 : tensor<16x1xi32>
  %widey = tt.broadcast %rowsy : tensor<16x1xi32> -> tensor<16x16xi32>
  %tiley = arith.addi %widey, %steps : tensor<16x16xi32>
  %heighty = arith.muli %n, %c16 : i32
  %yi = arith.muli %i, %heighty : i32
  %yj = arith.muli %j, %c16 : i32
  %oy = arith.addi %yi, %yj : i32
  %qy = tt.addptr %py, %oy : !tt.ptr<f32>, i32
  %sy = tt.splat %qy : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %ty = tt.addptr %sy, %tiley : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
  tt.store %ty, %acc : tensor<16x16x!tt.ptr<f32>>
  tt.return
}
