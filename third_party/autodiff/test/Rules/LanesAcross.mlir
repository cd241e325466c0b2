// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// Products sum over rows and columns of the cotangent. An operand is zero where
// none of those that it meets are live. Under a causal mask: in columns behind
// the last row, and rows in front of the first column.
// CHECK-LABEL: tt.func @causal_bwd(
// CHECK: %[[C15:.*]] = arith.constant dense<15>
// CHECK: %[[START:.*]] = tt.splat %arg3
// CHECK: %[[ROW:.*]] = arith.addi %[[START]], %{{.*}} : tensor<16xi32>
// CHECK: %[[FIRST:.*]] = tt.splat %arg4
// CHECK: %[[COLUMN:.*]] = arith.addi %[[FIRST]], %{{.*}} : tensor<16xi32>
// CHECK: %[[Q:.*]] = tt.load %{{.*}} {autodiff.site = 0
// CHECK: %[[K:.*]] = tt.load %{{.*}} {autodiff.site = 1
// CHECK-NOT: "tt.reduce"
// CHECK: %[[LAST:.*]] = arith.addi %[[START]], %[[C15]]
// CHECK: arith.cmpi sle, %[[COLUMN]], %[[LAST]] : tensor<16xi32>
// CHECK: arith.select %{{.*}}, %[[K]], %{{.*}} : tensor<16x16xi1>
// CHECK: arith.cmpi sle, %[[FIRST]], %[[ROW]] : tensor<16xi32>
// CHECK: arith.select %{{.*}}, %[[Q]], %{{.*}} : tensor<16x16xi1>
tt.func @causal(%pq: !tt.ptr<f32>, %pk: !tt.ptr<f32>, %py: !tt.ptr<f32>, %start: i32, %first: i32) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %0 = tt.splat %start : i32 -> tensor<16xi32>
  %row = arith.addi %0, %range : tensor<16xi32>
  %1 = tt.splat %first : i32 -> tensor<16xi32>
  %column = arith.addi %1, %range : tensor<16xi32>
  %row1 = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %row2 = tt.broadcast %row1 : tensor<16x1xi32> -> tensor<16x16xi32>
  %column1 = tt.expand_dims %column {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %column2 = tt.broadcast %column1 : tensor<1x16xi32> -> tensor<16x16xi32>
  %seen = arith.cmpi sge, %row2, %column2 : tensor<16x16xi32>
  %2 = tt.splat %pq : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %q = tt.load %2 : tensor<16x16x!tt.ptr<f32>>
  %3 = tt.splat %pk : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %k = tt.load %3 : tensor<16x16x!tt.ptr<f32>>
  %s = tt.dot %q, %k, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %y = arith.select %seen, %s, %zero : tensor<16x16xi1>, tensor<16x16xf32>
  %4 = tt.splat %py : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  tt.store %4, %y : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// Of conditions that are no bounds, lanes are counted.
// CHECK-LABEL: tt.func @loaded_bwd(
// CHECK: %[[SEEN:.*]] = arith.cmpi ne, %{{.*}} : tensor<16x16xi32>
// CHECK: arith.select %[[SEEN]],
// CHECK: %[[ONES:.*]] = arith.select %[[SEEN]],
// CHECK: %[[COUNT:.*]] = "tt.reduce"(%[[ONES]]) <{axis = 0 : i32}>
// CHECK: arith.cmpf ogt, %[[COUNT]]
tt.func @loaded(%pq: !tt.ptr<f32>, %pk: !tt.ptr<f32>, %pm: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %none = arith.constant dense<0> : tensor<16x16xi32>
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %0 = tt.splat %pm : !tt.ptr<i32> -> tensor<16x16x!tt.ptr<i32>>
  %m = tt.load %0 : tensor<16x16x!tt.ptr<i32>>
  %seen = arith.cmpi ne, %m, %none : tensor<16x16xi32>
  %2 = tt.splat %pq : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %q = tt.load %2 : tensor<16x16x!tt.ptr<f32>>
  %3 = tt.splat %pk : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %k = tt.load %3 : tensor<16x16x!tt.ptr<f32>>
  %s = tt.dot %q, %k, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %y = arith.select %seen, %s, %zero : tensor<16x16xi1>, tensor<16x16xf32>
  %4 = tt.splat %py : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  tt.store %4, %y : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// Two bounds of the same row: a window. No row is left between them if the
// first one lies behind the last one.
// CHECK-LABEL: tt.func @window_bwd(
// CHECK-NOT: "tt.reduce"
// CHECK: tt.return
tt.func @window(%pq: !tt.ptr<f32>, %pk: !tt.ptr<f32>, %py: !tt.ptr<f32>, %start: i32, %width: i32) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %0 = tt.splat %start : i32 -> tensor<16xi32>
  %row = arith.addi %0, %range : tensor<16xi32>
  %row1 = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %row2 = tt.broadcast %row1 : tensor<16x1xi32> -> tensor<16x16xi32>
  %column1 = tt.expand_dims %range {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %column2 = tt.broadcast %column1 : tensor<1x16xi32> -> tensor<16x16xi32>
  %w = tt.splat %width : i32 -> tensor<16x16xi32>
  %end = arith.addi %column2, %w : tensor<16x16xi32>
  %after = arith.cmpi sge, %row2, %column2 : tensor<16x16xi32>
  %before = arith.cmpi slt, %row2, %end : tensor<16x16xi32>
  %seen = arith.andi %after, %before : tensor<16x16xi1>
  %2 = tt.splat %pq : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %q = tt.load %2 : tensor<16x16x!tt.ptr<f32>>
  %3 = tt.splat %pk : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %k = tt.load %3 : tensor<16x16x!tt.ptr<f32>>
  %s = tt.dot %q, %k, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %y = arith.select %seen, %s, %zero : tensor<16x16xi1>, tensor<16x16xf32>
  %4 = tt.splat %py : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  tt.store %4, %y : tensor<16x16x!tt.ptr<f32>>
  tt.return
}
