// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-drop-dead-rows,canonicalize))' %s | FileCheck %s

// Rows that the store leaves out may be anything in the sum, and in the rows of
// the first factor; another condition remains.
// CHECK-LABEL: tt.func @rows(
// CHECK-SAME: %[[S:[a-z0-9]+]]: tensor<16x16xf32>, %[[B:[a-z0-9]+]]: tensor<16x16xf32>, %[[IN:[a-z0-9]+]]: tensor<16xi1>, %[[OTHER:[a-z0-9]+]]: tensor<16x16xi1>
// CHECK: scf.for {{.*}} iter_args(%[[ACC:[^ ]+]] =
// CHECK: %[[X:.*]] = arith.addf %[[S]], %[[B]]
// CHECK: %[[Y:.*]] = arith.select %[[OTHER]], %[[X]],
// CHECK: tt.dot %[[Y]], %[[B]], %[[ACC]]
tt.func @rows(%s: tensor<16x16xf32>, %b: tensor<16x16xf32>, %in: tensor<16xi1>, %other: tensor<16x16xi1>, %p: tensor<16x16x!tt.ptr<f32>>, %n: i32) attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %column = tt.expand_dims %in {axis = 1 : i32} : tensor<16xi1> -> tensor<16x1xi1>
  %mask = tt.broadcast %column : tensor<16x1xi1> -> tensor<16x16xi1>
  %both = arith.andi %mask, %other : tensor<16x16xi1>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %x0 = arith.select %mask, %s, %zero : tensor<16x16xi1>, tensor<16x16xf32>
    %x = arith.addf %x0, %b : tensor<16x16xf32>
    %y = arith.select %both, %x, %zero : tensor<16x16xi1>, tensor<16x16xf32>
    %d = tt.dot %y, %b, %acc : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  tt.store %p, %sum, %mask : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// A product sums over the columns of its first factor: all of them matter. Of
// its second factor they are those of the result.
// CHECK-LABEL: tt.func @columns(
// CHECK: %[[X:.*]] = arith.select
// CHECK-NOT: arith.select
// CHECK: tt.dot %[[X]], %arg1
tt.func @columns(%s: tensor<16x16xf32>, %b: tensor<16x16xf32>, %in: tensor<16xi1>, %p: tensor<16x16x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %row = tt.expand_dims %in {axis = 0 : i32} : tensor<16xi1> -> tensor<1x16xi1>
  %mask = tt.broadcast %row : tensor<1x16xi1> -> tensor<16x16xi1>
  %x = arith.select %mask, %s, %zero : tensor<16x16xi1>, tensor<16x16xf32>
  %y = arith.select %mask, %b, %zero : tensor<16x16xi1>, tensor<16x16xf32>
  %d = tt.dot %x, %y, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  tt.store %p, %d, %mask : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// Rows of the transposed are columns.
// CHECK-LABEL: tt.func @transposed(
// CHECK-NOT: arith.select
// CHECK: tt.return
tt.func @transposed(%s: tensor<16x16xf32>, %b: tensor<16x16xf32>, %in: tensor<16xi1>, %p: tensor<16x16x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %row = tt.expand_dims %in {axis = 0 : i32} : tensor<16xi1> -> tensor<1x16xi1>
  %mask = tt.broadcast %row : tensor<1x16xi1> -> tensor<16x16xi1>
  %column = tt.expand_dims %in {axis = 1 : i32} : tensor<16xi1> -> tensor<16x1xi1>
  %rows = tt.broadcast %column : tensor<16x1xi1> -> tensor<16x16xi1>
  %x = arith.select %mask, %s, %zero : tensor<16x16xi1>, tensor<16x16xf32>
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<16x16xf32> -> tensor<16x16xf32>
  tt.store %p, %t, %rows : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// Another store, or a sum over rows, sees all of them.
// CHECK-LABEL: tt.func @seen(
// CHECK: arith.select
// CHECK: arith.select
tt.func @seen(%s: tensor<16x16xf32>, %in: tensor<16xi1>, %p: tensor<16x16x!tt.ptr<f32>>, %q: tensor<16x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %column = tt.expand_dims %in {axis = 1 : i32} : tensor<16xi1> -> tensor<16x1xi1>
  %mask = tt.broadcast %column : tensor<16x1xi1> -> tensor<16x16xi1>
  %x = arith.select %mask, %s, %zero : tensor<16x16xi1>, tensor<16x16xf32>
  %x2 = arith.addf %x, %s : tensor<16x16xf32>
  tt.store %p, %x2, %mask : tensor<16x16x!tt.ptr<f32>>
  tt.store %p, %x : tensor<16x16x!tt.ptr<f32>>
  %y = arith.select %mask, %x2, %zero : tensor<16x16xi1>, tensor<16x16xf32>
  tt.store %p, %y, %mask : tensor<16x16x!tt.ptr<f32>>
  %sum = "tt.reduce"(%y) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<16x16xf32>) -> tensor<16xf32>
  tt.store %q, %sum : tensor<16x!tt.ptr<f32>>
  tt.return
}
