// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-merge-factors),canonicalize)' %s | FileCheck %s

// x·p·2·q with x = s·k - bcast(r): 2 becomes a factor of k and of r.
// CHECK-LABEL: tt.func @tangent(
// CHECK: %[[K:.*]] = arith.mulf %arg2, %{{.*}} : f32
// CHECK: %[[KS:.*]] = tt.splat %[[K]]
// CHECK: %[[R:.*]] = arith.mulf %arg3, %{{.*}} : tensor<8x1xf32>
// CHECK: %[[RS:.*]] = tt.broadcast %[[R]]
// CHECK: %[[S:.*]] = arith.mulf %arg0, %[[KS]]
// CHECK: %[[X:.*]] = arith.subf %[[S]], %[[RS]]
// CHECK: %[[XP:.*]] = arith.mulf %[[X]], %arg1
// CHECK: %[[T:.*]] = arith.mulf %[[XP]], %arg4
// CHECK: tt.return %[[T]]
tt.func @tangent(%s: tensor<8x8xf32> {autodiff.tangent = 0 : i32}, %p: tensor<8x8xf32>, %k: f32, %r: tensor<8x1xf32>, %q: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %two = arith.constant dense<2.0> : tensor<8x8xf32>
  %ks = tt.splat %k : f32 -> tensor<8x8xf32>
  %rs = tt.broadcast %r : tensor<8x1xf32> -> tensor<8x8xf32>
  %sk = arith.mulf %s, %ks : tensor<8x8xf32>
  %x = arith.subf %sk, %rs : tensor<8x8xf32>
  %xp = arith.mulf %x, %p : tensor<8x8xf32>
  %y = arith.mulf %xp, %two : tensor<8x8xf32>
  %t = arith.mulf %y, %q : tensor<8x8xf32>
  tt.return %t : tensor<8x8xf32>
}

// A constant goes through a selection that leaves zero, and not into what has
// another use, or a term that would need a product of its own.
// CHECK-LABEL: tt.func @selected(
// CHECK: %[[K:.*]] = arith.mulf %arg2, %{{.*}} : f32
// CHECK: %[[KS:.*]] = tt.splat %[[K]]
// CHECK: %[[S:.*]] = arith.mulf %arg0, %[[KS]]
// CHECK: %[[C:.*]] = arith.select %arg3, %[[S]], %{{.*}}
// CHECK: arith.mulf %[[C]], %arg1
tt.func @selected(%s: tensor<8x8xf32> {autodiff.tangent = 0 : i32}, %p: tensor<8x8xf32>, %k: f32, %m: tensor<8x8xi1>) -> tensor<8x8xf32> {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %two = arith.constant dense<2.0> : tensor<8x8xf32>
  %ks = tt.splat %k : f32 -> tensor<8x8xf32>
  %sk = arith.mulf %s, %ks : tensor<8x8xf32>
  %x = arith.select %m, %sk, %zero : tensor<8x8xi1>, tensor<8x8xf32>
  %xp = arith.mulf %x, %p : tensor<8x8xf32>
  %y = arith.mulf %xp, %two : tensor<8x8xf32>
  tt.return %y : tensor<8x8xf32>
}

// CHECK-LABEL: tt.func @kept(
// CHECK: %[[SK:.*]] = arith.addf %arg0, %arg1
// CHECK: %[[XP:.*]] = arith.mulf %[[SK]], %arg2
// CHECK: arith.mulf %[[XP]], %cst
tt.func @kept(%s: tensor<8x8xf32> {autodiff.tangent = 0 : i32}, %t: tensor<8x8xf32>, %p: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %two = arith.constant dense<2.0> : tensor<8x8xf32>
  %x = arith.addf %s, %t : tensor<8x8xf32>
  %xp = arith.mulf %x, %p : tensor<8x8xf32>
  %y = arith.mulf %xp, %two : tensor<8x8xf32>
  tt.return %y : tensor<8x8xf32>
}

// What does not depend on a tangent may be compared bit for bit.
// CHECK-LABEL: tt.func @value(
// CHECK: arith.mulf %arg0, %arg0
// CHECK: %[[K:.*]] = tt.splat %arg1
// CHECK: %[[Y:.*]] = arith.mulf %{{.*}}, %[[K]]
// CHECK: arith.mulf %[[Y]], %cst
tt.func @value(%x: tensor<8x8xf32>, %k: f32) -> tensor<8x8xf32> {
  %two = arith.constant dense<2.0> : tensor<8x8xf32>
  %xp = arith.mulf %x, %x : tensor<8x8xf32>
  %ks = tt.splat %k : f32 -> tensor<8x8xf32>
  %y = arith.mulf %xp, %ks : tensor<8x8xf32>
  %z = arith.mulf %y, %two : tensor<8x8xf32>
  tt.return %z : tensor<8x8xf32>
}
