// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-reduce-columns))' %s | FileCheck %s

// CHECK-LABEL: tt.func @sum(
// CHECK: %[[COLUMN:.*]] = tt.expand_dims %arg0 {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
// CHECK: %[[SUM:.*]] = "tt.reduce"(%[[COLUMN]]) <{axis = 0 : i32}> ({
// CHECK: arith.addf
// CHECK: (tensor<16x1xf32>) -> tensor<1xf32>
// CHECK: %[[R:.*]] = tt.unsplat %[[SUM]] : tensor<1xf32>
// CHECK: tt.return %[[R]]
tt.func @sum(%x: tensor<16xf32>) -> f32 {
  %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<16xf32>) -> f32
  tt.return %r : f32
}

// All results of one, and no reduction that leaves an axis.
// CHECK-LABEL: tt.func @others(
// CHECK: "tt.reduce"(%arg1) <{axis = 1 : i32}>
// CHECK: "tt.reduce"(%{{.*}}, %{{.*}}) <{axis = 0 : i32}>
// CHECK: (tensor<16x1xf32>, tensor<16x1xi32>) -> (tensor<1xf32>, tensor<1xi32>)
// CHECK-COUNT-2: tt.unsplat
tt.func @others(%i: tensor<16xi32>, %x: tensor<16x16xf32>) -> (f32, i32) {
  %rows = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<16x16xf32>) -> tensor<16xf32>
  %r:2 = "tt.reduce"(%rows, %i) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %n: i32, %b: f32, %m: i32):
    %p = arith.cmpf ogt, %a, %b : f32
    %s = arith.select %p, %a, %b : f32
    %t = arith.select %p, %n, %m : i32
    tt.reduce.return %s, %t : f32, i32
  }) : (tensor<16xf32>, tensor<16xi32>) -> (f32, i32)
  tt.return %r#0, %r#1 : f32, i32
}
