// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(tt.func(autodiff-simplify))' | FileCheck %s

// A sum over an axis of size one is a reshape.
// CHECK-LABEL: tt.func @sum_of_one
// CHECK: %[[Y:.*]] = tt.reshape %arg0 : tensor<1x4xf32> -> tensor<4xf32>
// CHECK: tt.store %arg1, %[[Y]]
tt.func @sum_of_one(%x: tensor<1x4xf32>, %p: tensor<4x!tt.ptr<f32>>) {
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<1x4xf32>) -> tensor<4xf32>
  tt.store %p, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// Of three carried values one is used after the loop and another one by it;
// the third only by itself: it goes.
// CHECK-LABEL: tt.func @carried
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[B:[^ ,:)]+]] = %cst, %[[C:[^ ,:)]+]] = %cst)
// CHECK-NOT: math.exp
// CHECK-NEXT: %[[E:.*]] = arith.addf %[[B]], %[[C]]
// CHECK-NEXT: %[[F:.*]] = math.sin %[[C]]
// CHECK-NEXT: scf.yield %[[E]], %[[F]]
// CHECK: tt.store %arg0, %[[R]]#0
tt.func @carried(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %b = %zero, %c = %zero) -> (f32, f32, f32) : i32 {
    %d = math.exp %a : f32
    %e = arith.addf %b, %c : f32
    %f = math.sin %c : f32
    scf.yield %d, %e, %f : f32, f32, f32
  }
  tt.store %p, %r#1 : !tt.ptr<f32>
  tt.return
}

// -----

// What an effect inside the loop needs stays.
// CHECK-LABEL: tt.func @effect
// CHECK: scf.for {{.*}} iter_args(%[[A:[^ ,:)]+]] = %cst)
// CHECK: %[[E:.*]] = math.exp %[[A]]
// CHECK: tt.store %arg0, %[[A]]
// CHECK: scf.yield %[[E]]
tt.func @effect(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> f32 : i32 {
    %d = math.exp %a : f32
    tt.store %p, %a : !tt.ptr<f32>
    scf.yield %d : f32
  }
  tt.return
}

// -----

// Carried values that iterations swap, beside one that goes.
// CHECK-LABEL: tt.func @swapped
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[A:[^ ,:)]+]] = %cst, %[[B:[^ ,:)]+]] = %cst_0)
// CHECK-NEXT: scf.yield %[[B]], %[[A]]
// CHECK: tt.store %arg0, %[[R]]#0
tt.func @swapped(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %b = %one, %c = %one) -> (f32, f32, f32) : i32 {
    %d = math.exp %c : f32
    scf.yield %b, %a, %d : f32, f32, f32
  }
  tt.store %p, %r#0 : !tt.ptr<f32>
  tt.return
}

// -----

// A tile is added by the product itself; a row that is repeated, after it.
// CHECK-LABEL: tt.func @add_to_dot
// CHECK: %[[SUM:.*]] = tt.dot %arg0, %arg1, %arg2
// CHECK: tt.store %arg4, %[[SUM]]
// CHECK: %[[DOT:.*]] = tt.dot %arg1, %arg0, %cst
// CHECK: %[[ADD:.*]] = arith.addf %[[DOT]], %{{.*}}
// CHECK: tt.store %arg4, %[[ADD]]
tt.func @add_to_dot(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %c: tensor<16x16xf32>, %r: tensor<16x1xf32>, %p: tensor<16x16x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %0 = tt.dot %a, %b, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %1 = arith.addf %0, %c : tensor<16x16xf32>
  tt.store %p, %1 : tensor<16x16x!tt.ptr<f32>>
  %2 = tt.dot %b, %a, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %3 = tt.broadcast %r : tensor<16x1xf32> -> tensor<16x16xf32>
  %4 = arith.addf %2, %3 : tensor<16x16xf32>
  tt.store %p, %4 : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// Few threads hold the elements along the last axis: they are summed first.
// CHECK-LABEL: tt.func @sum_of_sums
// CHECK: %[[ROWS:.*]] = "tt.reduce"(%arg0) <{axis = 1 : i32}>
// CHECK: (tensor<8x16xf32>) -> tensor<8xf32>
// CHECK: %[[ALL:.*]] = "tt.reduce"(%[[ROWS]]) <{axis = 0 : i32}>
// CHECK: (tensor<8xf32>) -> f32
// CHECK: tt.store %arg1, %[[ALL]]
tt.func @sum_of_sums(%x: tensor<8x16xf32>, %p: !tt.ptr<f32>) attributes {autodiff.role = "backward"} {
  %columns = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<8x16xf32>) -> tensor<16xf32>
  %y = "tt.reduce"(%columns) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<16xf32>) -> f32
  tt.store %p, %y : !tt.ptr<f32>
  tt.return
}

