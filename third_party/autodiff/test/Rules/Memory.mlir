// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// A load's adjoint adds at the same address under the same mask; where the mask
// is false, `other` gets the cotangent instead. A store's adjoint takes the
// cotangent from where it stored.
// CHECK-LABEL: tt.func @masked_bwd(
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK: %[[W:.*]] = tt.splat %arg1
// CHECK: %[[PX:.*]] = tt.addptr
// CHECK: %[[PY:.*]] = tt.splat %arg2
// CHECK: %[[T:.*]] = autodiff.upstream %[[PY]] mask %arg3 : tensor<4xi1> {argument = 2 : i32, site = 2 : i32}
// CHECK: %[[DW:.*]] = arith.select %arg4, %[[ZERO]], %[[T]] :
// CHECK: autodiff.accumulate %[[PX]], %[[T]] mask %arg4 : tensor<4xi1> {argument = 0 : i32, site = 1 : i32}
// CHECK: autodiff.accumulate %[[W]], %[[DW]] {argument = 1 : i32, site = 0 : i32}
tt.func @masked(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %stored: tensor<4xi1>, %loaded: tensor<4xi1>) {
  %0 = tt.splat %pw : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %w = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %o = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %1 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %2 = tt.addptr %1, %o : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %x = tt.load %2, %loaded, %w : tensor<4x!tt.ptr<f32>>
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %3, %x, %stored : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// The backward visits stores last to first. One that stores a constant hides
// what was stored there before: it clears the cotangent and returns none.
// CHECK-LABEL: tt.func @hidden_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}}site = 3 : i32} : !tt.ptr<f32> -> f32
// CHECK: autodiff.upstream {{.*}}site = 2 : i32} : !tt.ptr<f32>{{$}}
// CHECK: %[[U:.*]] = autodiff.upstream {{.*}}site = 1 : i32} : !tt.ptr<f32> -> f32
// CHECK: %[[D:.*]] = arith.addf %[[T]], %[[U]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @hidden(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %zero = arith.constant 0.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.store %py, %zero : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.return
}

// -----

// An atomic add leaves the cotangent where it is: other adds read it, too.
// CHECK-LABEL: tt.func @atomic_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 mask %arg2 : i1 {argument = 1 : i32, keep, site = 1 : i32} : !tt.ptr<f32> -> f32
// CHECK: autodiff.accumulate %arg0, %[[T]] {
// CHECK-NOT: tt.atomic_rmw
tt.func @atomic(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %mask: i1) {
  %x = tt.load %px : !tt.ptr<f32>
  %old = tt.atomic_rmw fadd, acq_rel, gpu, %py, %x, %mask : (!tt.ptr<f32>, f32, i1) -> f32
  tt.return
}

// -----

// In place: the cotangent is taken before the gradient is added.
// CHECK-LABEL: tt.func @in_place_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0
// CHECK: %[[Y:.*]] = math.exp %[[X]]
// CHECK: %[[T:.*]] = autodiff.upstream %arg0
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[Y]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @in_place(%px: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = math.exp %x : f32
  tt.store %px, %y : !tt.ptr<f32>
  tt.return
}
