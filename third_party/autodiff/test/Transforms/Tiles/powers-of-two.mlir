// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-use-powers-of-two,canonicalize))' %s | FileCheck %s

// Relative to a number for each row.
// CHECK-LABEL: tt.func @scores(
// CHECK: %[[LOG2E:.*]] = arith.constant dense<1.442
// CHECK: %[[D:.*]] = arith.subf
// CHECK: %[[X:.*]] = arith.mulf %[[D]], %[[LOG2E]]
// CHECK: %[[P:.*]] = math.exp2 %[[X]]
// CHECK: tt.return %[[P]]
tt.func @scores(%s: tensor<4x8xf32>, %l: tensor<4x1xf32>) -> tensor<4x8xf32> attributes {autodiff.role = "backward"} {
  %rows = tt.broadcast %l : tensor<4x1xf32> -> tensor<4x8xf32>
  %d = arith.subf %s, %rows : tensor<4x8xf32>
  %p = math.exp %d : tensor<4x8xf32>
  tt.return %p : tensor<4x8xf32>
}

// Of float64, there are no such instructions.
// CHECK-LABEL: tt.func @double(
// CHECK: math.exp %
tt.func @double(%s: tensor<8xf64>, %m: f64) -> tensor<8xf64> attributes {autodiff.role = "backward"} {
  %row = tt.splat %m : f64 -> tensor<8xf64>
  %d = arith.subf %s, %row : tensor<8xf64>
  %e = math.exp %d : tensor<8xf64>
  tt.return %e : tensor<8xf64>
}

// Something is compared with it, behind a loop.
// CHECK-LABEL: tt.func @compared(
// CHECK: math.exp %
// CHECK-NOT: math.exp2
// CHECK: tt.return
tt.func @compared(%x: tensor<8xf32>, %m: f32, %n: i32, %y: tensor<8xf32>) -> tensor<8xi1> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %row = tt.splat %m : f32 -> tensor<8xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<8xf32>) : i32 {
    %d = arith.subf %x, %row : tensor<8xf32>
    %e = math.exp %d : tensor<8xf32>
    %b = arith.addf %a, %e : tensor<8xf32>
    scf.yield %b : tensor<8xf32>
  }
  %is = arith.cmpf oeq, %sum, %y : tensor<8xf32>
  tt.return %is : tensor<8xi1>
}

// The user's own kernel stays as it is.
// CHECK-LABEL: tt.func @primal(
// CHECK: math.exp %
tt.func @primal(%x: tensor<8xf32>, %m: f32) -> tensor<8xf32> {
  %row = tt.splat %m : f32 -> tensor<8xf32>
  %d = arith.subf %x, %row : tensor<8xf32>
  %e = math.exp %d : tensor<8xf32>
  tt.return %e : tensor<8xf32>
}
