// RUN: triton-autodiff-opt %s -split-input-file -autodiff-differentiate \
// RUN:   -remarks-filter=.* -o /dev/null 2>&1 | FileCheck %s

// What becomes of each schedule is said where the user loads or stores, with the
// user's names, in MLIR's own remarks.

// The weights are the same in all programs, and x is each one's own.
// CHECK: [[#LOAD:]]:8: remark: [Missed] interchange {{.*}} Function=scale_bwd | Argument=0
// CHECK-SAME: Reason="no loop contributes, whose iterations could be programs"
// CHECK: [[#LOAD]]:8: remark: [Missed] persist
// CHECK-SAME: Reason="no two programs load the same elements: the address depends on all of program_id(0)"
// CHECK: [[#LOAD + 1]]:8: remark: [Passed] persist {{.*}} Argument=1
// CHECK-SAME: programs of scale_bwd_persistent do the work of several each, and sum over program_id(0) in registers
// CHECK: [[#LOAD]]:8: remark: [Passed] plain-stores {{.*}} Reason="each element is loaded once, as a launch checks"
tt.func @scale(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %c16 = arith.constant 16 : i32
  %pid = tt.get_program_id x : i32
  %lane = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %base = arith.muli %pid, %c16 : i32
  %bases = tt.splat %base : i32 -> tensor<16xi32>
  %index = arith.addi %bases, %lane : tensor<16xi32>
  %xs = tt.splat %px : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ws = tt.splat %pw : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ys = tt.splat %py : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qx = tt.addptr %xs, %index : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qw = tt.addptr %ws, %lane : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qy = tt.addptr %ys, %index : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %qx : tensor<16x!tt.ptr<f32>>
  %w = tt.load %qw : tensor<16x!tt.ptr<f32>>
  %y = arith.mulf %x, %w : tensor<16xf32>
  tt.store %qy, %y : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// An index from memory, and a partner by its bits: the reasons name what makes
// the address, and its line.
// CHECK: [[#INDEX:]]:8: remark: [Missed] persist {{.*}} Function=rows_bwd | Argument=1
// CHECK-SAME: its address is no sum of multiples of program ids, loop counters and ranges: it depends on what is loaded at
// CHECK: [[#INDEX + 1]]:8: remark: [Missed] persist {{.*}} Argument=2
// CHECK-SAME: it depends on what `arith.xori` at
tt.func @rows(%pi: !tt.ptr<i32>, %px: !tt.ptr<f32> loc("x_ptr"), %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %c1 = arith.constant dense<1> : tensor<16xi32>
  %lane = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %is = tt.splat %pi : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
  %xs = tt.splat %px : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ws = tt.splat %pw : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ys = tt.splat %py : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qi = tt.addptr %is, %lane : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
  %i = tt.load %qi : tensor<16x!tt.ptr<i32>>
  %partner = arith.xori %lane, %c1 : tensor<16xi32>
  %qx = tt.addptr %xs, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qw = tt.addptr %ws, %partner : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qy = tt.addptr %ys, %lane : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %qx : tensor<16x!tt.ptr<f32>>
  %w = tt.load %qw : tensor<16x!tt.ptr<f32>>
  %y = arith.mulf %x, %w : tensor<16xf32>
  tt.store %qy, %y : tensor<16x!tt.ptr<f32>>
  tt.return
}
