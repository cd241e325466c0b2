// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// What a sum adds up gets the sum's cotangent, each element all of it.
// CHECK-LABEL: tt.func @sum_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<4xf32>
// CHECK: %[[E:.*]] = tt.expand_dims %[[T]] {axis = 0 : i32} : tensor<4xf32> -> tensor<1x4xf32>
// CHECK: %[[B:.*]] = tt.broadcast %[[E]] : tensor<1x4xf32> -> tensor<2x4xf32>
// CHECK: autodiff.accumulate {{.*}}, %[[B]] {
tt.func @sum(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<2x4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<2x4x!tt.ptr<f32>>
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<2x4xf32>) -> tensor<4xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %1, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// A maximum's cotangent goes to the elements that attain it, divided by how
// many there are.
// CHECK-LABEL: tt.func @max_bwd(
// CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[Y:.*]] = "tt.reduce"(%[[X]])
// CHECK: arith.maxnumf
// CHECK: %[[T:.*]] = autodiff.upstream %arg1
// CHECK: %[[R:.*]] = tt.splat %[[Y]] : f32 -> tensor<4xf32>
// CHECK: %[[A:.*]] = arith.cmpf oeq, %[[X]], %[[R]]
// CHECK: %[[I:.*]] = arith.select %[[A]], %[[ONE]], %[[ZERO]]
// CHECK: %[[N:.*]] = "tt.reduce"(%[[I]]) <{axis = 0 : i32}>
// CHECK: arith.addf
// CHECK: %[[S:.*]] = arith.divf %[[T]], %[[N]]
// CHECK: %[[B:.*]] = tt.splat %[[S]]
// CHECK: %[[D:.*]] = arith.select %[[A]], %[[B]], %[[ZERO]]
// CHECK: autodiff.accumulate {{.*}}, %[[D]] {
tt.func @max(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.maxnumf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<4xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// So does a minimum's, here along the second axis.
// CHECK-LABEL: tt.func @min_bwd(
// CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1.000000e+00>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00>
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[Y:.*]] = "tt.reduce"(%[[X]]) <{axis = 1 : i32}>
// CHECK: arith.minimumf
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: %[[E:.*]] = tt.expand_dims %[[Y]] {axis = 1 : i32}
// CHECK: %[[R:.*]] = tt.broadcast %[[E]] : tensor<2x1xf32> -> tensor<2x4xf32>
// CHECK: %[[A:.*]] = arith.cmpf oeq, %[[X]], %[[R]]
// CHECK: %[[I:.*]] = arith.select %[[A]], %[[ONE]], %[[ZERO]]
// CHECK: %[[N:.*]] = "tt.reduce"(%[[I]]) <{axis = 1 : i32}>
// CHECK: arith.addf
// CHECK: %[[S:.*]] = arith.divf %[[T]], %[[N]]
// CHECK: %[[F:.*]] = tt.expand_dims %[[S]] {axis = 1 : i32}
// CHECK: %[[B:.*]] = tt.broadcast %[[F]]
// CHECK: %[[D:.*]] = arith.select %[[A]], %[[B]], %[[ZERO]]
// CHECK: autodiff.accumulate {{.*}}, %[[D]] {
tt.func @min(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<2x4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<2x4x!tt.ptr<f32>>
  %y = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.minimumf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<2x4xf32>) -> tensor<2xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
  tt.store %1, %y : tensor<2x!tt.ptr<f32>>
  tt.return
}

// -----

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
