// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(tt.func(autodiff-split-masks,canonicalize,cse))' | FileCheck %s

// Columns up to the row: all of them, in iterations that end before the first
// row of the tile does. 16 columns of the iteration i are seen by all rows from
// p on if i + 15 ≤ p.
// CHECK-LABEL: tt.func @causal(
// CHECK: %[[SUM:.*]] = scf.for {{.*}} = %c0_i32 to %[[START:[^ ]+]] step %c16_i32
// CHECK-NOT: arith.cmpi
// CHECK-NOT: arith.select
// CHECK: scf.yield
// CHECK: scf.for {{.*}} = %[[START]] to %arg3 step %c16_i32 iter_args(%{{.*}} = %[[SUM]])
// CHECK: arith.cmpi sle
// CHECK: arith.select
// CHECK: scf.yield
// CHECK-NOT: scf.for
tt.func @causal(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %p: i32, %n: i32) -> tensor<16x16xf32>
    attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %first = tt.splat %p : i32 -> tensor<16xi32>
  %row = arith.addi %first, %range : tensor<16xi32>
  %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %rows2 = tt.broadcast %rows : tensor<16x1xi32> -> tensor<16x16xi32>
  %r = scf.for %i = %c0 to %n step %c16 iter_args(%sum = %zero) -> (tensor<16x16xf32>) : i32 {
    %i1 = tt.splat %i : i32 -> tensor<16xi32>
    %column = arith.addi %i1, %range : tensor<16xi32>
    %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %columns2 = tt.broadcast %columns : tensor<1x16xi32> -> tensor<16x16xi32>
    %seen = arith.cmpi sle, %columns2, %rows2 : tensor<16x16xi32>
    %s = tt.dot %a, %b, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    %masked = arith.select %seen, %s, %zero : tensor<16x16xi1>, tensor<16x16xf32>
    %next = arith.addf %sum, %masked : tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  tt.return %r : tensor<16x16xf32>
}

// -----

// A window has two edges.
// CHECK-LABEL: tt.func @window(
// CHECK: scf.for {{.*}} to %[[FIRST:[^ ]+]] step
// CHECK: arith.select
// CHECK: scf.for {{.*}} = %[[FIRST]] to %[[END:[^ ]+]] step
// CHECK-NOT: arith.select
// CHECK: scf.for {{.*}} = %[[END]] to %arg3 step
// CHECK: arith.select
tt.func @window(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %p: i32, %n: i32, %w: i32) -> tensor<16x16xf32>
    attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %first = tt.splat %p : i32 -> tensor<16xi32>
  %row = arith.addi %first, %range : tensor<16xi32>
  %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %rows2 = tt.broadcast %rows : tensor<16x1xi32> -> tensor<16x16xi32>
  %width = tt.splat %w : i32 -> tensor<16x16xi32>
  %zeros = arith.constant dense<0> : tensor<16x16xi32>
  %r = scf.for %i = %c0 to %n step %c16 iter_args(%sum = %zero) -> (tensor<16x16xf32>) : i32 {
    %i1 = tt.splat %i : i32 -> tensor<16xi32>
    %column = arith.addi %i1, %range : tensor<16xi32>
    %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %columns2 = tt.broadcast %columns : tensor<1x16xi32> -> tensor<16x16xi32>
    %distance = arith.subi %rows2, %columns2 : tensor<16x16xi32>
    %before = arith.cmpi sge, %distance, %zeros : tensor<16x16xi32>
    %near = arith.cmpi slt, %distance, %width : tensor<16x16xi32>
    %seen = arith.andi %before, %near : tensor<16x16xi1>
    %s = tt.dot %a, %b, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    %masked = arith.select %seen, %s, %zero : tensor<16x16xi1>, tensor<16x16xf32>
    %next = arith.addf %sum, %masked : tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  tt.return %r : tensor<16x16xf32>
}

// -----

// Which columns are not the row's own is no bound, and an alternative does not
// need both sides.
// CHECK-LABEL: tt.func @other(
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: tt.return
tt.func @other(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %p: i32, %n: i32, %c: tensor<16x16xi1>) -> tensor<16x16xf32>
    attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %first = tt.splat %p : i32 -> tensor<16xi32>
  %row = arith.addi %first, %range : tensor<16xi32>
  %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %rows2 = tt.broadcast %rows : tensor<16x1xi32> -> tensor<16x16xi32>
  %r = scf.for %i = %c0 to %n step %c16 iter_args(%sum = %zero) -> (tensor<16x16xf32>) : i32 {
    %i1 = tt.splat %i : i32 -> tensor<16xi32>
    %column = arith.addi %i1, %range : tensor<16xi32>
    %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %columns2 = tt.broadcast %columns : tensor<1x16xi32> -> tensor<16x16xi32>
    %different = arith.cmpi ne, %columns2, %rows2 : tensor<16x16xi32>
    %before = arith.cmpi slt, %columns2, %rows2 : tensor<16x16xi32>
    %either = arith.ori %before, %c : tensor<16x16xi1>
    %seen = arith.andi %different, %either : tensor<16x16xi1>
    %s = tt.dot %a, %b, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    %masked = arith.select %seen, %s, %zero : tensor<16x16xi1>, tensor<16x16xf32>
    %next = arith.addf %sum, %masked : tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  tt.return %r : tensor<16x16xf32>
}
