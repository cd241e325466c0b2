// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize -autodiff-link-rules \
// RUN:   -autodiff-mark-history | FileCheck %s
// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize -autodiff-link-rules \
// RUN:   -autodiff-mark-history -autodiff-forward-stores -autodiff-mark-history | FileCheck %s

// A sum has one of both inputs; 0 · x and a rounded x have one, too. Nothing
// flows from a comparison, not through a selection either, nor from an integer.
// CHECK-LABEL: tt.func @elementwise(
// CHECK-SAME: autodiff.history = [
// CHECK-SAME: {argument = 2 : i32, inputs = array<i32: 0, 1>}
// CHECK-SAME: {argument = 3 : i32, inputs = array<i32: 0>}
// CHECK-SAME: {argument = 4 : i32, inputs = array<i32: 0>}
// CHECK-SAME: {argument = 5 : i32, inputs = array<i32>}
// CHECK-SAME: {argument = 6 : i32, inputs = array<i32>}
// CHECK-SAME: {argument = 7 : i32, inputs = array<i32: 1>}
tt.func @elementwise(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %sum: !tt.ptr<f32>, %zero: !tt.ptr<f32>, %floor: !tt.ptr<f32>, %count: !tt.ptr<f32>, %integer: !tt.ptr<f32>, %chosen: !tt.ptr<f32>) {
  %c0 = arith.constant 0.0 : f32
  %c1 = arith.constant 1.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %s = arith.addf %x, %w : f32
  tt.store %sum, %s : !tt.ptr<f32>
  %z = arith.mulf %x, %c0 : f32
  tt.store %zero, %z : !tt.ptr<f32>
  %f = math.floor %x : f32
  tt.store %floor, %f : !tt.ptr<f32>
  %positive = arith.cmpf ogt, %x, %c0 : f32
  %one = arith.select %positive, %c1, %c0 : f32
  tt.store %count, %one : !tt.ptr<f32>
  %i = arith.fptosi %x : f32 to i32
  %back = arith.sitofp %i : i32 to f32
  tt.store %integer, %back : !tt.ptr<f32>
  %kept = arith.select %positive, %w, %c0 : f32
  tt.store %chosen, %kept : !tt.ptr<f32>
  tt.return
}

// -----

// Each result of a combination is followed by itself: the number of elements
// does not depend on the values that it weighs.
// CHECK-LABEL: tt.func @merged(
// CHECK-SAME: {argument = 1 : i32, inputs = array<i32: 0>}
// CHECK-SAME: {argument = 2 : i32, inputs = array<i32>}
tt.func @merged(%px: !tt.ptr<f32>, %mean: !tt.ptr<f32>, %count: !tt.ptr<f32>) {
  %c1 = arith.constant dense<1.0> : tensor<8xf32>
  %lane = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %px_ = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %p = tt.addptr %px_, %lane : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %x = tt.load %p : tensor<8x!tt.ptr<f32>>
  %r:2 = "tt.reduce"(%x, %c1) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %m: f32, %b: f32, %n: f32):
    %all = arith.addf %m, %n : f32
    %am = arith.mulf %a, %m : f32
    %bn = arith.mulf %b, %n : f32
    %both = arith.addf %am, %bn : f32
    %mid = arith.divf %both, %all : f32
    tt.reduce.return %mid, %all : f32, f32
  }) : (tensor<8xf32>, tensor<8xf32>) -> (f32, f32)
  tt.store %mean, %r#0 : !tt.ptr<f32>
  tt.store %count, %r#1 : !tt.ptr<f32>
  tt.return
}

// -----

// Through memory, and a loop: what the loop carries in one iteration, it stores
// in the next one. Its bound and the branch's condition do not flow.
// CHECK-LABEL: tt.func @carried(
// CHECK-SAME: {argument = 1 : i32, inputs = array<i32: 0>}
// CHECK-SAME: {argument = 2 : i32, inputs = array<i32: 0, 1>}
// CHECK-SAME: {argument = 3 : i32, inputs = array<i32>}
tt.func @carried(%px: !tt.ptr<f32>, %scratch: !tt.ptr<f32>, %py: !tt.ptr<f32>, %times: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %n = arith.fptosi %x : f32 to i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %t = %zero) -> (f32, f32) : i32 {
    tt.store %scratch, %a : !tt.ptr<f32>
    %t1 = arith.addf %t, %half : f32
    scf.yield %x, %t1 : f32, f32
  }
  %s = tt.load %scratch : !tt.ptr<f32>
  tt.store %py, %s : !tt.ptr<f32>
  tt.store %times, %r#1 : !tt.ptr<f32>
  tt.return
}

// -----

// The bits of a float that are moved are the float; those that are compared or
// counted are not. What the user stops is stopped.
// CHECK-LABEL: tt.func @bits(
// CHECK-SAME: {argument = 1 : i32, inputs = array<i32: 0>}
// CHECK-SAME: {argument = 2 : i32, inputs = array<i32>}
// CHECK-SAME: {argument = 3 : i32, inputs = array<i32>}
tt.func @bits(%px: !tt.ptr<f32>, %moved: !tt.ptr<f32>, %compared: !tt.ptr<f32>, %stopped: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c3 = arith.constant 3 : i32
  %x = tt.load %px : !tt.ptr<f32>
  %b = tt.bitcast %x : f32 -> i32
  %o = arith.xori %b, %c3 : i32
  %again = arith.xori %o, %c3 : i32
  %m = tt.bitcast %again : i32 -> f32
  tt.store %moved, %m : !tt.ptr<f32>
  %negative = arith.cmpi slt, %b, %c0 : i32
  %f = arith.uitofp %negative : i1 to f32
  tt.store %compared, %f : !tt.ptr<f32>
  %s = tt.elementwise_inline_asm "// autodiff.stop_gradient" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %x : f32 -> f32
  tt.store %stopped, %s : !tt.ptr<f32>
  tt.return
}
