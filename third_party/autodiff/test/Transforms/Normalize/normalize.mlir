// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize | FileCheck %s

// Calls are inlined, an early return becomes a branch, a masked load without
// `other` gives zeros, and accesses are numbered in program order.
// CHECK-LABEL: tt.func public @early
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[C:.*]] = arith.cmpi eq, %arg2,
// CHECK: scf.if %[[C]] {
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[X:.*]] = tt.load %arg0, %arg3, %[[ZERO]] {autodiff.site = 0 : i32}
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-NEXT: tt.store %arg1, %[[Y]] {autodiff.site = 1 : i32}
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
// CHECK-NOT: @square
tt.func private @square(%a: f32) -> f32 {
  %b = arith.mulf %a, %a : f32
  tt.return %b : f32
}
tt.func public @early(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %m: i1) {
  %c0 = arith.constant 0 : i32
  %done = arith.cmpi eq, %n, %c0 : i32
  cf.cond_br %done, ^exit, ^body
^exit:
  tt.return
^body:
  %x = tt.load %px, %m : !tt.ptr<f32>
  %y = tt.call @square(%x) : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// What does not change in a loop is computed before it.
// CHECK-LABEL: tt.func @invariant
// CHECK: %[[Q:.*]] = tt.addptr %arg1, %arg2
// CHECK: scf.for
// CHECK: tt.store %[[Q]],
tt.func @invariant(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %q = tt.addptr %py, %n : !tt.ptr<f32>, i32
    tt.store %q, %x : !tt.ptr<f32>
  }
  tt.return
}

// -----

// Elements must stay where they are for an adjoint to find them, and the
// forward has to agree on where that is.
// CHECK-LABEL: tt.func @reshape
// CHECK-SAME: attributes {autodiff.ordered}
// CHECK: tt.reshape %{{[0-9]+}} : tensor<8xf32> -> tensor<2x4xf32>
tt.func @reshape(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<8x!tt.ptr<f32>>
  %y = tt.reshape %x allow_reorder : tensor<8xf32> -> tensor<2x4xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<2x4x!tt.ptr<f32>>
  tt.store %1, %y : tensor<2x4x!tt.ptr<f32>>
  tt.return
}

// -----

// A sum of all elements is the same in any order.
// CHECK-LABEL: tt.func @ravel
// CHECK-NOT: autodiff.ordered
// CHECK: tt.reshape %{{[0-9]+}} : tensor<2x4xf32> -> tensor<8xf32>
tt.func @ravel(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<2x4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<2x4x!tt.ptr<f32>>
  %flat = tt.reshape %x allow_reorder : tensor<2x4xf32> -> tensor<8xf32>
  %y = "tt.reduce"(%flat) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<8xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// One half after the other.
// CHECK-LABEL: tt.func @cat
// CHECK-SAME: attributes {autodiff.ordered}
// CHECK: %[[P:.*]] = tt.join %[[X:.*]], %[[W:.*]] : tensor<8xf32> -> tensor<8x2xf32>
// CHECK: %[[T:.*]] = tt.trans %[[P]] {order = array<i32: 1, 0>} : tensor<8x2xf32> -> tensor<2x8xf32>
// CHECK: tt.reshape %[[T]] : tensor<2x8xf32> -> tensor<16xf32>
tt.func @cat(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<8x!tt.ptr<f32>>
  %1 = tt.splat %pw : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %w = tt.load %1 : tensor<8x!tt.ptr<f32>>
  %y = tt.cat %x, %w : tensor<8xf32> -> tensor<16xf32>
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  tt.store %2, %y : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// The scalar code of a map: an early return becomes a branch.
// CHECK-LABEL: tt.func @map
// CHECK: "tt.map_elementwise"
// CHECK: ^bb0(
// CHECK-NOT: cf.
// CHECK: %[[Y:.*]] = arith.select
// CHECK: tt.map_elementwise.return %[[Y]]
tt.func @map(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %y = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
  ^bb0(%a: f32):
    %zero = arith.constant 0.0 : f32
    %c = arith.cmpf ogt, %a, %zero : f32
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    tt.map_elementwise.return %a : f32
  ^bb2:
    tt.map_elementwise.return %zero : f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %1, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// The first element is another one in another order.
// CHECK-LABEL: tt.func @first
// CHECK-SAME: attributes {autodiff.ordered}
tt.func @first(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<2x4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<2x4x!tt.ptr<f32>>
  %flat = tt.reshape %x allow_reorder : tensor<2x4xf32> -> tensor<8xf32>
  %y = "tt.reduce"(%flat) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    tt.reduce.return %a : f32
  }) : (tensor<8xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
