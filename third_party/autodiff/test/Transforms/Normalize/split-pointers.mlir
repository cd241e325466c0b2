// RUN: triton-autodiff-opt %s -split-input-file -pass-pipeline='builtin.module(tt.func(autodiff-split-pointers))' | FileCheck %s

// A branch chooses between two arguments.
// CHECK-LABEL: @branch
// CHECK-SAME: (%[[X:.*]]: !tt.ptr<f32>, %[[Y:.*]]: !tt.ptr<f32>, %[[O:.*]]: i32
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[WHICH:.*]] = arith.extui %{{.*}} : i1 to i32
// CHECK: %[[OFFSET:.*]] = scf.if %{{.*}} -> (i64) {
// CHECK: %[[WIDE:.*]] = arith.extsi %[[O]] : i32 to i64
// CHECK: scf.yield %[[WIDE]] : i64
// CHECK: %[[ISY:.*]] = arith.cmpi eq, %[[WHICH]], %[[ONE]]
// CHECK: %[[BASE:.*]] = arith.select %[[ISY]], %[[Y]], %[[X]] : !tt.ptr<f32>
// CHECK: %[[PTR:.*]] = tt.addptr %[[BASE]], %[[OFFSET]]
// CHECK: tt.load %[[PTR]]
tt.func @branch(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %o: i32, %c: i1) -> f32 {
  %p = scf.if %c -> !tt.ptr<f32> {
    tt.print "x" {hex = false, isSigned = array<i32: 1>} : %o : i32
    %q = tt.addptr %x, %o : !tt.ptr<f32>, i32
    scf.yield %q : !tt.ptr<f32>
  } else {
    scf.yield %y : !tt.ptr<f32>
  }
  %v = tt.load %p : !tt.ptr<f32>
  tt.return %v : f32
}

// -----

// Two pointers that a loop swaps; their tiles are formed in the loop.
// CHECK-LABEL: @swap
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) -> (i32, i32)
// CHECK: tt.splat %[[A]] : i32 -> tensor<4xi32>
// CHECK: arith.select %{{.*}} : tensor<4xi1>, tensor<4x!tt.ptr<f32>>
// CHECK: scf.yield %[[B]], %[[A]] : i32, i32
tt.func @swap(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %v = arith.constant dense<1.0> : tensor<4xf32>
  %o = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (!tt.ptr<f32>, !tt.ptr<f32>) : i32 {
    %t = tt.splat %a : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
    %p = tt.addptr %t, %o : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    tt.store %p, %v : tensor<4x!tt.ptr<f32>>
    scf.yield %b, %a : !tt.ptr<f32>, !tt.ptr<f32>
  }
  tt.return
}

// -----

// scf.while, and a pointer that moves by what memory says.
// CHECK-LABEL: @chase
// CHECK: scf.while (%[[OFFSET:.*]] = %{{.*}}) : (i64) -> i64
// CHECK: tt.addptr %arg0, %[[OFFSET]] : !tt.ptr<i32>, i64
tt.func @chase(%x: !tt.ptr<i32>) -> i32 {
  %c0 = arith.constant 0 : i32
  %p = scf.while (%q = %x) : (!tt.ptr<i32>) -> !tt.ptr<i32> {
    %v = tt.load %q : !tt.ptr<i32>
    %go = arith.cmpi ne, %v, %c0 : i32
    scf.condition(%go) %q : !tt.ptr<i32>
  } do {
  ^bb0(%q: !tt.ptr<i32>):
    %v = tt.load %q : !tt.ptr<i32>
    %r = tt.addptr %q, %v : !tt.ptr<i32>, i32
    scf.yield %r : !tt.ptr<i32>
  }
  %v = tt.load %p : !tt.ptr<i32>
  tt.return %v : i32
}

// -----

// Pointers that advance by the same amount stay pointers.
// CHECK-LABEL: @affine
// CHECK: iter_args(%{{.*}} = %arg0) -> (!tt.ptr<f32>)
tt.func @affine(%x: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %v = arith.constant 1.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (!tt.ptr<f32>) : i32 {
    tt.store %a, %v : !tt.ptr<f32>
    %b = tt.addptr %a, %c1 : !tt.ptr<f32>, i32
    scf.yield %b : !tt.ptr<f32>
  }
  tt.return
}

// -----

// Where they end does not take the loop: y + max(n, 0) · 2.
// CHECK-LABEL: @after
// CHECK: scf.for
// CHECK: %[[STEP:.*]] = arith.extsi %c2_i32 : i32 to i64
// CHECK: %[[SPAN:.*]] = arith.maxsi %{{.*}}, %{{.*}} : i32
// CHECK: %[[N:.*]] = arith.extsi %[[SPAN]] : i32 to i64
// CHECK: %[[D:.*]] = arith.muli %[[STEP]], %[[N]] : i64
// CHECK: %[[P:.*]] = tt.addptr %arg0, %[[D]] : !tt.ptr<f32>, i64
// CHECK: tt.store %[[P]]
tt.func @after(%x: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %v = arith.constant 1.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (!tt.ptr<f32>) : i32 {
    tt.store %a, %v : !tt.ptr<f32>
    %b = tt.addptr %a, %c2 : !tt.ptr<f32>, i32
    scf.yield %b : !tt.ptr<f32>
  }
  tt.store %r, %v : !tt.ptr<f32>
  tt.return
}

// -----

// A pointer from nowhere cannot be split.
// CHECK-LABEL: @opaque
// CHECK: scf.if %{{.*}} -> (!tt.ptr<f32>)
tt.func @opaque(%x: !tt.ptr<f32>, %address: i64, %c: i1) -> f32 {
  %p = scf.if %c -> !tt.ptr<f32> {
    %q = tt.int_to_ptr %address : i64 -> !tt.ptr<f32>
    scf.yield %q : !tt.ptr<f32>
  } else {
    scf.yield %x : !tt.ptr<f32>
  }
  %v = tt.load %p : !tt.ptr<f32>
  tt.return %v : f32
}
