// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(autodiff-lower-barriers)' %s | FileCheck %s
// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(autodiff-lower-barriers{own})' %s | FileCheck %s --check-prefix=OWN

// A kernel with barriers is compiled for one CTA.
// CHECK: autodiff.launch @waits options {num_ctas = 1 : i32, num_warps = 4 : i32}
// CHECK-NOT: autodiff.launch
// CHECK: gpu.barrier
// CHECK-NEXT: gpu.barrier
// OWN: autodiff.launch @waits options {num_ctas = 1 : i32, num_warps = 4 : i32}
// OWN: ttg.barrier all
// OWN-NEXT: ttg.barrier all
autodiff.plan {
  autodiff.launch @waits options {num_warps = 4 : i32}
}
tt.func @waits(%p: tensor<16x!tt.ptr<f32>>, %x: tensor<16xf32>) attributes {autodiff.role = "backward"} {
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
