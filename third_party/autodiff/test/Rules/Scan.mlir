// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// A running sum's adjoint runs from the other end.
// CHECK-LABEL: tt.func @cumsum_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<4xf32>
// CHECK: %[[S:.*]] = "tt.scan"(%[[T]]) <{axis = 0 : i32, reverse = true}>
// CHECK: arith.addf
// CHECK: autodiff.accumulate {{.*}}, %[[S]] {
tt.func @cumsum(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.scan.return %s : f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %1, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// A running product, from the end: w_i = x_i w_(i+1) + x_i t_i is a scan of the
// maps (x, x t) from the first element on, since the product ran from the last.
// CHECK-LABEL: tt.func @cumprod_from_the_end_bwd(
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[S:.*]] = "tt.scan"(%[[X]]) <{axis = 0 : i32, reverse = true}>
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[I:.*]], %{{.*}} : tensor<4xi32>
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[I]], %{{.*}} : tensor<4xi32>
// CHECK: %[[PREVIOUS:.*]]:3 = "tt.scan"(%[[S]], %[[S]], %{{.*}}) <{axis = 0 : i32, reverse = true}>
// CHECK: %[[V:.*]] = arith.mulf %[[X]], %[[T]]
// CHECK: %[[W:.*]]:2 = "tt.scan"(%[[X]], %[[V]]) <{axis = 0 : i32, reverse = false}>
// CHECK: ^bb0(%[[N:.*]]: f32, %[[U:.*]]: f32, %[[M:.*]]: f32, %[[V1:.*]]: f32)
// CHECK: %[[MN:.*]] = arith.mulf %[[M]], %[[N]]
// CHECK: %[[MU:.*]] = arith.mulf %[[M]], %[[U]]
// CHECK: %[[VU:.*]] = arith.addf %[[V1]], %[[MU]]
// CHECK: tt.scan.return %[[MN]], %[[VU]]
// CHECK: %[[NEXT:.*]]:3 = "tt.scan"(%[[W]]#1, %[[W]]#1, %{{.*}}) <{axis = 0 : i32, reverse = false}>
// CHECK: %[[W0:.*]] = arith.select %[[FIRST]], %{{.*}}, %[[NEXT]]#1
// CHECK: %[[TOTAL:.*]] = arith.addf %[[T]], %[[W0]]
// CHECK: %[[B:.*]] = arith.mulf %[[TOTAL]], %[[PREVIOUS]]#1
// CHECK: %[[D:.*]] = arith.select %[[LAST]], %[[TOTAL]], %[[B]]
// CHECK: autodiff.accumulate {{.*}}, %[[D]] {
tt.func @cumprod_from_the_end(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = true}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    tt.scan.return %s : f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %1, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// The derivative of a linear recurrence by its state is a diagonal matrix: a
// scan of four values, not of six.
// CHECK-LABEL: tt.func @recurrence_bwd(
// CHECK: "tt.scan"(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}) <{axis = 0 : i32, reverse = true}>
tt.func @recurrence(%pa: !tt.ptr<f32>, %pb: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pz: !tt.ptr<f32>) {
  %0 = tt.splat %pa : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %a = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %1 = tt.splat %pb : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %b = tt.load %1 : tensor<4x!tt.ptr<f32>>
  %y:2 = "tt.scan"(%a, %b) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a1: f32, %b1: f32, %a2: f32, %b2: f32):
    %s = arith.mulf %a1, %a2 : f32
    %t = arith.mulf %a2, %b1 : f32
    %u = arith.addf %t, %b2 : f32
    tt.scan.return %s, %u : f32, f32
  }) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %2, %y#0 : tensor<4x!tt.ptr<f32>>
  %3 = tt.splat %pz : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %3, %y#1 : tensor<4x!tt.ptr<f32>>
  tt.return
}
