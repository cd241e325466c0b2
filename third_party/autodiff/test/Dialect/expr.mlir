// RUN: triton-autodiff-opt -split-input-file %s | triton-autodiff-opt -split-input-file | FileCheck %s

// What stands in parentheses is what would be taken apart without them.
// CHECK-LABEL: tt.func @arithmetic
tt.func @arithmetic() {
  // CHECK-NEXT: autodiff.size <ceildiv(arg3, 128) * grid0>
  %0 = autodiff.size <ceildiv(arg3, 128) * grid0>
  // CHECK-NEXT: autodiff.size <arg0 - 1 + arg1 * -2>
  %1 = autodiff.size <((arg0 - 1) + (arg1 * -2))>
  // CHECK-NEXT: autodiff.size <arg0 - (1 + arg1) * 2>
  %2 = autodiff.size <arg0 - (1 + arg1) * 2>
  // CHECK-NEXT: autodiff.size <arg0 * (arg1 * arg2) * 4>
  %3 = autodiff.size <(arg0 * (arg1 * arg2)) * 4>
  // CHECK-NEXT: autodiff.size <arg0 - (arg1 - arg2) - -5>
  %4 = autodiff.size <arg0 - (arg1 - arg2) - -5>
  // CHECK-NEXT: autodiff.size <-9223372036854775808>
  %5 = autodiff.size <-9223372036854775808>
  // CHECK-NEXT: autodiff.size <min(max(div(arg0, 3), 1 + 2), rem(arg1, grid2))>
  %6 = autodiff.size <min(max(div(arg0, 3), 1 + 2), rem(arg1, grid2))>
  tt.return
}

