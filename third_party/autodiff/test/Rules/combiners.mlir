// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// The mean of equal numbers is what they are, in any order: the first of them
// gets the cotangent, and they have it together.
// CHECK-LABEL: tt.func @mean_of_equal_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<2xf32>
// CHECK: %[[E:.*]] = tt.expand_dims %[[T]] {axis = 1 : i32}
// CHECK: %[[B:.*]] = tt.broadcast %[[E]] : tensor<2x1xf32> -> tensor<2x8xf32>
// CHECK: %[[S:.*]] = arith.select %{{.*}}, %[[B]], %{{.*}} : tensor<2x8xi1>, tensor<2x8xf32>
// CHECK: %[[SUM:.*]] = "tt.reduce"(%[[S]]) <{axis = 1 : i32}>
// CHECK: arith.addf
// CHECK: autodiff.accumulate {{.*}}, %[[SUM]]
tt.func @mean_of_equal(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<2x!tt.ptr<f32>>
  %e = tt.expand_dims %x {axis = 1 : i32} : tensor<2xf32> -> tensor<2x1xf32>
  %b = tt.broadcast %e : tensor<2x1xf32> -> tensor<2x8xf32>
  %y = "tt.reduce"(%b) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %c: f32):
    %half = arith.constant 5.000000e-01 : f32
    %s = arith.addf %a, %c : f32
    %m = arith.mulf %s, %half : f32
    tt.reduce.return %m : f32
  }) : (tensor<2x8xf32>) -> tensor<2xf32>
  tt.store %1, %y : tensor<2x!tt.ptr<f32>>
  tt.return
}

// -----

// Of a scan, each element stands for itself.
// CHECK-LABEL: tt.func @scan_of_equal_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<2x8xf32>
// CHECK: %[[SUM:.*]] = "tt.reduce"(%[[T]]) <{axis = 1 : i32}>
// CHECK: arith.addf
// CHECK: autodiff.accumulate {{.*}}, %[[SUM]]
tt.func @scan_of_equal(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<2x8x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<2x!tt.ptr<f32>>
  %e = tt.expand_dims %x {axis = 1 : i32} : tensor<2xf32> -> tensor<2x1xf32>
  %b = tt.broadcast %e : tensor<2x1xf32> -> tensor<2x8xf32>
  %y = "tt.scan"(%b) <{axis = 1 : i32, reverse = true}> ({
  ^bb0(%a: f32, %c: f32):
    %half = arith.constant 5.000000e-01 : f32
    %s = arith.addf %a, %c : f32
    %m = arith.mulf %s, %half : f32
    tt.scan.return %m : f32
  }) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  tt.store %1, %y : tensor<2x8x!tt.ptr<f32>>
  tt.return
}

// -----

// Of two elements there is one order.
// CHECK-LABEL: tt.func @mean_of_two_bwd(
// CHECK: %[[Y:.*]] = tt.splat %{{.*}} : f32 -> tensor<2xf32>
// CHECK: %[[HALF:.*]] = arith.mulf %[[Y]], %cst
// CHECK: %[[REST:.*]] = arith.select %{{.*}}, %[[Y]], %[[HALF]]
// CHECK: %[[OWN:.*]] = arith.mulf %[[REST]], %cst
// CHECK: %[[X:.*]] = arith.select %{{.*}}, %[[REST]], %[[OWN]]
// CHECK: autodiff.accumulate {{.*}}, %[[X]]
tt.func @mean_of_two(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<2x!tt.ptr<f32>>
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %half = arith.constant 5.000000e-01 : f32
    %s = arith.addf %a, %b : f32
    %m = arith.mulf %s, %half : f32
    tt.reduce.return %m : f32
  }) : (tensor<2xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A count is no fraction: these means are associative for 0, 1, 2, …
// CHECK-LABEL: tt.func @counted_mean_bwd(
// CHECK: autodiff.accumulate
tt.func @counted_mean(%px: !tt.ptr<f32>, %pn: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %1 = tt.splat %pn : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %k = tt.load %1 : tensor<4x!tt.ptr<i32>>
  %n = arith.sitofp %k : tensor<4xi32> to tensor<4xf32>
  %y:2 = "tt.reduce"(%x, %n) <{axis = 0 : i32}> ({
  ^bb0(%x1: f32, %n1: f32, %x2: f32, %n2: f32):
    %one = arith.constant 1.000000e+00 : f32
    %s1 = arith.mulf %x1, %n1 : f32
    %s2 = arith.mulf %x2, %n2 : f32
    %s = arith.addf %s1, %s2 : f32
    %n3 = arith.addf %n1, %n2 : f32
    %d = arith.maxnumf %n3, %one : f32
    %m = arith.divf %s, %d : f32
    tt.reduce.return %m, %n3 : f32, f32
  }) : (tensor<4xf32>, tensor<4xf32>) -> (f32, f32)
  tt.store %py, %y#0 : !tt.ptr<f32>
  tt.return
}

// -----

// The second largest starts from −∞: that pairs are in order is for each pair
// that is combined.
// CHECK-LABEL: tt.func @two_largest_bwd(
// CHECK: autodiff.accumulate
tt.func @two_largest(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %none = arith.constant dense<0xFF800000> : tensor<4xf32>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %y:2 = "tt.reduce"(%x, %none) <{axis = 0 : i32}> ({
  ^bb0(%x1: f32, %s1: f32, %x2: f32, %s2: f32):
    %first = arith.maxnumf %x1, %x2 : f32
    %less = arith.minnumf %x1, %x2 : f32
    %left = arith.cmpf ogt, %x1, %x2 : f32
    %own = arith.select %left, %s1, %s2 : f32
    %second = arith.maxnumf %less, %own : f32
    tt.reduce.return %first, %second : f32, f32
  }) : (tensor<4xf32>, tensor<4xf32>) -> (f32, f32)
  tt.store %py, %y#1 : !tt.ptr<f32>
  tt.return
}
