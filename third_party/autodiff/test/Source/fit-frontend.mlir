// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-fit-frontend{least-sums=32,16,16,4}))' %s | FileCheck %s

// Zeros come between the elements of what is too short for `tl.dot`.
// CHECK-LABEL: tt.func @products(
// CHECK: tt.reshape %{{.*}} : tensor<16x4x4xf32> -> tensor<16x16xf32>
// CHECK: tt.reshape %{{.*}} : tensor<4x4x16xf32> -> tensor<16x16xf32>
// CHECK: tt.dot %{{.*}} : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK: tt.dot %{{.*}} : tensor<16x4xf64> * tensor<4x16xf64> -> tensor<16x16xf64>
tt.func @products(%a: tensor<16x4xf32>, %b: tensor<4x16xf32>, %c: tensor<16x16xf32>,
                  %d: tensor<16x4xf64>, %e: tensor<4x16xf64>, %f: tensor<16x16xf64>,
                  %p: tensor<16x16x!tt.ptr<f32>>, %q: tensor<16x16x!tt.ptr<f64>>) {
  %x = tt.dot %a, %b, %c, inputPrecision = ieee : tensor<16x4xf32> * tensor<4x16xf32> -> tensor<16x16xf32>
  %y = tt.dot %d, %e, %f : tensor<16x4xf64> * tensor<4x16xf64> -> tensor<16x16xf64>
  tt.store %p, %x : tensor<16x16x!tt.ptr<f32>>
  tt.store %q, %y : tensor<16x16x!tt.ptr<f64>>
  tt.return
}

// CHECK-LABEL: tt.func @map(
// CHECK: tt.map_elementwise
// CHECK: scf.if
// CHECK-NOT: cf.cond_br
tt.func @map(%x: tensor<16xf32>, %p: tensor<16x!tt.ptr<f32>>) {
  %y = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
  ^bb0(%a: f32):
    %c = arith.cmpf ogt, %a, %a : f32
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    %d = math.log %a : f32
    cf.br ^bb3(%d : f32)
  ^bb2:
    cf.br ^bb3(%a : f32)
  ^bb3(%e: f32):
    tt.map_elementwise.return %e : f32
  }) : (tensor<16xf32>) -> tensor<16xf32>
  tt.store %p, %y : tensor<16x!tt.ptr<f32>>
  tt.return
}
