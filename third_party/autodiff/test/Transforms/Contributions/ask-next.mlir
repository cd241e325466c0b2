// RUN: triton-autodiff-opt -autodiff-ask-next -split-input-file %s | FileCheck %s
// RUN: triton-autodiff-opt -autodiff-ask-next="deterministic reload=false" -split-input-file %s | FileCheck %s --check-prefix=FIXED
// RUN: triton-autodiff-opt -autodiff-ask-next="has-axes takes-axes=false adds checkpoint" -split-input-file %s | FileCheck %s --check-prefix=AXES
// RUN: triton-autodiff-opt -autodiff-ask-next="takes-axes=false assume=false" -split-input-file %s | FileCheck %s --check-prefix=NONE

// A row of which there may be an axis, a check of each kind, contributions that
// may be anywhere, tapes, and a launch that is not the user's: everything that
// can be asked for, in order.
// CHECK: autodiff.next [#autodiff.next<reload [0] not_negative [parts - 1]>,
// CHECK-SAME: #autodiff.next<axes [coarsest(arg2, 2 * arg2 - 1)] not_negative [0 - shared, arg2 - 1, 1024 - coarsest(arg2, 2 * arg2 - 1), arg2 - coarsest(arg2, 2 * arg2 - 1)]>,
// CHECK-SAME: #autodiff.next<deterministic [1] not_negative [deterministic - 1, grid0 * grid1 * grid2 - 1]>]
// CHECK-NEXT: autodiff.next [#autodiff.next<assume [0] fails = launch>, #autodiff.next<assume [0] not_negative [shared - 1]>]
// CHECK-NEXT: autodiff.next [#autodiff.next<atomic [0] fails = gradient of 0>, #autodiff.next<repeated [1] fails = output of 1>]
// CHECK-NEXT: autodiff.next [#autodiff.next<confine [0] fails = reach of 0>]
// CHECK-NEXT: autodiff.next [#autodiff.next<checkpoint [1] fails = tapes>]

// Where atomics are refused, checks that fail are errors, unless no program
// runs in the launch that the kernels are for.
// FIXED: autodiff.next [#autodiff.next<axes [coarsest(arg2
// FIXED-NOT: reload
// FIXED-NOT: deterministic [1]
// FIXED: autodiff.next [#autodiff.next<atomic [0] not_negative [0 - arg2 * grid1 * grid2] fails = gradient of 0>,
// FIXED-SAME: #autodiff.next<deterministic [0] not_negative [0 - arg2 * grid1 * grid2] fails = gradient of 0>,
// FIXED-SAME: #autodiff.next<repeated [1] not_negative [0 - arg2 * grid1 * grid2] fails = output of 1>,
// FIXED-SAME: #autodiff.next<deterministic [0] not_negative [0 - arg2 * grid1 * grid2] fails = output of 1>]
// FIXED-NEXT: autodiff.next [#autodiff.next<none [] fails = gradient of 0>, #autodiff.next<none [] fails = output of 1>]

// Axes are given up before what is assumed, and not taken again.
// AXES: autodiff.next [#autodiff.next<reload [0] not_negative [parts - 1]>]
// AXES-NEXT: autodiff.next [#autodiff.next<axes [] fails = launch>, #autodiff.next<axes [] not_negative [shared - 1]>]
// AXES-NEXT: autodiff.next [#autodiff.next<atomic [0] fails = gradient of 0>
// AXES-NOT: tapes
// AXES-LABEL: tt.func @row(

// What has been given up is not asked for.
// NONE: autodiff.next [#autodiff.next<reload [0] not_negative [parts - 1]>,
// NONE-NOT: axes
// NONE-NOT: assume
// NONE-LABEL: tt.func @row(
module {
  autodiff.plan {
    autodiff.rearranged <[arg2, grid1, grid2]>
    autodiff.offer #autodiff.batch<arg2 at_most 1024 exact = true>
    autodiff.buffer 0 <tape "tape0" : f32, arg2>
    autodiff.gradient <store 0 : f32 init = none returned = true checks [<bijective 0 at 0 []>] reach [<0 []>]>
    autodiff.check <cotangent 1> <distinct 1 at 0 []>
    autodiff.launch @row_bwd
  }
  tt.func @row(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
    %v = tt.load %x {autodiff.site = 0 : i64} : !tt.ptr<f32>
    tt.store %y, %v {autodiff.site = 1 : i64} : !tt.ptr<f32>
    tt.return
  }
  tt.func @row_bwd(
      %y: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 1>},
      %dy: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<cotangent 1>},
      %dx: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 0>},
      %tape: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<buffer 0>})
      attributes {autodiff.role = "backward"} {
    %g = tt.load %dy : !tt.ptr<f32>
    %v = tt.load %y : !tt.ptr<f32>
    %m = arith.mulf %g, %v : f32
    tt.store %tape, %m : !tt.ptr<f32>
    tt.store %dx, %m : !tt.ptr<f32>
    tt.return
  }
}

// -----

// Digits of positions: the lowest gets the lanes first. Of outputs that the
// backward does not read, it does not matter whether they stay.
// CHECK: autodiff.next [#autodiff.next<axes
// CHECK-SAME: [min(min(coarsest(arg2, 2 * arg2 - 1), coarsest(arg2, max(arg2 + div(arg2, 8), ceildiv(arg2, 64) * 64))), 256),
// CHECK-SAME: min(min(coarsest(8, 2 * 8 - 1), coarsest(8, max(8 + div(8, 8), ceildiv(8, 64) * 64))), div(256, min(
// CHECK-SAME: not_negative [0 - shared, arg2 - 1, 8 - 1]>,
// CHECK-SAME: #autodiff.next<deterministic [1] not_negative [deterministic - 1, grid0 * grid1 * grid2 - 1]>]
// CHECK-LABEL: tt.func @line(
module {
  autodiff.plan {
    autodiff.offer #autodiff.unravel<[arg2, 8] lanes = 256>
    autodiff.gradient <atomic 0 : f32 init = zero returned = true confined = all>
    autodiff.launch @line_bwd
  }
  tt.func @line(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
    %v = tt.load %x {autodiff.site = 0 : i64} : !tt.ptr<f32>
    tt.store %y, %v {autodiff.site = 1 : i64} : !tt.ptr<f32>
    tt.return
  }
  tt.func @line_bwd(
      %y: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 1>},
      %dy: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<cotangent 1>},
      %dx: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 0>})
      attributes {autodiff.role = "backward"} {
    %g = tt.load %dy : !tt.ptr<f32>
    %true = arith.constant true
    %0 = tt.atomic_rmw fadd, relaxed, gpu, %dx, %g, %true : (!tt.ptr<f32>, f32, i1) -> f32
    tt.return
  }
}
