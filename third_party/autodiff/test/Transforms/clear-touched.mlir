// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse -autodiff-read-cotangents -autodiff-schedule \
// RUN:   -autodiff-clear-touched | FileCheck %s

// Rows of a table in half precision: their sums are cleared before the kernel
// that adds, and rounded after it, at the addresses that it adds to.
// CHECK-LABEL: tt.func @rows_bwd(
// CHECK: %[[J:.*]] = tt.load
// CHECK: tt.atomic_rmw fadd
// CHECK: tt.return

// CHECK-LABEL: tt.func @rows_bwd_round0(
// CHECK-SAME: %[[INDEX:[a-z0-9]+]]: !tt.ptr<i32> {autodiff.operand = #autodiff.operand<argument 1>}
// CHECK-SAME: %[[SUM:[a-z0-9]+]]: !tt.ptr<f32> {{.*}}#autodiff.operand<gradient 0>
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: !tt.ptr<f16> {{.*}}#autodiff.operand<rounded 0>
// CHECK-SAME: autodiff.role = "round"
// CHECK: %[[K:.*]] = tt.load
// CHECK-DAG: %[[S:.*]] = tt.splat %[[SUM]]
// CHECK-DAG: %[[O:.*]] = tt.splat %[[OUT]]
// CHECK-DAG: %[[PS:.*]] = tt.addptr %[[S]], %[[K]]
// CHECK-DAG: %[[PO:.*]] = tt.addptr %[[O]], %[[K]]
// CHECK: %[[V:.*]] = tt.load %[[PS]]
// CHECK: %[[H:.*]] = arith.truncf %[[V]]
// CHECK: tt.store %[[PO]], %[[H]]
// CHECK-NOT: tt.load
// CHECK: tt.return

// CHECK-LABEL: tt.func @rows_bwd_clear0(
// CHECK-SAME: autodiff.role = "clear"
// CHECK-SAME: autodiff.when = {{.*}}extent
// CHECK: %[[Z:.*]] = arith.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK-NOT: math.exp
// CHECK: tt.store {{.*}}, %[[Z]]
// CHECK: tt.return
tt.func @rows(%px: !tt.ptr<f16>, %pi: !tt.ptr<i32>, %py: !tt.ptr<f16>) {
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %0 = tt.splat %pi : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>>
  %1 = tt.addptr %0, %i : tensor<4x!tt.ptr<i32>>, tensor<4xi32>
  %j = tt.load %1 : tensor<4x!tt.ptr<i32>>
  %2 = tt.splat %px : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>>
  %3 = tt.addptr %2, %j : tensor<4x!tt.ptr<f16>>, tensor<4xi32>
  %x = tt.load %3 : tensor<4x!tt.ptr<f16>>
  %e = math.exp %x : tensor<4xf16>
  %4 = tt.splat %py : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>>
  %5 = tt.addptr %4, %i : tensor<4x!tt.ptr<f16>>, tensor<4xi32>
  tt.store %5, %e : tensor<4x!tt.ptr<f16>>
  tt.return
}

// -----

// A float decides which elements are touched, and may be rounded otherwise in
// another kernel.
// CHECK-LABEL: tt.func @decided_by_floats_bwd(
// CHECK-NOT: autodiff.role = "clear"
tt.func @decided_by_floats(%px: !tt.ptr<f16>, %pi: !tt.ptr<i32>, %pf: !tt.ptr<f32>, %py: !tt.ptr<f16>) {
  %zero = arith.constant 0.0 : f32
  %f = tt.load %pf : !tt.ptr<f32>
  %s = math.sin %f : f32
  %mask = arith.cmpf ogt, %s, %zero : f32
  %j = tt.load %pi : !tt.ptr<i32>
  %0 = tt.addptr %px, %j : !tt.ptr<f16>, i32
  %other = arith.constant 0.0 : f16
  %x = tt.load %0, %mask, %other : !tt.ptr<f16>
  tt.store %py, %x : !tt.ptr<f16>
  tt.return
}

// -----

// Sums in f32 are what the tensor holds: nothing has to be rounded.
// CHECK-LABEL: tt.func @floats_bwd(
// CHECK-NOT: autodiff.role = "clear"
tt.func @floats(%px: !tt.ptr<f32>, %pi: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %j = tt.load %pi : !tt.ptr<i32>
  %0 = tt.addptr %px, %j : !tt.ptr<f32>, i32
  %x = tt.load %0 : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.return
}
