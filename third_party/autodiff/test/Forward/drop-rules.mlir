// RUN: triton-autodiff-opt %s -split-input-file -autodiff-drop-rules | FileCheck %s

// The kernel that is launched has the function's result. Its copy has the call,
// with the gradient by a cotangent and the tangent of the result.
// CHECK-LABEL: tt.func @k_jvp(
// CHECK-NOT: inline_asm
// CHECK-NOT: tt.call
// CHECK: %[[Y:.*]] = math.exp
// CHECK-NEXT: tt.store %arg1, %[[Y]]
// CHECK-NEXT: tt.return
// CHECK: tt.func @k_jvp_0({{.*}} attributes {autodiff.role = "rules"}
// CHECK: %[[E:.*]] = math.exp
// CHECK: %[[C:.*]] = tt.call @autodiff.custom_exact.f.0(%[[E]],
// CHECK: tt.store %arg1, %[[C]]
tt.func @k_jvp(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) attributes {autodiff.role = "tangent"} {
  %x = tt.load %px : !tt.ptr<f32>
  %e = math.exp %x : f32
  %c = tt.elementwise_inline_asm "// autodiff.cotangent 0" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %e : f32 -> f32
  %g = arith.mulf %c, %e : f32
  %t = tt.elementwise_inline_asm "// autodiff.tangent 0" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %x : f32 -> f32
  %u = arith.mulf %t, %e : f32
  %y = tt.call @autodiff.custom_exact.f.0(%e, %x, %g, %u) : (f32, f32, f32, f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

tt.func private @autodiff.custom_exact.f.0(f32, f32, f32, f32) -> f32

// -----

// So it is where the derivative need not be exact.
// CHECK-LABEL: tt.func @l_jvp(
// CHECK: %[[Y:.*]] = math.floor
// CHECK-NEXT: tt.store %arg1, %[[Y]]
tt.func @l_jvp(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) attributes {autodiff.role = "tangent"} {
  %x = tt.load %px : !tt.ptr<f32>
  %e = math.floor %x : f32
  %y = tt.call @autodiff.custom_once.value.0(%e, %x) : (f32, f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

tt.func private @autodiff.custom_once.value.0(f32, f32) -> f32
