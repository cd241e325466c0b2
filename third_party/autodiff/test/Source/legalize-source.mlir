// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-legalize-source))' %s | FileCheck %s

// CHECK-LABEL: tt.func @integers(
// CHECK-NOT: ceildivsi
// CHECK-NOT: floordivsi
// CHECK: arith.divsi
// CHECK: %[[BIT:.*]] = arith.andi %arg0, %{{.*}} : i32
// CHECK: arith.cmpi ne, %[[BIT]], %{{.*}} : i32
// CHECK-NOT: trunci
tt.func @integers(%a: i32, %b: i32, %p: !tt.ptr<i32>) {
  %x = arith.ceildivsi %a, %b : i32
  %y = arith.floordivsi %a, %b : i32
  %z = arith.trunci %a : i32 to i1
  %w = arith.select %z, %x, %y : i32
  tt.store %p, %w : !tt.ptr<i32>
  tt.return
}

// CHECK-LABEL: tt.func @masks(
// CHECK: %[[ALL:.*]] = arith.constant dense<true> : tensor<16xi1>
// CHECK: tt.atomic_rmw fadd, relaxed, gpu, %arg0, %arg1, %[[ALL]]
tt.func @masks(%p: tensor<16x!tt.ptr<f32>>, %x: tensor<16xf32>) {
  %old = tt.atomic_rmw fadd, relaxed, gpu, %p, %x : (tensor<16x!tt.ptr<f32>>, tensor<16xf32>) -> tensor<16xf32>
  tt.return
}

// CHECK-LABEL: tt.func @unset(
// CHECK: %[[ANY:.*]] = arith.constant dense<0.000000e+00> : tensor<16xf32>
// CHECK: tt.store %arg0, %[[ANY]]
tt.func @unset(%p: tensor<16x!tt.ptr<f32>>) {
  %x = ub.poison : tensor<16xf32>
  tt.store %p, %x : tensor<16x!tt.ptr<f32>>
  tt.return
}