// What only the launch knows.
// CHECK-LABEL: tt.func @launch
tt.func @launch() {
  // CHECK-NEXT: autodiff.size <isqrt(counted(2)) + 1>
  %0 = autodiff.size <isqrt(counted(2)) + 1>
  // CHECK-NEXT: autodiff.size <maxpids(div(pid0, arg4)) + 1>
  %1 = autodiff.size <maxpids(div(pid0, arg4)) + 1>
  // CHECK-NEXT: autodiff.size <ceildiv(span(arg1) - lead(arg1), pitch(arg1, 64)) * extent(arg2)>
  %2 = autodiff.size <ceildiv(span(arg1) - lead(arg1), pitch(arg1, 64)) * extent(arg2)>
  // CHECK-NEXT: autodiff.size <element(arg5, arg3 + 1) * processors>
  %3 = autodiff.size <element(arg5, arg3 + 1) * processors>
  // CHECK-NEXT: autodiff.size <coarsest(arg3, shared + parts * deterministic)>
  %5 = autodiff.size <coarsest(arg3, shared + parts * deterministic)>
  // CHECK-NEXT: autodiff.programs [#autodiff.expr<grid0>, #autodiff.expr<4>]
  %4:2 = autodiff.programs [#autodiff.expr<grid0>, #autodiff.expr<4>] : i32, i32
  tt.return
}

// -----

// Facts about a module.
// CHECK: autodiff.assumed = [#autodiff.expr<arg3 - 1>]
// CHECK-SAME: autodiff.batch = #autodiff.batch<max(ceildiv(arg2, 16), 0) at_most 1024 exact = true>
// CHECK-SAME: autodiff.launch = #autodiff.launch<[max(arg2, 0), grid1, grid2] assumed [grid0 - 1] checks [<distinct 1 at 0 [<1 x [<1 x grid0>] below arg2>]>] position "a.py:3:1" batched 4 ["a.py:5:1"] unraveled[16, 4] "a.py:7:1">
// CHECK-SAME: autodiff.live = [#autodiff.live<0 [?, <arg4 [<8 x [<1 x pid0 of program>]>, <1 x [<1 x 8 of axis 0>, <8 x ? of loop 1>] below arg2>] exact = true not_negative [arg4]
// CHECK-SAME: autodiff.next = {{\[\[}}#autodiff.next<axes [16, arg2] not_negative [0 - shared, arg2 - 1]>, #autodiff.next<axes []>, #autodiff.next<reload [0]>], [#autodiff.next<assume [0] fails = launch>], [#autodiff.next<atomic [0, 2] fails = gradient of 0>, #autodiff.next<none [] not_negative [arg2] fails = output of 1>], []]
// CHECK-SAME: autodiff.unravel = #autodiff.unravel<[arg4, div(arg3, arg4)] lanes = 64>
module attributes {
  autodiff.assumed = [#autodiff.expr<arg3 - 1>],
  autodiff.launch = #autodiff.launch<[max(arg2, 0), grid1, grid2] assumed [grid0 - 1] checks [<distinct 1 at 0 [<1 x [<1 x grid0>] below arg2>]>] position "a.py:3:1" batched 4 ["a.py:5:1"] unraveled [16, 4] "a.py:7:1">,
  autodiff.batch = #autodiff.batch<max(ceildiv(arg2, 16), 0) at_most 1024 exact = true>,
  autodiff.unravel = #autodiff.unravel<[arg4, div(arg3, arg4)] lanes = 64>,
  autodiff.next = [[#autodiff.next<axes [16, arg2] not_negative [0 - shared, arg2 - 1]>, #autodiff.next<axes []>, #autodiff.next<reload [0]>], [#autodiff.next<assume [0] fails = launch>], [#autodiff.next<atomic [0, 2] fails = gradient of 0>, #autodiff.next<none [] not_negative [arg2] fails = output of 1>], []],
  autodiff.live = [#autodiff.live<0 [?, <arg4 [<8 x [<1 x pid0 of program>]>, <1 x [<1 x 8 of axis 0>, <8 x ? of loop 1>] below arg2>] exact = true not_negative [arg4] guards [[[#autodiff.constraint<[<1 x ? of axis 0>] below 0>], [#autodiff.constraint<[<-1 x ? of axis 0>] below 0>]]]>]>],
  autodiff.stores = [#autodiff.stored<1 "a.py:3:1" <0 [] exact = true> deciders [] check <bijective 1 at 0 []>>]
} {
}

// -----

// Facts about arguments of a kernel.
// CHECK: autodiff.buffer = #autodiff.buffer<tape "tape0" : f32, max(arg3, 0) * (grid0 * 8)>
// CHECK: autodiff.buffer = #autodiff.gradient<partial 0 : f32 init = none partials min(arg2, processors) returned = true overwritten = true remainder = true confined = sums margin = 7 checks [<bijective 0 at 4 [<arg3 x [<1 x 4>, <4 x pids(rem(pid0, 2))>, <8 x each(arg4 - pid0)>] below arg4 part 1 below arg3 from arg2>] not_negative [arg5] moves = true programs [pid0, pid1] summed = 1 whole = true within [<arg2 at_most 2147483647>]>] reach [<0 []>]>
// CHECK-SAME: autodiff.check = #autodiff.check<distinct 0 at -4 []>
tt.func @arguments(
  %tape: !tt.ptr<f32> {autodiff.buffer = #autodiff.buffer<tape "tape0" : f32, max(arg3, 0) * (grid0 * 8)>},
  %gradient: !tt.ptr<f32> {autodiff.buffer = #autodiff.gradient<partial 0 : f32 init = none partials min(arg2, processors) returned = true overwritten = true remainder = true confined = sums margin = 7 checks [<bijective 0 at 4 [<arg3 x [<1 x 4>, <4 x pids(rem(pid0, 2))>, <8 x each(arg4 - pid0)>] below arg4 part 1 below arg3 from arg2>] not_negative [arg5] moves = true programs [pid0, pid1] summed = 1 whole = true within [<arg2 at_most 2147483647>]>] reach [<0 []>]>, autodiff.check = #autodiff.check<distinct 0 at -4 []>}) {
  tt.return
}
