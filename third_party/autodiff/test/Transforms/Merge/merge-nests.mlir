// RUN: %nests -split-input-file %s | FileCheck %s

// A sum over 3·n elements at once, then three rows of n: behind the sums that
// the gradient needs, a nest that goes by rows stores all of it.
// CHECK-LABEL: tt.func @rows_bwd(
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: autodiff.accumulate
// CHECK: "tt.reduce"
// CHECK: scf.for
// CHECK: scf.for
// CHECK: arith.addf
// CHECK: autodiff.accumulate {{.*}} whole <bijective
// CHECK-SAME: within [
// CHECK: } {autodiff.parallel}
// CHECK-NEXT: } {autodiff.parallel}
// CHECK-NOT: autodiff.accumulate
// CHECK: tt.return
tt.func @rows(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %none = arith.constant dense<0.0> : tensor<4xf32>
  %range = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %all = arith.muli %n, %c3 : i32
  %id = tt.get_program_id x : i32
  %first = arith.muli %id, %all : i32
  %qx = tt.addptr %px, %first : !tt.ptr<f32>, i32
  %qy = tt.addptr %py, %first : !tt.ptr<f32>, i32
  %x4 = tt.splat %qx : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %limit = tt.splat %all : i32 -> tensor<4xi32>
  %sums = scf.for %j = %c0 to %all step %c4 iter_args(%acc = %none) -> (tensor<4xf32>) : i32 {
    %start = tt.splat %j : i32 -> tensor<4xi32>
    %lanes = arith.addi %start, %range : tensor<4xi32>
    %mask = arith.cmpi slt, %lanes, %limit : tensor<4xi32>
    %p = tt.addptr %x4, %lanes : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    %x = tt.load %p, %mask, %none : tensor<4x!tt.ptr<f32>>
    %xx = arith.mulf %x, %x : tensor<4xf32>
    %next = arith.addf %acc, %xx : tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  }
  %sum = "tt.reduce"(%sums) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %ab = arith.addf %a, %b : f32
    tt.reduce.return %ab : f32
  }) : (tensor<4xf32>) -> f32
  %s = tt.splat %sum : f32 -> tensor<4xf32>
  %rowlimit = tt.splat %n : i32 -> tensor<4xi32>
  scf.for %row = %c0 to %c3 step %c1 : i32 {
    %at = arith.muli %row, %n : i32
    %rx = tt.addptr %qx, %at : !tt.ptr<f32>, i32
    %ry = tt.addptr %qy, %at : !tt.ptr<f32>, i32
    %rx4 = tt.splat %rx : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
    %ry4 = tt.splat %ry : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
    scf.for %j = %c0 to %n step %c4 : i32 {
      %start = tt.splat %j : i32 -> tensor<4xi32>
      %lanes = arith.addi %start, %range : tensor<4xi32>
      %mask = arith.cmpi slt, %lanes, %rowlimit : tensor<4xi32>
      %p = tt.addptr %rx4, %lanes : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
      %x = tt.load %p, %mask, %none : tensor<4x!tt.ptr<f32>>
      %y = arith.mulf %x, %s : tensor<4xf32>
      %q = tt.addptr %ry4, %lanes : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
      tt.store %q, %y, %mask : tensor<4x!tt.ptr<f32>>
    }
  }
  tt.return
}
