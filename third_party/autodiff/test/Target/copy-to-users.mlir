// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-copy-to-users))' %s | FileCheck %s

// Two loops multiply by the same tile: each computes it, with what it is
// computed from. What only its own block uses stays there.
// CHECK-LABEL: tt.func @two_loops(
// CHECK-NOT: tt.trans
// CHECK: scf.for
// CHECK-NEXT: %[[T:.*]] = tt.trans %arg0
// CHECK-NEXT: %[[E:.*]] = math.exp %[[T]]
// CHECK-NEXT: tt.dot %[[E]],
// CHECK: scf.for
// CHECK-NEXT: %[[T:.*]] = tt.trans %arg0
// CHECK-NEXT: %[[E:.*]] = math.exp %[[T]]
// CHECK-NEXT: tt.dot %[[E]],
// CHECK: }
// CHECK-NEXT: tt.return
tt.func @two_loops(%a: tensor<16x16xf32>, %n: i32) -> tensor<16x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = tt.trans %a {order = array<i32: 1, 0>} : tensor<16x16xf32> -> tensor<16x16xf32>
  %e = math.exp %t : tensor<16x16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<16x16xf32>) : i32 {
    %d = tt.dot %e, %a, %s : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  %q = scf.for %i = %c0 to %n step %c1 iter_args(%s = %r) -> (tensor<16x16xf32>) : i32 {
    %d = tt.dot %e, %a, %s : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  tt.return %q : tensor<16x16xf32>
}

// Its own block keeps what it uses, also if others use it.
// CHECK-LABEL: tt.func @own_block(
// CHECK: %[[E:.*]] = math.exp %arg0
// CHECK: scf.if
// CHECK-NEXT: %[[COPY:.*]] = math.exp %arg0
// CHECK-NEXT: tt.dot %[[COPY]],
// CHECK: tt.dot %[[E]],
tt.func @own_block(%a: tensor<16x16xf32>, %p: i1) -> tensor<16x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %e = math.exp %a : tensor<16x16xf32>
  %r = scf.if %p -> tensor<16x16xf32> {
    %d = tt.dot %e, %a, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  } else {
    scf.yield %zero : tensor<16x16xf32>
  }
  %q = tt.dot %e, %a, %r : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  tt.return %q : tensor<16x16xf32>
}

// What one block uses stays where it is; so do loads, products and constants.
// CHECK-LABEL: tt.func @stays(
// CHECK: arith.constant
// CHECK: math.exp
// CHECK: tt.load
// CHECK: tt.dot
// CHECK: scf.if
// CHECK-NOT: math.exp
// CHECK-NOT: tt.load
// CHECK-NOT: tt.dot
// CHECK-NOT: arith.constant
// CHECK: tt.return
tt.func @stays(%a: tensor<16x16xf32>, %x: tensor<16x16x!tt.ptr<f32>>, %p: i1) -> tensor<16x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %e = math.exp %a : tensor<16x16xf32>
  %l = tt.load %x : tensor<16x16x!tt.ptr<f32>>
  %d = tt.dot %a, %a, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %r = scf.if %p -> tensor<16x16xf32> {
    %s = arith.addf %e, %l : tensor<16x16xf32>
    %t = arith.addf %s, %d : tensor<16x16xf32>
    scf.yield %t : tensor<16x16xf32>
  } else {
    %s = arith.addf %d, %l : tensor<16x16xf32>
    %t = arith.addf %s, %zero : tensor<16x16xf32>
    scf.yield %t : tensor<16x16xf32>
  }
  tt.return %r : tensor<16x16xf32>
}
