// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize -autodiff-reverse \
// RUN:   -canonicalize -cse -autodiff-read-cotangents -autodiff-lower-accumulates=confine=0 \
// RUN:   -autodiff-confine-gradients -canonicalize -cse | FileCheck %s
// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize -autodiff-reverse \
// RUN:   -canonicalize -cse -autodiff-read-cotangents -autodiff-lower-accumulates \
// RUN:   -autodiff-confine-gradients -canonicalize -cse | FileCheck %s --check-prefix=KNOWN

// Rows that memory says: one comparison for each of them, with a margin that
// holds what is left of a row.
// CHECK: autodiff.gradient {{.*}}: f32 init = zero returned = true confined = all margin = 7
// CHECK-LABEL: tt.func @rows_bwd(
// CHECK: %[[FIRST:.*]] = arith.shrsi {{.*}} : tensor<4xi64>
// CHECK: autodiff.size <lead(arg0)>
// CHECK: %[[PLACE:.*]] = arith.addi %[[FIRST]], %{{.*}} : tensor<4xi64>
// CHECK: autodiff.size <span(arg0) - 7>
// CHECK: %[[ROWS:.*]] = arith.cmpi ult, %[[PLACE]], %{{.*}} : tensor<4xi64>
// CHECK: %[[COLUMN:.*]] = tt.expand_dims %[[ROWS]]
// CHECK: %[[MASK:.*]] = tt.broadcast %[[COLUMN]]
// CHECK: tt.atomic_rmw fadd, relaxed, gpu, %{{.*}}, %{{.*}}, %[[MASK]]
// KNOWN: autodiff.gradient {{.*}}confined = sums
// KNOWN-LABEL: tt.func @rows_bwd(
// KNOWN: %[[MASK:.*]] = tt.broadcast {{.*}} -> tensor<4x8xi1>
// KNOWN: tt.atomic_rmw fadd, relaxed, gpu, %{{.*}}, %{{.*}}, %[[MASK]]
tt.func @rows(%px: !tt.ptr<f32>, %pi: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %c8 = arith.constant dense<8> : tensor<4x1xi32>
  %rows = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %columns = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %0 = tt.splat %pi : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>>
  %1 = tt.addptr %0, %rows : tensor<4x!tt.ptr<i32>>, tensor<4xi32>
  %index = tt.load %1 : tensor<4x!tt.ptr<i32>>
  %2 = tt.expand_dims %index {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %3 = arith.muli %2, %c8 : tensor<4x1xi32>
  %4 = tt.broadcast %3 : tensor<4x1xi32> -> tensor<4x8xi32>
  %5 = tt.expand_dims %columns {axis = 0 : i32} : tensor<8xi32> -> tensor<1x8xi32>
  %6 = tt.broadcast %5 : tensor<1x8xi32> -> tensor<4x8xi32>
  %7 = arith.addi %4, %6 : tensor<4x8xi32>
  %8 = tt.splat %px : !tt.ptr<f32> -> tensor<4x8x!tt.ptr<f32>>
  %9 = tt.addptr %8, %7 : tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>
  %x = tt.load %9 : tensor<4x8x!tt.ptr<f32>>
  %10 = tt.expand_dims %rows {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %11 = arith.muli %10, %c8 : tensor<4x1xi32>
  %12 = tt.broadcast %11 : tensor<4x1xi32> -> tensor<4x8xi32>
  %13 = arith.addi %12, %6 : tensor<4x8xi32>
  %14 = tt.splat %py : !tt.ptr<f32> -> tensor<4x8x!tt.ptr<f32>>
  %15 = tt.addptr %14, %13 : tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>
  tt.store %15, %x : tensor<4x8x!tt.ptr<f32>>
  tt.return
}

// -----

// A launch knows how far a sum of numbers goes. It may be too far for a buffer:
// then what is stored is masked, too.
// CHECK: autodiff.gradient {{.*}}confined = all
// CHECK-LABEL: tt.func @sum_bwd(
// CHECK: arith.cmpi ult, %{{.*}}, %{{.*}} : i64
// CHECK: %[[MASK:.*]] = tt.splat %{{.*}} : i1 -> tensor<8xi1>
// CHECK: tt.store %{{.*}}, %{{.*}}, %[[MASK]]
// KNOWN: autodiff.plan
// KNOWN-NOT: confined
// KNOWN: autodiff.gradient {{.*}} reach [<arg2 [<1 x [<1 x 8 of axis 0>]>] exact = true>]
// KNOWN-LABEL: tt.func @sum_bwd(
// KNOWN-NOT: autodiff.size
// KNOWN: tt.store %{{[0-9]+}}, %{{[0-9]+}} :
tt.func @sum(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %0 = tt.splat %n : i32 -> tensor<8xi32>
  %i = arith.addi %0, %range : tensor<8xi32>
  %1 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %2 = tt.addptr %1, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %x = tt.load %2 : tensor<8x!tt.ptr<f32>>
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %4 = tt.addptr %3, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.store %4, %x : tensor<8x!tt.ptr<f32>>
  tt.return
}
