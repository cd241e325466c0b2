// RUN: triton-autodiff-opt -pass-pipeline='builtin.module(tt.func(autodiff-renew-sums))' -split-input-file %s | FileCheck %s

// Each loop gets a branch, and the second one starts from the first one's sum
// plus zero.
// CHECK-LABEL: tt.func @follow(
// CHECK: %[[RUNS:.*]] = arith.cmpi slt, %[[C0:.*]], %arg2
// CHECK: %[[B:.*]] = scf.if %[[RUNS]]
// CHECK:   %[[S:.*]] = scf.for {{.*}} = %[[C0]] to %arg2
// CHECK:   scf.yield %[[S]]
// CHECK: } else {
// CHECK:   scf.yield %cst :
// CHECK: }
// CHECK: autodiff.size <grid0 - grid0>
// CHECK: %[[Z:.*]] = tt.splat
// CHECK: %[[N:.*]] = arith.addf %[[B]], %[[Z]]
// CHECK: %[[LATER:.*]] = arith.cmpi ult, %arg2, %arg3
// CHECK: scf.if %[[LATER]]
// CHECK:   scf.for unsigned {{.*}} iter_args(%{{.*}} = %[[N]])
// CHECK: } else {
// CHECK:   scf.yield %[[N]]
tt.func @follow(%x: tensor<16x16xf16>, %y: tensor<16x16xf16>, %n: i32, %m: i32, %p: tensor<16x16x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> (tensor<16x16xf32>) : i32 {
    %d = tt.dot %x, %y, %a : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  %t = scf.for unsigned %i = %n to %m step %c1 iter_args(%a = %s) -> (tensor<16x16xf32>) : i32 {
    %d = tt.dot %x, %y, %a : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  tt.store %p, %t : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// What comes from a branch, transposed on the way into a nest of loops.
// CHECK-LABEL: tt.func @branch(
// CHECK: %[[B:.*]] = scf.if %arg4
// CHECK: %[[T:.*]] = tt.trans %[[B]]
// CHECK: %[[N:.*]] = arith.addf %[[T]]
// CHECK: scf.if
// CHECK:   scf.for {{.*}} iter_args(%[[A:.*]] = %[[N]])
// CHECK:     %[[I:.*]] = scf.if
// CHECK:       scf.for {{.*}} iter_args(%{{.*}} = %[[A]])
// CHECK:     } else {
// CHECK:       scf.yield %[[A]]
// CHECK:     scf.yield %[[I]]
tt.func @branch(%x: tensor<16x16xf16>, %y: tensor<16x16xf16>, %n: i32, %m: i32, %any: i1, %p: tensor<16x16x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %b = scf.if %any -> (tensor<16x16xf32>) {
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> (tensor<16x16xf32>) : i32 {
      %d = tt.dot %x, %y, %a : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
      scf.yield %d : tensor<16x16xf32>
    }
    scf.yield %s : tensor<16x16xf32>
  } else {
    scf.yield %zero : tensor<16x16xf32>
  }
  %bt = tt.trans %b {order = array<i32: 1, 0>} : tensor<16x16xf32> -> tensor<16x16xf32>
  %t = scf.for %i = %c0 to %n step %c1 iter_args(%a = %bt) -> (tensor<16x16xf32>) : i32 {
    %inner = scf.for %j = %c0 to %m step %c1 iter_args(%c = %a) -> (tensor<16x16xf32>) : i32 {
      %d = tt.dot %x, %y, %c : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
      scf.yield %d : tensor<16x16xf32>
    }
    scf.yield %inner : tensor<16x16xf32>
  }
  tt.store %p, %t : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// Nothing is added to integers, or to what no product has been added to.
// CHECK-LABEL: tt.func @others(
// CHECK-NOT: scf.if
// CHECK: math.exp
// CHECK-NOT: arith.addf
// CHECK-NOT: autodiff.size
// CHECK: tt.return
tt.func @others(%x: tensor<16x16xf16>, %y: tensor<16x16xf16>, %v: tensor<16x16xi8>, %n: i32, %p: tensor<16x16x!tt.ptr<f32>>, %q: tensor<16x16x!tt.ptr<i32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %zeros = arith.constant dense<0> : tensor<16x16xi32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> (tensor<16x16xf32>) : i32 {
    %e = math.exp %a : tensor<16x16xf32>
    scf.yield %e : tensor<16x16xf32>
  }
  %s:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %r, %k = %zeros) -> (tensor<16x16xf32>, tensor<16x16xi32>) : i32 {
    %d = tt.dot %x, %y, %a : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    %e = tt.dot %v, %v, %k : tensor<16x16xi8> * tensor<16x16xi8> -> tensor<16x16xi32>
    scf.yield %d, %e : tensor<16x16xf32>, tensor<16x16xi32>
  }
  %t = scf.for %i = %c0 to %n step %c1 iter_args(%k = %s#1) -> (tensor<16x16xi32>) : i32 {
    %e = tt.dot %v, %v, %k : tensor<16x16xi8> * tensor<16x16xi8> -> tensor<16x16xi32>
    scf.yield %e : tensor<16x16xi32>
  }
  tt.store %p, %s#0 : tensor<16x16x!tt.ptr<f32>>
  tt.store %q, %t : tensor<16x16x!tt.ptr<i32>>
  tt.return
}
