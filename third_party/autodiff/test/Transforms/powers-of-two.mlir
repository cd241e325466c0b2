// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-powers-of-two,canonicalize))' %s | FileCheck %s

// Scores relative to a number for each row: both are scaled, the scores with the
// factor that they have already, under a mask, too.
// CHECK-LABEL: tt.func @scores(
// CHECK-SAME: %[[S:[a-z0-9]+]]: tensor<4x8xf32>, %[[C:[a-z0-9]+]]: f32, %[[L:[a-z0-9]+]]: tensor<4xf32>, %[[MASK:[a-z0-9]+]]: tensor<4x8xi1>)
// CHECK-DAG: %[[LOG2E:.*]] = arith.constant 1.442
// CHECK-DAG: %[[LEAST:.*]] = arith.constant dense<-14.42
// CHECK: %[[ROW:.*]] = arith.mulf %[[L]], %{{.*}} : tensor<4xf32>
// CHECK: %[[ROW1:.*]] = tt.expand_dims %[[ROW]]
// CHECK: %[[ROWS:.*]] = tt.broadcast %[[ROW1]]
// CHECK: %[[C2:.*]] = arith.mulf %[[C]], %[[LOG2E]] : f32
// CHECK: %[[SPLAT:.*]] = tt.splat %[[C2]]
// CHECK: %[[SCALED:.*]] = arith.mulf %[[S]], %[[SPLAT]]
// CHECK: %[[SEEN:.*]] = arith.select %[[MASK]], %[[SCALED]], %[[LEAST]]
// CHECK: %[[D:.*]] = arith.subf %[[SEEN]], %[[ROWS]]
// CHECK: %[[P:.*]] = math.exp2 %[[D]]
// CHECK: tt.return %[[P]]
tt.func @scores(%s: tensor<4x8xf32>, %c: f32, %l: tensor<4xf32>, %mask: tensor<4x8xi1>) -> tensor<4x8xf32> attributes {autodiff.role = "backward"} {
  %least = arith.constant dense<-10.0> : tensor<4x8xf32>
  %splat = tt.splat %c : f32 -> tensor<4x8xf32>
  %scaled = arith.mulf %s, %splat : tensor<4x8xf32>
  %seen = arith.select %mask, %scaled, %least : tensor<4x8xi1>, tensor<4x8xf32>
  %row = tt.expand_dims %l {axis = 1 : i32} : tensor<4xf32> -> tensor<4x1xf32>
  %rows = tt.broadcast %row : tensor<4x1xf32> -> tensor<4x8xf32>
  %d = arith.subf %seen, %rows : tensor<4x8xf32>
  %p = math.exp %d : tensor<4x8xf32>
  tt.return %p : tensor<4x8xf32>
}

// What was loaded is exact, relative to one of it.
// CHECK-LABEL: tt.func @loaded(
// CHECK: math.exp %
tt.func @loaded(%p: tensor<8x!tt.ptr<f32>>, %m: f32) -> tensor<8xf32> attributes {autodiff.role = "backward"} {
  %x = tt.load %p : tensor<8x!tt.ptr<f32>>
  %row = tt.splat %m : f32 -> tensor<8xf32>
  %d = arith.subf %x, %row : tensor<8xf32>
  %e = math.exp %d : tensor<8xf32>
  tt.return %e : tensor<8xf32>
}

// Something is compared with it, behind a loop.
// CHECK-LABEL: tt.func @compared(
// CHECK: math.exp %
// CHECK-NOT: math.exp2
// CHECK: tt.return
tt.func @compared(%s: tensor<8xf32>, %m: f32, %n: i32, %y: tensor<8xf32>) -> tensor<8xi1> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = arith.mulf %s, %s : tensor<8xf32>
  %row = tt.splat %m : f32 -> tensor<8xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%a = %s) -> (tensor<8xf32>) : i32 {
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
tt.func @primal(%s: tensor<8xf32>, %m: f32) -> tensor<8xf32> {
  %x = arith.mulf %s, %s : tensor<8xf32>
  %row = tt.splat %m : f32 -> tensor<8xf32>
  %d = arith.subf %x, %row : tensor<8xf32>
  %e = math.exp %d : tensor<8xf32>
  tt.return %e : tensor<8xf32>
}
