// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// Every position is compared with every index.
// CHECK-LABEL: tt.func @small_bwd(
// CHECK: %[[I:.*]] = tt.load %{{.*}} : tensor<4x!tt.ptr<i32>>
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<4xf32>
// CHECK: %[[E:.*]] = tt.expand_dims %[[I]] {axis = 0 : i32}
// CHECK: %[[INDEX:.*]] = tt.broadcast %[[E]] : tensor<1x4xi32> -> tensor<8x4xi32>
// CHECK: %[[PICKED:.*]] = arith.cmpi eq, %{{.*}}, %[[INDEX]]
// CHECK: %[[D:.*]] = arith.select %[[PICKED]]
// CHECK: %[[S:.*]] = "tt.reduce"(%[[D]]) <{axis = 1 : i32}>
// CHECK: arith.addf
// CHECK: autodiff.accumulate {{.*}}, %[[S]] {argument = 0
tt.func @small(%px: !tt.ptr<f32>, %pi: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<8x!tt.ptr<f32>>
  %1 = tt.splat %pi : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>>
  %i = tt.load %1 : tensor<4x!tt.ptr<i32>>
  %y = tt.gather %x[%i] {axis = 0 : i32} : (tensor<8xf32>, tensor<4xi32>) -> tensor<4xf32>
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %2, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// Where the comparisons do not fit into one tile, a loop goes over positions.
// CHECK-LABEL: tt.func @large_bwd(
// CHECK: %[[R:.*]] = scf.for {{.*}} -> (tensor<64x16xf32>)
// CHECK: arith.cmpi eq, %{{.*}}, %{{.*}} : tensor<16x1024xi32>
// CHECK: %[[S:.*]] = tt.reshape %[[R]] : tensor<64x16xf32> -> tensor<1024xf32>
// CHECK: autodiff.accumulate {{.*}}, %[[S]] {argument = 0
tt.func @large(%px: !tt.ptr<f32>, %pi: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<1024x!tt.ptr<f32>>
  %1 = tt.splat %pi : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>>
  %i = tt.load %1 : tensor<1024x!tt.ptr<i32>>
  %y = tt.gather %x[%i] {axis = 0 : i32} : (tensor<1024xf32>, tensor<1024xi32>) -> tensor<1024xf32>
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  tt.store %2, %y : tensor<1024x!tt.ptr<f32>>
  tt.return
}
