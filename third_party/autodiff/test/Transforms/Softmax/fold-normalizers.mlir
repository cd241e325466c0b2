// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(autodiff-normalize,tt.func(autodiff-mark-residuals),autodiff-rescale-accumulators,autodiff-drop-maxima,autodiff-fold-normalizers,canonicalize,cse)' \
// RUN:   | FileCheck %s

// A softmax of scaled scores, m and l, is one of L = m + log l. What the primal
// may save is L; its derivative is none, and that of the sum, which is one, is
// the sum's.
// CHECK-LABEL: tt.func @softmax(
// CHECK: %[[M:.*]] = autodiff.residual {{.*}} id = 0
// CHECK: %[[S:.*]] = autodiff.residual {{.*}} id = 1
// CHECK: %[[LOG:.*]] = math.log %[[S]]
// CHECK: %[[L:.*]] = arith.addf %[[M]], %[[LOG]]
// CHECK: autodiff.residual %[[L]] id = 3 {pinned}
// CHECK-LABEL: tt.func @softmax_framed(
// CHECK-DAG: %[[NONE:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[INF:.*]] = arith.constant 0x7F800000 : f32
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.0{{.*}} : f32
// CHECK: %[[L:.*]] = autodiff.residual {{.*}} id = 3 {constant}
// CHECK: %[[NO:.*]] = arith.cmpf oeq, %[[L]], %[[NONE]]
// CHECK: %[[FRAME:.*]] = arith.select %[[NO]], %[[INF]], %[[L]]
// CHECK: %[[SPLAT:.*]] = tt.splat %[[FRAME]]
// CHECK: %[[D:.*]] = arith.subf %{{.*}}, %[[SPLAT]]
// CHECK: %[[E:.*]] = math.exp %[[D]]
// CHECK: %[[SUM:.*]] = "tt.reduce"(%[[E]])
// CHECK: %[[IS:.*]] = autodiff.custom_vjp "a sum that is one" %[[ONE]] : f32 of %[[SUM]]
// CHECK: ^bb0(%[[CT:.*]]: f32):
// CHECK: autodiff.yield %[[CT]]
// CHECK: %[[ALL:.*]] = tt.splat %[[IS]]
// CHECK: arith.divf %[[E]], %[[ALL]]
tt.func @softmax(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: f32) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x1 = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %x0 = math.tanh %x1 : tensor<4xf32>
  %c4 = tt.splat %c : f32 -> tensor<4xf32>
  %x = arith.mulf %x0, %c4 : tensor<4xf32>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %1 = tt.splat %m : f32 -> tensor<4xf32>
  %d = arith.subf %x, %1 : tensor<4xf32>
  %e = math.exp %d : tensor<4xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %2 = tt.splat %s : f32 -> tensor<4xf32>
  %y = arith.divf %e, %2 : tensor<4xf32>
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %3, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// What is loaded is exact relative to its maximum; relative to L, it is not.
// CHECK-LABEL: tt.func @exact_framed(
// CHECK-NOT: custom_vjp
// CHECK: tt.return
tt.func @exact(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %1 = tt.splat %m : f32 -> tensor<4xf32>
  %d = arith.subf %x, %1 : tensor<4xf32>
  %e = math.exp %d : tensor<4xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %2 = tt.splat %s : f32 -> tensor<4xf32>
  %y = arith.divf %e, %2 : tensor<4xf32>
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %3, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// Nor does a scale tell a row of one large number, a mask, from one of zeros.
// CHECK-LABEL: tt.func @scaled_framed(
// CHECK-NOT: custom_vjp
// CHECK: tt.return
tt.func @scaled(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: f32) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x0 = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %c4 = tt.splat %c : f32 -> tensor<4xf32>
  %x = arith.mulf %x0, %c4 : tensor<4xf32>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %1 = tt.splat %m : f32 -> tensor<4xf32>
  %d = arith.subf %x, %1 : tensor<4xf32>
  %e = math.exp %d : tensor<4xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %2 = tt.splat %s : f32 -> tensor<4xf32>
  %y = arith.divf %e, %2 : tensor<4xf32>
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %3, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// A sum that may have no terms, and of which the kernel then stores zero.
// CHECK-LABEL: tt.func @guarded_framed(
// CHECK-NOT: custom_vjp
// CHECK: tt.return
tt.func @guarded(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: f32) {
  %zero = arith.constant 0.0 : f32
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x1 = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %x0 = math.tanh %x1 : tensor<4xf32>
  %c4 = tt.splat %c : f32 -> tensor<4xf32>
  %x = arith.mulf %x0, %c4 : tensor<4xf32>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %1 = tt.splat %m : f32 -> tensor<4xf32>
  %d = arith.subf %x, %1 : tensor<4xf32>
  %e = math.exp %d : tensor<4xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %some = arith.cmpf ogt, %s, %zero : f32
  %w = "tt.reduce"(%x0) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %q = arith.mulf %s, %w : f32
  %r = arith.divf %q, %s : f32
  %y = arith.select %some, %r, %zero : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// What is stored beside it has no sum in it: of a row without one, it would not
// become NaN.
// CHECK-LABEL: tt.func @beside_framed(
// CHECK-NOT: custom_vjp
// CHECK: tt.return
tt.func @beside(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pz: !tt.ptr<f32>, %c: f32) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x1 = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %x0 = math.tanh %x1 : tensor<4xf32>
  %c4 = tt.splat %c : f32 -> tensor<4xf32>
  %x = arith.mulf %x0, %c4 : tensor<4xf32>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %1 = tt.splat %m : f32 -> tensor<4xf32>
  %d = arith.subf %x, %1 : tensor<4xf32>
  %e = math.exp %d : tensor<4xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %2 = tt.splat %s : f32 -> tensor<4xf32>
  %y = arith.divf %e, %2 : tensor<4xf32>
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %3, %y : tensor<4x!tt.ptr<f32>>
  %f = math.exp %1 : tensor<4xf32>
  %z = arith.mulf %e, %f : tensor<4xf32>
  %4 = tt.splat %pz : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %4, %z : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// The primal stores 2L: that is what may be read back.
// CHECK-LABEL: tt.func @stored(
// CHECK: %[[TWICE:.*]] = arith.mulf %{{.*}}, %cst
// CHECK: autodiff.residual %[[TWICE]] id = 3 {pinned}
// CHECK: %[[R:.*]] = autodiff.residual %[[TWICE]] id = 2
// CHECK: tt.store %{{.*}}, %[[R]]
// CHECK-LABEL: tt.func @stored_framed(
// CHECK: %[[TWICE:.*]] = autodiff.residual {{.*}} id = 3 {constant}
// CHECK: arith.mulf %[[TWICE]], %{{.*}} : f32
tt.func @stored(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: f32) {
  %two = arith.constant 2.0 : f32
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x1 = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %x0 = math.tanh %x1 : tensor<4xf32>
  %c4 = tt.splat %c : f32 -> tensor<4xf32>
  %x = arith.mulf %x0, %c4 : tensor<4xf32>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %1 = tt.splat %m : f32 -> tensor<4xf32>
  %d = arith.subf %x, %1 : tensor<4xf32>
  %e = math.exp %d : tensor<4xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %l = math.log %s : f32
  %y0 = arith.addf %l, %m : f32
  %y = arith.mulf %y0, %two : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// An online softmax that sums from one: nothing is left of that in rows that
// have seen something, and the sum of others is one.
// CHECK-LABEL: tt.func @from_one_framed(
// CHECK: autodiff.custom_vjp "a sum that is one"
// CHECK: arith.divf
tt.func @from_one(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: f32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant 0xFF800000 : f32
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %none, %s = %one, %v = %zero) -> (f32, f32, f32) : i32 {
    %q = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x1 = tt.load %q : !tt.ptr<f32>
    %x0 = math.tanh %x1 : f32
    %x = arith.mulf %x0, %c : f32
    %m1 = arith.maxnumf %m, %x : f32
    %d = arith.subf %m, %m1 : f32
    %a = math.exp %d : f32
    %e0 = arith.subf %x, %m1 : f32
    %e = math.exp %e0 : f32
    %sa = arith.mulf %s, %a : f32
    %s1 = arith.addf %sa, %e : f32
    %va = arith.mulf %v, %a : f32
    %ex = arith.mulf %e, %x0 : f32
    %v1 = arith.addf %va, %ex : f32
    scf.yield %m1, %s1, %v1 : f32, f32, f32
  }
  %y = arith.divf %r#2, %r#1 : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// From two: a row that has seen nothing keeps that.
// CHECK-LABEL: tt.func @from_two_framed(
// CHECK-NOT: custom_vjp
// CHECK: tt.return
tt.func @from_two(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: f32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant 0xFF800000 : f32
  %two = arith.constant 2.0 : f32
  %zero = arith.constant 0.0 : f32
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %none, %s = %two, %v = %zero) -> (f32, f32, f32) : i32 {
    %q = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x1 = tt.load %q : !tt.ptr<f32>
    %x0 = math.tanh %x1 : f32
    %x = arith.mulf %x0, %c : f32
    %m1 = arith.maxnumf %m, %x : f32
    %d = arith.subf %m, %m1 : f32
    %a = math.exp %d : f32
    %e0 = arith.subf %x, %m1 : f32
    %e = math.exp %e0 : f32
    %sa = arith.mulf %s, %a : f32
    %s1 = arith.addf %sa, %e : f32
    %va = arith.mulf %v, %a : f32
    %ex = arith.mulf %e, %x0 : f32
    %v1 = arith.addf %va, %ex : f32
    scf.yield %m1, %s1, %v1 : f32, f32, f32
  }
  %y = arith.divf %r#2, %r#1 : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A product with the reciprocal of the sum is a quotient, however it is spelled.
// CHECK-LABEL: tt.func @reciprocal_framed(
// CHECK: %[[IS:.*]] = autodiff.custom_vjp "a sum that is one"
// CHECK: %[[ALL:.*]] = tt.splat %[[IS]]
// CHECK: arith.divf %{{.*}}, %[[ALL]] : tensor<4xf32>
tt.func @reciprocal(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: f32) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x1 = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %x0 = math.tanh %x1 : tensor<4xf32>
  %c4 = tt.splat %c : f32 -> tensor<4xf32>
  %x = arith.mulf %x0, %c4 : tensor<4xf32>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %1 = tt.splat %m : f32 -> tensor<4xf32>
  %d = arith.subf %x, %1 : tensor<4xf32>
  %e = math.exp %d : tensor<4xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %one = arith.constant 1.0 : f32
  %r = arith.divf %one, %s : f32
  %2 = tt.splat %r : f32 -> tensor<4xf32>
  %y = arith.mulf %e, %2 : tensor<4xf32>
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %3, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// CHECK-LABEL: tt.func @exponential_framed(
// CHECK: %[[IS:.*]] = autodiff.custom_vjp "a sum that is one"
// CHECK: %[[ALL:.*]] = tt.splat %[[IS]]
// CHECK: arith.divf %{{.*}}, %[[ALL]] : tensor<4xf32>
tt.func @exponential(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: f32) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x1 = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %x0 = math.tanh %x1 : tensor<4xf32>
  %c4 = tt.splat %c : f32 -> tensor<4xf32>
  %x = arith.mulf %x0, %c4 : tensor<4xf32>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %1 = tt.splat %m : f32 -> tensor<4xf32>
  %d = arith.subf %x, %1 : tensor<4xf32>
  %e = math.exp %d : tensor<4xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %log = math.log %s : f32
  %lse = arith.addf %m, %log : f32
  %n = arith.subf %m, %lse : f32
  %r = math.exp %n : f32
  %2 = tt.splat %r : f32 -> tensor<4xf32>
  %y = arith.mulf %e, %2 : tensor<4xf32>
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %3, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// Relative to something else, a row without a sum weighs nothing: L is −∞ there,
// where the terms take ∞.
// CHECK-LABEL: tt.func @weighed_framed(
// CHECK: math.log
// CHECK: %[[L:.*]] = autodiff.residual {{.*}} {constant}
// CHECK: %[[FRAME:.*]] = arith.select %{{.*}}, %{{.*}}, %[[L]]
// CHECK: %[[SPLAT:.*]] = tt.splat %[[FRAME]]
// CHECK: arith.subf %{{.*}}, %[[SPLAT]]
// CHECK: %[[IS:.*]] = autodiff.custom_vjp "a sum that is one"
// CHECK: %[[LOG:.*]] = math.log %[[IS]]
// CHECK: %[[LSE:.*]] = arith.addf %[[L]], %[[LOG]]
// CHECK: %[[ALL:.*]] = arith.addf %{{.*}}, %{{.*}}
// CHECK: arith.subf %[[L]], %[[ALL]]
tt.func @weighed(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: f32, %z: f32) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x1 = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %x0 = math.tanh %x1 : tensor<4xf32>
  %c4 = tt.splat %c : f32 -> tensor<4xf32>
  %x = arith.mulf %x0, %c4 : tensor<4xf32>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %1 = tt.splat %m : f32 -> tensor<4xf32>
  %d = arith.subf %x, %1 : tensor<4xf32>
  %e = math.exp %d : tensor<4xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %log = math.log %s : f32
  %lse = arith.addf %m, %log : f32
  %all = arith.addf %lse, %z : f32
  %n = arith.subf %m, %all : f32
  %r = math.exp %n : f32
  %2 = tt.splat %r : f32 -> tensor<4xf32>
  %y = arith.mulf %e, %2 : tensor<4xf32>
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %3, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}
