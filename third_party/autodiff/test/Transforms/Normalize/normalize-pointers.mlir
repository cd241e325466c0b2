// RUN: triton-autodiff-opt %s -autodiff-normalize | FileCheck %s

// Pointers to constant memory become ordinary ones: their gradient is written.
// CHECK-LABEL: tt.func public @kernel
// CHECK-SAME: (%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<f32>)
// CHECK: tt.splat %arg0 : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
// CHECK-NOT: constant
tt.func public @kernel(%x: !tt.ptr<f32, "constant">, %y: !tt.ptr<f32>) {
  %o = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %0 = tt.splat %x : !tt.ptr<f32, "constant"> -> tensor<4x!tt.ptr<f32, "constant">>
  %1 = tt.addptr %0, %o : tensor<4x!tt.ptr<f32, "constant">>, tensor<4xi32>
  %2 = tt.load %1 : tensor<4x!tt.ptr<f32, "constant">>
  %3 = tt.splat %y : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %4 = tt.addptr %3, %o : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %4, %2 : tensor<4x!tt.ptr<f32>>
  tt.return
}
