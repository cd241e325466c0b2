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
