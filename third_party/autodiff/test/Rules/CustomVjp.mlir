// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-link-rules -autodiff-reverse -canonicalize -cse \
// RUN:   | FileCheck %s

// The pullback is the user's: x̄ = 3·ȳ·y. Nothing is left of the markers.
// CHECK-LABEL: tt.func @custom(
// CHECK-NOT: autodiff.custom_vjp
// CHECK: tt.return
// CHECK-LABEL: tt.func @custom_bwd(
// CHECK-DAG: %[[THREE:.*]] = arith.constant 3.0
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = math.exp %[[X]] :
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[Y]] :
// CHECK: %[[D:.*]] = arith.mulf %[[P]], %[[THREE]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
// CHECK-NOT: autodiff.accumulate
// CHECK: tt.return
tt.func @custom(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %stopped = autodiff.stop_gradient %x : f32
  %e = math.exp %stopped : f32
  %y = autodiff.custom_vjp "f" %e : f32 of %x : f32 -> f32 {
  ^bb0(%t: f32):
    %three = arith.constant 3.0 : f32
    %p = arith.mulf %t, %e : f32
    %d = arith.mulf %p, %three : f32
    autodiff.yield %d : f32
  }
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Cotangents are wide, gradients may be of any float type.
// CHECK-LABEL: tt.func @half_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<4xf32>
// CHECK: %[[N:.*]] = arith.truncf %[[T]] : tensor<4xf32> to tensor<4xf16>
// CHECK: %[[D:.*]] = arith.extf %[[N]] : tensor<4xf16> to tensor<4xf32>
// CHECK: autodiff.accumulate {{.*}}, %[[D]] {
tt.func @half(%p: !tt.ptr<f16>, %q: !tt.ptr<f16>) {
  %ps = tt.splat %p : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>>
  %qs = tt.splat %q : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>>
  %x = tt.load %ps : tensor<4x!tt.ptr<f16>>
  %stopped = autodiff.stop_gradient %x : tensor<4xf16>
  %y = autodiff.custom_vjp "f" %stopped : tensor<4xf16> of %x : tensor<4xf16> -> tensor<4xf16> {
  ^bb0(%t: tensor<4xf32>):
    %d = arith.truncf %t : tensor<4xf32> to tensor<4xf16>
    autodiff.yield %d : tensor<4xf16>
  }
  tt.store %qs, %y : tensor<4x!tt.ptr<f16>>
  tt.return
}

// -----

// What Python traces for a call y = f(x): a placeholder for ȳ, the derivative
// computed with it, and the call that ties them. x̄ = ȳ·x.
// CHECK-LABEL: tt.func @traced_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[X]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
// CHECK-NOT: elementwise_inline_asm
tt.func private @autodiff.custom_vjp.f.0(f32, f32, f32) -> f32
tt.func @traced(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %inside = tt.elementwise_inline_asm "// autodiff.stop_gradient" {constraints = "=f,0", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  %v = math.sin %inside : f32
  %t = tt.elementwise_inline_asm "// autodiff.cotangent 0" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %v : f32 -> f32
  %g = arith.mulf %t, %x : f32
  %y = tt.call @autodiff.custom_vjp.f.0(%v, %x, %g) : (f32, f32, f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Two functions that return what they are given, of one value: each has its own
// cotangent.
// CHECK-LABEL: tt.func @identities_bwd(
// CHECK: %[[B:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[A:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[DB:.*]] = arith.addf %[[B]], %[[B]] :
// CHECK: %[[DA:.*]] = arith.mulf %[[A]], %[[A]] :
// CHECK: arith.addf %[[DB]], %[[DA]] :
tt.func private @autodiff.custom_vjp.f.0(f32, f32, f32) -> f32
tt.func private @autodiff.custom_vjp.g.0(f32, f32, f32) -> f32
tt.func @identities(%px: !tt.ptr<f32>, %pa: !tt.ptr<f32>, %pb: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %inside = tt.elementwise_inline_asm "// autodiff.stop_gradient" {constraints = "=f,0", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  %s = tt.elementwise_inline_asm "// autodiff.cotangent 0" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %inside : f32 -> f32
  %f = arith.mulf %s, %s : f32
  %a = tt.call @autodiff.custom_vjp.f.0(%inside, %x, %f) : (f32, f32, f32) -> f32
  %t = tt.elementwise_inline_asm "// autodiff.cotangent 0" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %inside : f32 -> f32
  %g = arith.addf %t, %t : f32
  %b = tt.call @autodiff.custom_vjp.g.0(%inside, %x, %g) : (f32, f32, f32) -> f32
  tt.store %pa, %a : !tt.ptr<f32>
  tt.store %pb, %b : !tt.ptr<f32>
  tt.return
}

// -----

// No derivative through a stopped value: x̄ = ȳ·x only once.
// CHECK-LABEL: tt.func @stopped_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[X]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @stopped(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %s = tt.elementwise_inline_asm "; autodiff.stop_gradient" {constraints = "=v,0", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  %y = arith.mulf %s, %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
