// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-reverse -canonicalize -cse | FileCheck %s

// The backward takes the primal's arguments and is marked as such. Uses of a
// value add up, and what only the primal needed is gone: one product rule on
// x·sin(x) gives T·sin(x) + (T·x)·cos(x), without a store.
// CHECK-LABEL: tt.func @kernel(
// CHECK: tt.store %arg1,
// CHECK-LABEL: tt.func @kernel_bwd(
// CHECK-SAME: %arg0: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 0>, autodiff.wanted}
// CHECK-SAME: %arg1: !tt.ptr<f32> {autodiff.has_cotangent, autodiff.operand = #autodiff.operand<argument 1>})
// CHECK-SAME: attributes {autodiff.role = "backward"}
// CHECK: %[[X:.*]] = tt.load %arg0
// CHECK: %[[S:.*]] = math.sin %[[X]]
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {argument = 1 : i32, site = 1 : i32}
// CHECK: %[[A:.*]] = arith.mulf %[[T]], %[[S]] :
// CHECK: %[[B:.*]] = arith.mulf %[[T]], %[[X]] :
// CHECK: %[[C:.*]] = math.cos %[[X]]
// CHECK: %[[D:.*]] = arith.mulf %[[B]], %[[C]] :
// CHECK: %[[SUM:.*]] = arith.addf %[[A]], %[[D]] :
// CHECK: autodiff.accumulate %arg0, %[[SUM]] {argument = 0 : i32, site = 0 : i32}
// CHECK-NOT: tt.store
// CHECK: tt.return
tt.func @kernel(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %s = math.sin %x : f32
  %y = arith.mulf %x, %s : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