// -----

// The user's own sums stay as they are, and so do maxima.
// CHECK-LABEL: tt.func @primal
// CHECK: "tt.reduce"(%arg0) <{axis = 0 : i32}>
tt.func @primal(%x: tensor<8x16xf32>, %p: !tt.ptr<f32>) {
  %columns = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<8x16xf32>) -> tensor<16xf32>
  %y = "tt.reduce"(%columns) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<16xf32>) -> f32
  tt.store %p, %y : !tt.ptr<f32>
  tt.return
}

// -----

// CHECK-LABEL: tt.func @sum_of_maxima
// CHECK: "tt.reduce"(%arg0) <{axis = 0 : i32}>
tt.func @sum_of_maxima(%x: tensor<8x16xf32>, %p: !tt.ptr<f32>) attributes {autodiff.role = "backward"} {
  %columns = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<8x16xf32>) -> tensor<16xf32>
  %y = "tt.reduce"(%columns) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<16xf32>) -> f32
  tt.store %p, %y : !tt.ptr<f32>
  tt.return
}

// -----

// 1 / s is stored by the forward, s is not. Before there is 1 / s, there is
// nothing to multiply by; and the primal's own divisions stay.
// CHECK-LABEL: tt.func @reciprocal
// CHECK: %[[U:.*]] = autodiff.upstream
// CHECK: %[[BEFORE:.*]] = arith.divf %[[U]], %arg0
// CHECK: %[[ONE:.*]] = arith.divf %{{.*}}, %arg0
// CHECK: %[[R:.*]] = autodiff.residual %[[ONE]] id = 0
// CHECK: %[[AFTER:.*]] = arith.mulf %[[BEFORE]], %[[R]]
// CHECK: arith.divf %arg1, %arg0
// CHECK: tt.store %{{.*}}, %[[AFTER]]
tt.func @reciprocal(%s: f32, %x: f32, %p: !tt.ptr<f32>) attributes {autodiff.role = "backward"} {
  %one = arith.constant 1.0 : f32
  %u = autodiff.upstream %p {argument = 2 : i32, site = 0 : i32} : !tt.ptr<f32> -> f32
  %before = arith.divf %u, %s : f32
  %r = arith.divf %one, %s : f32
  %named = autodiff.residual %r id = 0 : f32
  %after = arith.divf %before, %s : f32
  %primal = arith.divf %x, %s : f32
  tt.store %p, %after : !tt.ptr<f32>
  tt.store %p, %primal : !tt.ptr<f32>
  tt.return
}

// -----

// A while loop that is over before its first iteration: what decides that is
// still computed.
// CHECK-LABEL: tt.func @skipped_while
// CHECK-NOT: scf.while
// CHECK: %[[N:.*]] = arith.addi %arg1, %arg1
// CHECK: tt.store %arg0, %[[N]]
tt.func @skipped_while(%p: !tt.ptr<i32>, %n: i32) {
  %false = arith.constant false
  %r:2 = scf.while (%i = %n, %runs = %false) : (i32, i1) -> (i32, i32) {
    %twice = arith.addi %i, %i : i32
    scf.condition(%runs) %twice, %i : i32, i32
  } do {
  ^bb0(%i: i32, %unused: i32):
    %x = tt.load %p : !tt.ptr<i32>
    %more = arith.cmpi slt, %x, %n : i32
    scf.yield %x, %more : i32, i1
  }
  tt.store %p, %r#0 : !tt.ptr<i32>
  tt.return
}
