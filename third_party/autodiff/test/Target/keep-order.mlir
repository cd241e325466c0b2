// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-keep-order))' %s | FileCheck %s
// RUN: sed s/sm_90/cpu/ %s | triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-keep-order))' | FileCheck %s --check-prefix=CPU

module attributes {autodiff.target = "sm_90"} {

// An index belongs to each element.
// CHECK-LABEL: tt.func @place(
// CHECK: %[[X:.*]] = tt.reshape
// CHECK: %[[COLUMN:.*]] = tt.expand_dims %[[X]] {axis = 1 : i32}
// CHECK: %[[INDICES:.*]] = tt.expand_dims %{{.*}} {axis = 1 : i32}
// CHECK: %[[R:.*]]:2 = "tt.reduce"(%[[COLUMN]], %[[INDICES]]) <{axis = 0 : i32}>
// CHECK: tt.unsplat %[[R]]#0
// CHECK: tt.unsplat %[[R]]#1
// CPU-LABEL: tt.func @place(
// CPU-NOT: tt.expand_dims
tt.func @place(%tile: tensor<4x4xf32>) -> (f32, i32) attributes {autodiff.role = "backward"} {
  %x = tt.reshape %tile : tensor<4x4xf32> -> tensor<16xf32>
  %i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %r:2 = "tt.reduce"(%x, %i) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %n: i32, %b: f32, %m: i32):
    %p = arith.cmpf ogt, %a, %b : f32
    %s = arith.select %p, %a, %b : f32
    %t = arith.select %p, %n, %m : i32
    tt.reduce.return %s, %t : f32, i32
  }) : (tensor<16xf32>, tensor<16xi32>) -> (f32, i32)
  tt.return %r#0, %r#1 : f32, i32
}

// The later one of two is kept.
// CHECK-LABEL: tt.func @last(
// CHECK: tt.expand_dims
// CHECK: tt.unsplat
tt.func @last(%tile: tensor<4x4xf32>) -> f32 attributes {autodiff.role = "backward"} {
  %x = tt.reshape %tile : tensor<4x4xf32> -> tensor<16xf32>
  %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    tt.reduce.return %b : f32
  }) : (tensor<16xf32>) -> f32
  tt.return %r : f32
}

// A sum is the same in any order; so is an arg-max of what was not reshaped.
// CHECK-LABEL: tt.func @sum(
// CHECK-NOT: tt.expand_dims
tt.func @sum(%tile: tensor<4x4xf32>, %y: tensor<16xf32>, %i: tensor<16xi32>) -> (f32, i32) attributes {autodiff.role = "backward"} {
  %x = tt.reshape %tile : tensor<4x4xf32> -> tensor<16xf32>
  %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<16xf32>) -> f32
  %r:2 = "tt.reduce"(%y, %i) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %n: i32, %b: f32, %m: i32):
    %p = arith.cmpf ogt, %a, %b : f32
    %s = arith.select %p, %a, %b : f32
    %t = arith.select %p, %n, %m : i32
    tt.reduce.return %s, %t : f32, i32
  }) : (tensor<16xf32>, tensor<16xi32>) -> (f32, i32)
  tt.return %sum, %r#1 : f32, i32
}

// A mask belongs to each element, too.
// CHECK-LABEL: tt.func @histogram(
// CHECK: %[[X:.*]] = tt.reshape
// CHECK: %[[COUNTED:.*]] = arith.select %arg1, %[[X]], %{{.*}} : tensor<16xi1>, tensor<16xi32>
// CHECK: tt.histogram %[[COUNTED]], %arg1
// CHECK: tt.histogram %[[X]] :
tt.func @histogram(%tile: tensor<4x4xi32>, %mask: tensor<16xi1>) -> (tensor<8xi32>, tensor<8xi32>) attributes {autodiff.role = "backward"} {
  %x = tt.reshape %tile : tensor<4x4xi32> -> tensor<16xi32>
  %some = tt.histogram %x, %mask : tensor<16xi32> -> tensor<8xi32>
  %all = tt.histogram %x : tensor<16xi32> -> tensor<8xi32>
  tt.return %some, %all : tensor<8xi32>, tensor<8xi32>
}

}
