// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// z = p·q of the halves p, q of one tile, stored under a mask: what the mask
// leaves of p is not what it leaves of q, for their lanes come from other
// places. A lane of the cotangent of u counts if it is in one or the other.
// CHECK-LABEL: tt.func @halves_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: %[[JOINED:.*]] = tt.join %{{.*}}, %{{.*}} : tensor<4x4xf32> -> tensor<4x4x2xf32>
// CHECK: %[[BACK:.*]] = tt.trans %[[JOINED]] {order = array<i32: 0, 2, 1>}
// CHECK: %[[PAIRS:.*]] = tt.reshape %[[BACK]]
// CHECK: %[[U:.*]], %[[D:.*]] = tt.split %[[PAIRS]]
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK: autodiff.accumulate
tt.func @halves(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x4x!tt.ptr<f32>>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<4x4x!tt.ptr<f32>>
  %r = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %e = tt.expand_dims %r {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
  %lane = tt.broadcast %e : tensor<1x4xi32> -> tensor<4x4xi32>
  %end = tt.splat %n : i32 -> tensor<4x4xi32>
  %mask = arith.cmpi slt, %lane, %end : tensor<4x4xi32>
  %x = tt.load %0 : tensor<4x4x!tt.ptr<f32>>
  %d = arith.mulf %x, %x : tensor<4x4xf32>
  %j = tt.join %x, %d : tensor<4x4xf32> -> tensor<4x4x2xf32>
  %i = tt.reshape %j : tensor<4x4x2xf32> -> tensor<4x2x4xf32>
  %t = tt.trans %i {order = array<i32: 0, 2, 1>} : tensor<4x2x4xf32> -> tensor<4x4x2xf32>
  %p, %q = tt.split %t : tensor<4x4x2xf32> -> tensor<4x4xf32>
  %z = arith.mulf %p, %q : tensor<4x4xf32>
  tt.store %1, %z, %mask : tensor<4x4x!tt.ptr<f32>>
  tt.return
}
