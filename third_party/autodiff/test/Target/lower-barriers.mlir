// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-lower-barriers))' %s | FileCheck %s
// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-lower-barriers{own}))' %s | FileCheck %s --check-prefix=OWN

// A kernel with barriers is compiled for one CTA.
// CHECK: tt.func @waits({{.*}} attributes {autodiff.options = {num_ctas = 1 : i32, num_warps = 4 : i32}
// CHECK: gpu.barrier
// CHECK-NEXT: gpu.barrier
// OWN: tt.func @waits({{.*}} attributes {autodiff.options = {num_ctas = 1 : i32, num_warps = 4 : i32}
// OWN: ttg.barrier all
// OWN-NEXT: ttg.barrier all
tt.func @waits(%p: tensor<16x!tt.ptr<f32>>, %x: tensor<16xf32>) attributes {autodiff.role = "backward", autodiff.options = {num_warps = 4 : i32}} {
  tt.store %p, %x : tensor<16x!tt.ptr<f32>>
  gpu.barrier
  ttg.barrier all
  tt.return
}

// CHECK: tt.func @goes_on(
// CHECK-NOT: num_ctas
tt.func @goes_on(%p: tensor<16x!tt.ptr<f32>>, %x: tensor<16xf32>) attributes {autodiff.role = "backward"} {
  tt.store %p, %x : tensor<16x!tt.ptr<f32>>
  tt.return
}
