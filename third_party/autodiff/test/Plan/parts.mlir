// The parts of differentiation, one after the other, do what all of them do.
// RUN: triton-autodiff-opt %s --autodiff-rearrange --autodiff-derive --autodiff-lower > %t.parts
// RUN: %differentiate %s > %t.all
// RUN: diff %t.parts %t.all
// RUN: triton-autodiff-opt %s --autodiff-derive | FileCheck %s --check-prefix=DERIVED
// RUN: triton-autodiff-opt %s --autodiff-derive --autodiff-lower | FileCheck %s --check-prefix=SCHEDULED
// RUN: triton-autodiff-opt %s --autodiff-derive --autodiff-lower="plain atomic=1" | FileCheck %s --check-prefix=PLAIN

// Derived from layer norm as it is written: a forward that saves two numbers for each row, and
// one backward on its grid, whose contributions to gradients have no place in memory yet.
// DERIVED: autodiff.plan {
// DERIVED: autodiff.buffer 0 <saved "saved0" : f32, 1 * (grid2 * (grid1 * (grid0 * 1)))>
// DERIVED-NEXT: autodiff.buffer 1 <saved "saved1" : f32
// DERIVED-NOT: autodiff.gradient
// DERIVED: autodiff.check <cotangent 2> <distinct 2 at 0 [<arg3 x [<1 x grid0>]>, <1 x [<1 x 64>]>
// DERIVED-NEXT: autodiff.launch @layer_norm_fwd
// DERIVED-NEXT: autodiff.launch @layer_norm_bwd
// DERIVED-NEXT: }
// DERIVED-LABEL: tt.func public @layer_norm_bwd(
// DERIVED-DAG: autodiff.accumulate {{.*}}argument = 0
// DERIVED-DAG: autodiff.accumulate {{.*}}argument = 1

// Scheduled: few programs keep sums for the weights, which are then added up.
// SCHEDULED: autodiff.plan {
// SCHEDULED: autodiff.gradient <store 0 : f32 init = none
// SCHEDULED-NEXT: autodiff.gradient <partial 1 : f32 init = none partials max(min(1 * grid0, ceildiv(8 * processors
// SCHEDULED: autodiff.launch @layer_norm_fwd
// SCHEDULED-NEXT: autodiff.launch @layer_norm_bwd_persistent grid [max(min(1 * grid0, ceildiv(8 * processors
// SCHEDULED-SAME: options {num_warps = 1 : i32}
// SCHEDULED-NOT: autodiff.accumulate

// As it was derived, and lowered: the forward's grid.
// PLAIN: autodiff.plan {
// PLAIN: autodiff.gradient <store 0 : f32 init = none
// PLAIN-NEXT: autodiff.gradient <atomic 1 : f32 init = zero
// PLAIN: autodiff.launch @layer_norm_fwd
// PLAIN-NEXT: autodiff.launch @layer_norm_bwd{{$}}
// PLAIN: autodiff.step launch launch @layer_norm_bwd{{$}}
// PLAIN-NEXT: autodiff.step finish convert [#autodiff.operand<gradient 0>]
// PLAIN-NEXT: autodiff.step finish convert [#autodiff.operand<gradient 1>]
// PLAIN-NEXT: autodiff.step finish return [#autodiff.operand<gradient 0>, #autodiff.operand<gradient 1>]
// PLAIN-NEXT: autodiff.next [#autodiff.next<atomic [0] fails = gradient of 0>, #autodiff.next<repeated [2] fails = output of 2>]
// PLAIN-NEXT: autodiff.next [#autodiff.next<confine [0] fails = reach of 0>, #autodiff.next<confine [1] fails = reach of 1>]
// PLAIN-NEXT: }
// PLAIN-NOT: autodiff.accumulate
tt.func public @layer_norm(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %stride: i32) {
  %eps = arith.constant 1.0e-05 : f32
  %length = arith.constant 6.4e+01 : f32
  %row = tt.get_program_id x : i32
  %start = arith.muli %row, %stride : i32
  %lanes = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %rowx = tt.addptr %px, %start : !tt.ptr<f32>, i32
  %rowy = tt.addptr %py, %start : !tt.ptr<f32>, i32
  %bx = tt.splat %rowx : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %by = tt.splat %rowy : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %bw = tt.splat %pw : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ax = tt.addptr %bx, %lanes : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %ay = tt.addptr %by, %lanes : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %aw = tt.addptr %bw, %lanes : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %x = tt.load %ax : tensor<64x!tt.ptr<f32>>
  %w = tt.load %aw : tensor<64x!tt.ptr<f32>>
  %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<64xf32>) -> f32
  %mean = arith.divf %sum, %length : f32
  %means = tt.splat %mean : f32 -> tensor<64xf32>
  %centred = arith.subf %x, %means : tensor<64xf32>
  %square = arith.mulf %centred, %centred : tensor<64xf32>
  %squares = "tt.reduce"(%square) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<64xf32>) -> f32
  %variance = arith.divf %squares, %length : f32
  %shifted = arith.addf %variance, %eps : f32
  %rstd = math.rsqrt %shifted : f32
  %scale = tt.splat %rstd : f32 -> tensor<64xf32>
  %normal = arith.mulf %centred, %scale : tensor<64xf32>
  %y = arith.mulf %normal, %w : tensor<64xf32>
  tt.store %ay, %y : tensor<64x!tt.ptr<f32>>
  tt.return
}
