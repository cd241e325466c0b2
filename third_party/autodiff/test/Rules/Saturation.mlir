// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-push-tangents -canonicalize -cse | FileCheck %s

// What is relative to its own maximum has no infinite exponential, and finite
// tangents: padding is left out by a selection.
// CHECK-LABEL: tt.func @softmax_jvp(
// CHECK: math.exp
// CHECK-NOT: arith.cmpf oeq, %{{.*}}, %cst{{.*}} : tensor<16xf32>
// CHECK: arith.divf
tt.func @softmax(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %none = arith.constant dense<0xFF800000> : tensor<16xf32>
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %end = tt.splat %n : i32 -> tensor<16xi32>
  %mask = arith.cmpi slt, %i, %end : tensor<16xi32>
  %base = tt.splat %px : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %p = tt.addptr %base, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %p : tensor<16x!tt.ptr<f32>>
  %s = arith.select %mask, %x, %none : tensor<16xi1>, tensor<16xf32>
  %max = "tt.reduce"(%s) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<16xf32>) -> f32
  %tile = tt.splat %max : f32 -> tensor<16xf32>
  %z = arith.subf %s, %tile : tensor<16xf32>
  %e = math.exp %z : tensor<16xf32>
  %l = arith.addf %one, %e : tensor<16xf32>
  %y = arith.divf %one, %l : tensor<16xf32>
  %ys = tt.splat %py : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %q = tt.addptr %ys, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  tt.store %q, %y : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// Nothing limits an exponential that is stored.
// CHECK-LABEL: tt.func @stored_jvp(
// CHECK-NOT: arith.select
// CHECK: tt.return
tt.func @stored(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %k: f32) {
  %x = tt.load %px : !tt.ptr<f32>
  %z = arith.mulf %x, %k : f32
  %y = math.exp %z : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A sigmoid has come to its limit where the exponential is infinite.
// CHECK-LABEL: tt.func @sigmoid_jvp(
// CHECK: %[[Y:.*]] = math.exp
// CHECK: %[[IS:.*]] = arith.cmpf oeq, %[[Y]], %[[INF:.*]] : f32
// CHECK: arith.select %[[IS]], %{{.*}}, %{{.*}} : f32
tt.func @sigmoid(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %one = arith.constant 1.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %e = math.exp %x : f32
  %d = arith.addf %e, %one : f32
  %y = arith.divf %one, %d : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// So it is if a loop carries it to a division.
// CHECK-LABEL: tt.func @carried_jvp(
// CHECK: %[[Y:.*]] = math.exp
// CHECK: arith.cmpf oeq, %[[Y]], %{{.*}} : f32
tt.func @carried(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %zero = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %one = arith.constant 1.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %e = math.exp %x : f32
  %l = scf.for %i = %zero to %n step %step iter_args(%s = %one) -> (f32) : i32 {
    %t = arith.addf %s, %e : f32
    scf.yield %t : f32
  }
  %y = arith.divf %one, %l : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// The lowest number times what moves has an infinite tangent; the exponential
// is zero there.
// CHECK-LABEL: tt.func @scaled_jvp(
// CHECK: %[[Y:.*]] = math.exp
// CHECK: arith.cmpf oeq, %[[Y]], %{{.*}} : f32
tt.func @scaled(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %m: i1) {
  %lowest = arith.constant 0xFF7FFFFF : f32
  %x = tt.load %px, %m, %lowest : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %z = arith.mulf %x, %w : f32
  %y = math.exp %z : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// The maximum of a column is none of a row.
// CHECK-LABEL: tt.func @column_jvp(
// CHECK: %[[Y:.*]] = math.exp
// CHECK: arith.cmpf oeq, %[[Y]], %{{.*}} : tensor<16x16xf32>
tt.func @column(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %one = arith.constant dense<1.0> : tensor<16x16xf32>
  %sixteen = arith.constant dense<16> : tensor<16x1xi32>
  %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %row = tt.expand_dims %i {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %column = tt.expand_dims %i {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %start = arith.muli %row, %sixteen : tensor<16x1xi32>
  %starts = tt.broadcast %start : tensor<16x1xi32> -> tensor<16x16xi32>
  %columns = tt.broadcast %column : tensor<1x16xi32> -> tensor<16x16xi32>
  %offset = arith.addi %starts, %columns : tensor<16x16xi32>
  %base = tt.splat %px : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %p = tt.addptr %base, %offset : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
  %x = tt.load %p : tensor<16x16x!tt.ptr<f32>>
  %max = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<16x16xf32>) -> tensor<16xf32>
  %m = tt.expand_dims %max {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  %tile = tt.broadcast %m : tensor<16x1xf32> -> tensor<16x16xf32>
  %z = arith.subf %x, %tile : tensor<16x16xf32>
  %e = math.exp %z : tensor<16x16xf32>
  %l = arith.addf %one, %e : tensor<16x16xf32>
  %y = arith.divf %one, %l : tensor<16x16xf32>
  %ys = tt.splat %py : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %q = tt.addptr %ys, %offset : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
  tt.store %q, %y : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// Nor is the lowest number as a chosen constant a finite factor of a tangent.
// CHECK-LABEL: tt.func @chosen_jvp(
// CHECK: %[[Y:.*]] = math.exp
// CHECK: arith.cmpf oeq, %[[Y]], %{{.*}} : f32
tt.func @chosen(%pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %m: i1, %k: f32) {
  %lowest = arith.constant 0xFF7FFFFF : f32
  %bias = arith.select %m, %k, %lowest : f32
  %w = tt.load %pw : !tt.ptr<f32>
  %z = arith.mulf %bias, %w : f32
  %y = math.exp %z : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// What is stored and loaded again may come to a limit.
// CHECK-LABEL: tt.func @relay_jvp(
// CHECK: %[[Y:.*]] = math.exp
// CHECK: arith.cmpf oeq, %[[Y]], %{{.*}} : f32
tt.func @relay(%px: !tt.ptr<f32>, %pe: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %one = arith.constant 1.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %e = math.exp %x : f32
  tt.store %pe, %e : !tt.ptr<f32>
  %again = tt.load %pe : !tt.ptr<f32>
  %d = arith.addf %again, %one : f32
  %y = arith.divf %one, %d : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
