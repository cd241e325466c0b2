// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-mark-residuals | FileCheck %s

// Marked: what a reduction computes and what is stored, before it is rounded.
// Not marked: loads and elementwise values between.
// CHECK-LABEL: tt.func @softmax
// CHECK: tt.load
// CHECK-NOT: residual
// CHECK: %[[E:.*]] = math.exp
// CHECK-NEXT: %[[S:.*]] = "tt.reduce"(%[[E]])
// CHECK: %[[R:.*]] = autodiff.residual %[[S]] id = 0 : f32
// CHECK: %[[B:.*]] = tt.splat %[[R]]
// CHECK-NEXT: %[[Q:.*]] = arith.divf %[[E]], %[[B]]
// CHECK-NEXT: %[[P:.*]] = autodiff.residual %[[Q]] id = 1 : tensor<4xf32>
// CHECK-NEXT: %[[H:.*]] = arith.truncf %[[P]]
// CHECK: tt.store {{.*}}, %[[H]]
tt.func @softmax(%px: !tt.ptr<f32>, %py: !tt.ptr<f16>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %e = math.exp %x : tensor<4xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %1 = tt.splat %s : f32 -> tensor<4xf32>
  %q = arith.divf %e, %1 : tensor<4xf32>
  %h = arith.truncf %q : tensor<4xf32> to tensor<4xf16>
  %2 = tt.splat %py : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>>
  tt.store %2, %h : tensor<4x!tt.ptr<f16>>
  tt.return
}

// -----

// A loop's results are marked, its inside and pointers are not.
// CHECK-LABEL: tt.func @loop
// CHECK: %[[R:.*]]:2 = scf.for
// CHECK-NOT: residual
// CHECK: scf.yield
// CHECK: %[[S:.*]] = autodiff.residual %[[R]]#0 id = 0 : f32
// CHECK: %[[Q:.*]] = tt.addptr %arg2,
// CHECK-NOT: residual
// CHECK: tt.store %arg1, %[[S]]
// CHECK: tt.store %[[Q]], %[[S]]
tt.func @loop(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pz: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %s:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %q = %pz) -> (f32, !tt.ptr<f32>) : i32 {
    %next = arith.addf %acc, %x : f32
    %r = tt.addptr %q, %c1 : !tt.ptr<f32>, i32
    scf.yield %next, %r : f32, !tt.ptr<f32>
  }
  tt.store %py, %s#0 : !tt.ptr<f32>
  tt.store %s#1, %s#0 : !tt.ptr<f32>
  tt.return
}

// -----

// Of conditions, those that take longer to compute than a byte to write and to
// read: here eight divisions.
// CHECK-LABEL: tt.func @conditions
// CHECK: %[[SHORT:.*]] = arith.cmpi slt
// CHECK-NOT: autodiff.residual %[[SHORT]]
// CHECK: %[[LONG:.*]] = arith.cmpi sgt
// CHECK-NEXT: %[[R:.*]] = autodiff.residual %[[LONG]] id = 0 : tensor<4xi1>
// CHECK: arith.select %[[R]]
tt.func @conditions(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: tensor<4xi32>) {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %i = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %short = arith.cmpi slt, %i, %n : tensor<4xi32>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %1 = tt.addptr %0, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %x = tt.load %1, %short, %zero : tensor<4x!tt.ptr<f32>>
  %a = arith.divui %i, %n : tensor<4xi32>
  %b = arith.divui %n, %a : tensor<4xi32>
  %c = arith.remui %b, %a : tensor<4xi32>
  %d = arith.divui %c, %b : tensor<4xi32>
  %e = arith.remui %d, %c : tensor<4xi32>
  %f = arith.divui %e, %d : tensor<4xi32>
  %g = arith.remui %f, %e : tensor<4xi32>
  %h = arith.divui %g, %f : tensor<4xi32>
  %long = arith.cmpi sgt, %h, %i : tensor<4xi32>
  %y = arith.select %long, %x, %zero : tensor<4xi1>, tensor<4xf32>
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %3 = tt.addptr %2, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %3, %y, %short : tensor<4x!tt.ptr<f32>>
  tt.return
}
