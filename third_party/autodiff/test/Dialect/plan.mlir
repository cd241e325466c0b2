// RUN: triton-autodiff-opt -split-input-file %s | triton-autodiff-opt -split-input-file | FileCheck %s
// RUN: triton-autodiff-opt -split-input-file -canonicalize -cse -symbol-dce %s | FileCheck %s

// What a launch is, may be, and does.
// CHECK: autodiff.plan {
// CHECK-NEXT: autodiff.rearranged <[max(arg2, 0), grid1, grid2] assumed [grid0 - 1] checks [<distinct 1 at 0 [<1 x [<1 x grid0>] below arg2>]>] position "a.py:3:1" batched 4 ["a.py:5:1"] unraveled[16, 4] "a.py:7:1">
// CHECK-NEXT: autodiff.assume <arg3 - 1>
// CHECK-NEXT: autodiff.offer #autodiff.batch<max(ceildiv(arg2, 16), 0) at_most 1024 exact = true>
// CHECK-NEXT: autodiff.offer #autodiff.unravel<[arg4, div(arg3, arg4)] lanes = 64>
// CHECK-NEXT: autodiff.stored <1 "a.py:3:1" <0 [] exact = true> deciders [] check <bijective 1 at 0 []>>
// CHECK-NEXT: autodiff.live <0 [?, <arg4 [<8 x [<1 x pid0 of program>]>, <1 x [<1 x 8 of axis 0>, <8 x ? of loop 1>] below arg2>] exact = true not_negative [arg4]
// CHECK-NEXT: }
autodiff.plan {
  autodiff.rearranged <[max(arg2, 0), grid1, grid2] assumed [grid0 - 1] checks [<distinct 1 at 0 [<1 x [<1 x grid0>] below arg2>]>] position "a.py:3:1" batched 4 ["a.py:5:1"] unraveled [16, 4] "a.py:7:1">
  autodiff.assume <arg3 - 1>
  autodiff.offer #autodiff.batch<max(ceildiv(arg2, 16), 0) at_most 1024 exact = true>
  autodiff.offer #autodiff.unravel<[arg4, div(arg3, arg4)] lanes = 64>
  autodiff.stored <1 "a.py:3:1" <0 [] exact = true> deciders [] check <bijective 1 at 0 []>>
  autodiff.live <0 [?, <arg4 [<8 x [<1 x pid0 of program>]>, <1 x [<1 x 8 of axis 0>, <8 x ? of loop 1>] below arg2>] exact = true not_negative [arg4] guards [[[#autodiff.constraint<[<1 x ? of axis 0>] below 0>], [#autodiff.constraint<[<-1 x ? of axis 0>] below 0>]]]>]>
}

// -----

// Memory, and the kernels that it is for, which stay, though they are private.
// CHECK: autodiff.plan {
// CHECK-NEXT: autodiff.buffer 0 <tape "tape0" : f32, max(arg3, 0) * (grid0 * 8)>
// CHECK-NEXT: autodiff.host_size 0 <grid0 * 4>
// CHECK-NEXT: autodiff.gradient <partial 0 : f32 init = none partials min(arg2, processors) returned = true overwritten = true remainder = true confined = sums margin = 7 checks [<bijective 0 at 4 [<arg3 x [<1 x 4>, <4 x pids(rem(pid0, 2))>, <8 x each(arg4 - pid0)>] below arg4 chunk 1 below arg3 from arg2>] not_negative [arg5] moves = true programs [pid0, pid1] summed = 1 whole = true within [<arg2 at_most 2147483647>]>] reach [<0 []>]>
// CHECK-NEXT: autodiff.check <cotangent 1> <distinct 1 at -4 []>
// CHECK-NEXT: autodiff.launch @bwd grid [ceildiv(grid0, 2), 1, 1] options {num_warps = 8 : i32}
// CHECK-NEXT: autodiff.launch @wide in_place_of @bwd when <max(0, arg2 - 4096)> accesses [{argument = 0 : i64}]
// CHECK-NEXT: }
// CHECK-LABEL: tt.func private @bwd(
// CHECK-LABEL: tt.func private @wide(
autodiff.plan {
  autodiff.buffer 0 <tape "tape0" : f32, max(arg3, 0) * (grid0 * 8)>
  autodiff.host_size 0 <grid0 * 4>
  autodiff.gradient <partial 0 : f32 init = none partials min(arg2, processors) returned = true overwritten = true remainder = true confined = sums margin = 7 checks [<bijective 0 at 4 [<arg3 x [<1 x 4>, <4 x pids(rem(pid0, 2))>, <8 x each(arg4 - pid0)>] below arg4 chunk 1 below arg3 from arg2>] not_negative [arg5] moves = true programs [pid0, pid1] summed = 1 whole = true within [<arg2 at_most 2147483647>]>] reach [<0 []>]>
  autodiff.check <cotangent 1> <distinct 1 at -4 []>
  autodiff.launch @bwd grid [ceildiv(grid0, 2), 1, 1] options {num_warps = 8 : i32}
  autodiff.launch @wide in_place_of @bwd when <max(0, arg2 - 4096)> accesses [{argument = 0 : i64}]
}
tt.func private @bwd(%tape: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<buffer 0>},
                     %n: i64 {autodiff.operand = #autodiff.operand<size 0>}) {
  tt.return
}
tt.func private @wide(%tape: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<buffer 0>}) {
  tt.return
}

// -----

// What to ask for, step by step.
// CHECK: autodiff.plan {
// CHECK-NEXT: autodiff.next [#autodiff.next<axes [16, arg2] not_negative [0 - shared, arg2 - 1]>, #autodiff.next<axes []>, #autodiff.next<reload [0]>]
// CHECK-NEXT: autodiff.next [#autodiff.next<assume [0] fails = launch>]
// CHECK-NEXT: autodiff.next [#autodiff.next<atomic [0, 2] fails = gradient of 0>, #autodiff.next<none [] not_negative [arg2] fails = output of 1>]
// CHECK-NEXT: }
autodiff.plan {
  autodiff.next [#autodiff.next<axes [16, arg2] not_negative [0 - shared, arg2 - 1]>, #autodiff.next<axes []>, #autodiff.next<reload [0]>]
  autodiff.next [#autodiff.next<assume [0] fails = launch>]
  autodiff.next [#autodiff.next<atomic [0, 2] fails = gradient of 0>, #autodiff.next<none [] not_negative [arg2] fails = output of 1>]
}

// -----

// CHECK: autodiff.plan {
// CHECK-NEXT: }
autodiff.plan {}
