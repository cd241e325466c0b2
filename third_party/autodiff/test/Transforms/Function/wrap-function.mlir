// RUN: triton-autodiff-opt %s -split-input-file -autodiff-wrap-function="wanted=0,2" | FileCheck %s

// What is wanted comes from memory, and floats that are returned go there. What
// else there is stays an argument.
// CHECK-LABEL: tt.func @scaled(
// CHECK-SAME: %[[X:.*]]: !tt.ptr<f32>, %[[N:.*]]: tensor<8xi32>, %[[S:.*]]: !tt.ptr<f16>, %[[Y:.*]]: !tt.ptr<f32>)
// CHECK-SAME: autodiff.function = (tensor<8xf32>, tensor<8xi32>, f16) -> tensor<8xf32>
// CHECK-DAG: %[[PX:.*]] = tt.splat %[[X]]
// CHECK-DAG: %[[AX:.*]] = tt.addptr %[[PX]], %{{.*}} :
// CHECK-DAG: %[[XS:.*]] = tt.load %[[AX]] : tensor<8x!tt.ptr<f32>>
// CHECK-DAG: tt.load %[[S]] : !tt.ptr<f16>
// CHECK: %[[V:.*]] = arith.mulf %[[XS]], %{{.*}} : tensor<8xf32>
// CHECK: tt.store %{{.*}}, %[[V]] : tensor<8x!tt.ptr<f32>>
// CHECK-NEXT: tt.return
tt.func @scaled(%x: tensor<8xf32>, %n: tensor<8xi32>, %s: f16) -> (tensor<8xf32>, tensor<8xi32>) {
  %0 = arith.extf %s : f16 to f32
  %1 = tt.splat %0 : f32 -> tensor<8xf32>
  %2 = arith.mulf %x, %1 : tensor<8xf32>
  tt.return %2, %n : tensor<8xf32>, tensor<8xi32>
}

// -----

// A function with placeholders for what it takes, as Python traces it.
// CHECK-LABEL: tt.func public @traced(
// CHECK-SAME: %{{.*}}: !tt.ptr<f32>, %{{.*}}: i32, %{{.*}}: !tt.ptr<f32>, %{{.*}}: !tt.ptr<f32>)
// CHECK-SAME: autodiff.function = (f32, i32, f32) -> f32
// CHECK-NOT: tt.elementwise_inline_asm
tt.func private @autodiff.yield(f32)
tt.func public @traced() {
  %y = tt.elementwise_inline_asm "// autodiff.operand 2" {constraints = "=r", packed_element = 1 : i32, pure = false} -> f32
  %x = tt.elementwise_inline_asm "// autodiff.operand 0" {constraints = "=r", packed_element = 1 : i32, pure = false} -> f32
  %n = tt.elementwise_inline_asm "// autodiff.operand 1" {constraints = "=r", packed_element = 1 : i32, pure = false} -> i32
  %z = arith.mulf %x, %y : f32
  tt.call @autodiff.yield(%z) : (f32) -> ()
  tt.return
}
