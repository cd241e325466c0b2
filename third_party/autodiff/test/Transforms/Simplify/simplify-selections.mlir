// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(tt.func(autodiff-simplify,canonicalize))' | FileCheck %s

// What only goes to stores under a mask is not chosen by it before, wherever
// it is used between; the rest of a condition stays.
// CHECK-LABEL: tt.func @stored(
// CHECK-SAME: %[[X:[^ ]+]]: tensor<4xf32>, %[[M:[^ ]+]]: tensor<4xi1>, %[[C:[^ ]+]]: tensor<4xi1>
// CHECK: %[[E:.*]] = math.exp %[[X]]
// CHECK-NEXT: %[[S:.*]] = arith.select %[[C]], %[[E]], %cst
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[E]], %[[S]]
// CHECK-NEXT: %[[Q:.*]] = arith.addf %[[P]], %[[E]]
// CHECK-NEXT: tt.store %{{.*}}, %[[P]], %[[M]]
// CHECK-NEXT: tt.store %{{.*}}, %[[Q]], %[[M]]
tt.func @stored(%x: tensor<4xf32>, %m: tensor<4xi1>, %c: tensor<4xi1>, %p: tensor<4x!tt.ptr<f32>>, %q: tensor<4x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %e = math.exp %x : tensor<4xf32>
  %a = arith.select %m, %e, %zero : tensor<4xi1>, tensor<4xf32>
  %mc = arith.andi %m, %c : tensor<4xi1>
  %b = arith.select %mc, %e, %zero : tensor<4xi1>, tensor<4xf32>
  %0 = arith.mulf %a, %b : tensor<4xf32>
  %1 = arith.addf %0, %a : tensor<4xf32>
  tt.store %p, %0, %m : tensor<4x!tt.ptr<f32>>
  tt.store %q, %1, %m : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// A store without the mask, or a sum over lanes, needs the zeros.
// CHECK-LABEL: tt.func @looked_at(
// CHECK: %[[A:.*]] = arith.select %arg1, %arg0, %cst
// CHECK: %[[E:.*]] = math.exp %[[A]]
// CHECK: tt.store %{{.*}}, %[[E]], %arg1
// CHECK: tt.store %{{.*}}, %[[A]] :
// CHECK: %[[B:.*]] = arith.select %arg1, %[[E]], %cst
// CHECK: "tt.reduce"(%[[B]])
tt.func @looked_at(%x: tensor<4xf32>, %m: tensor<4xi1>, %p: tensor<4x!tt.ptr<f32>>, %q: !tt.ptr<f32>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %a = arith.select %m, %x, %zero : tensor<4xi1>, tensor<4xf32>
  %e = math.exp %a : tensor<4xf32>
  tt.store %p, %e, %m : tensor<4x!tt.ptr<f32>>
  tt.store %p, %a : tensor<4x!tt.ptr<f32>>
  %b = arith.select %m, %e, %zero : tensor<4xi1>, tensor<4xf32>
  %s = "tt.reduce"(%b) <{axis = 0 : i32}> ({
  ^bb0(%l: f32, %r: f32):
    %t = arith.addf %l, %r : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  tt.store %q, %s : !tt.ptr<f32>
  tt.return
}

// -----

// The adjoint of c ? −y : y: one choice between −ȳ and ȳ.
// CHECK-LABEL: tt.func @negated_there(
// CHECK: %[[N:.*]] = arith.subf %cst, %arg0
// CHECK: %[[S:.*]] = arith.select %arg1, %[[N]], %arg0
// CHECK-NEXT: tt.store %arg2, %[[S]]
tt.func @negated_there(%t: tensor<4xf32>, %c: tensor<4xi1>, %p: tensor<4x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %a = arith.select %c, %t, %zero : tensor<4xi1>, tensor<4xf32>
  %b = arith.select %c, %zero, %t : tensor<4xi1>, tensor<4xf32>
  %n = arith.subf %zero, %a : tensor<4xf32>
  %s = arith.addf %b, %n : tensor<4xf32>
  tt.store %p, %s : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// CHECK-LABEL: tt.func @both_there(
// CHECK: %[[S:.*]] = arith.addf %arg0, %arg1
// CHECK: %[[K:.*]] = arith.select %arg2, %cst, %[[S]]
// CHECK-NEXT: tt.store %arg3, %[[K]]
tt.func @both_there(%x: tensor<4xf32>, %y: tensor<4xf32>, %c: tensor<4xi1>, %p: tensor<4x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %a = arith.select %c, %zero, %x : tensor<4xi1>, tensor<4xf32>
  %b = arith.select %c, %zero, %y : tensor<4xi1>, tensor<4xf32>
  %s = arith.addf %a, %b : tensor<4xf32>
  tt.store %p, %s : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// Rows that are not stored need not be zero in a first operand of a product, in
// a loop. In a second one, whose rows are summed over,
// they stay.
// CHECK-LABEL: tt.func @rows(
// CHECK: scf.for
// CHECK: %[[E:.*]] = math.exp
// CHECK: tt.dot %[[E]], %arg1
// CHECK: %[[KEPT:.*]] = arith.select %{{.*}}, %[[E]]
// CHECK: tt.dot %arg1, %[[KEPT]]
// CHECK: tt.return
tt.func @rows(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>, %r: tensor<16x1xi1>, %p: tensor<16x16x!tt.ptr<f32>>, %q: tensor<16x16x!tt.ptr<f32>>, %n: i32) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %live = tt.broadcast %r : tensor<16x1xi1> -> tensor<16x16xi1>
  %mask = tt.broadcast %r : tensor<16x1xi1> -> tensor<16x16xi1>
  %sums:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %b = %zero) -> (tensor<16x16xf32>, tensor<16x16xf32>) : i32 {
    %y = arith.mulf %x, %x : tensor<16x16xf32>
    %e = math.exp %y : tensor<16x16xf32>
    %k = arith.select %live, %e, %zero : tensor<16x16xi1>, tensor<16x16xf32>
    %d = tt.dot %k, %w, %a : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    %l = arith.select %live, %e, %zero {other} : tensor<16x16xi1>, tensor<16x16xf32>
    %f = tt.dot %w, %l, %b : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %d, %f : tensor<16x16xf32>, tensor<16x16xf32>
  }
  tt.store %p, %sums#0, %mask : tensor<16x16x!tt.ptr<f32>>
  tt.store %q, %sums#1, %mask : tensor<16x16x!tt.ptr<f32>>
  tt.return
}
