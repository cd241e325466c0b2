// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-mask-loads -autodiff-reverse -autodiff-mark-live | FileCheck %s

// A tile is loaded, and as much of it as is stored has a gradient.
// CHECK: autodiff.live <0 [<0 [<1 x [<1 x 8 of axis 0>] below arg2>] exact = true>]>
// CHECK-LABEL: tt.func @tail(
tt.func @tail(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %end = tt.splat %n : i32 -> tensor<8xi32>
  %mask = arith.cmpi slt, %range, %end : tensor<8xi32>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %1 = tt.addptr %0, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %x = tt.load %1 : tensor<8x!tt.ptr<f32>>
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %3 = tt.addptr %2, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.store %3, %x, %mask : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// Memory says where it is.
// CHECK: autodiff.live <0 [?]>
// CHECK-LABEL: tt.func @gathered(
tt.func @gathered(%px: !tt.ptr<f32>, %pi: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %i = tt.load %pi : !tt.ptr<i32>
  %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
  %x = tt.load %p : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.return
}
