// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(tt.func(autodiff-unify-copies))' | FileCheck %s

// The gradient of a maximum of sums of products goes where the sum is equal to
// the maximum: all threads take the first lane's sum, for both.
// CHECK-LABEL: tt.func @largest_sum
// CHECK: %[[COPIES:.*]] = "tt.reduce"
// CHECK: %[[E:.*]] = tt.expand_dims %[[COPIES]]
// CHECK: %[[R:.*]] = tt.broadcast %[[E]]
// CHECK: %[[FIRST:.*]] = arith.select %{{.*}}, %[[R]], %{{.*}}
// CHECK: %[[SUM:.*]] = "tt.reduce"(%[[FIRST]])
// CHECK: %[[MOST:.*]] = "tt.reduce"(%[[SUM]])
// CHECK: %[[S:.*]] = tt.splat %[[MOST]]
// CHECK: arith.cmpf oeq, %[[SUM]], %[[S]]
tt.func @largest_sum(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>, %p: tensor<8x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %xy = arith.mulf %x, %y : tensor<8x16xf32>
  %sum = "tt.reduce"(%xy) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<8x16xf32>) -> tensor<8xf32>
  %most = "tt.reduce"(%sum) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<8xf32>) -> f32
  %s = tt.splat %most : f32 -> tensor<8xf32>
  %is = arith.cmpf oeq, %sum, %s : tensor<8xf32>
  %g = arith.select %is, %one, %zero : tensor<8xi1>, tensor<8xf32>
  tt.store %p, %g : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// Nothing looks for this sum.
// CHECK-LABEL: tt.func @sum
// CHECK-COUNT-1: "tt.reduce"
// CHECK-NOT: "tt.reduce"
tt.func @sum(%x: tensor<8x16xf32>, %p: tensor<8x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %sum = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<8x16xf32>) -> tensor<8xf32>
  %is = arith.cmpf ogt, %sum, %zero : tensor<8xf32>
  %g = arith.select %is, %sum, %zero : tensor<8xi1>, tensor<8xf32>
  tt.store %p, %g : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// Sums of what was loaded are the same in all threads: nothing is contracted.
// CHECK-LABEL: tt.func @loaded
// CHECK-COUNT-2: "tt.reduce"
// CHECK-NOT: "tt.reduce"
tt.func @loaded(%q: tensor<8x16x!tt.ptr<f32>>, %p: tensor<8x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %x = tt.load %q : tensor<8x16x!tt.ptr<f32>>
  %sum = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<8x16xf32>) -> tensor<8xf32>
  %most = "tt.reduce"(%sum) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<8xf32>) -> f32
  %s = tt.splat %most : f32 -> tensor<8xf32>
  %is = arith.cmpf oeq, %sum, %s : tensor<8xf32>
  %g = arith.select %is, %one, %zero : tensor<8xi1>, tensor<8xf32>
  tt.store %p, %g : tensor<8x!tt.ptr<f32>>
  tt.return
}
