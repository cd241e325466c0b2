// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-factor-products,canonicalize,cse))' %s | FileCheck %s

// One operand is the same in all iterations: what is to be rounded is summed,
// and multiplied once. If there is no iteration, nothing is read.
// CHECK-LABEL: tt.func @common(
// CHECK-SAME: %[[PX:[a-z0-9]+]]: tensor<16x64x!tt.ptr<bf16>>
// CHECK: %[[LOOP:.*]] = scf.for %{{.*}} to %[[UPPER:.*]] step {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (tensor<32x16xf32>)
// CHECK: %[[TERM:.*]] = tt.load
// CHECK: %[[NEXT:.*]] = arith.addf %[[SUM]], %[[TERM]]
// CHECK: scf.yield %[[NEXT]]
// CHECK: %[[RUNS:.*]] = arith.cmpi sgt, %[[UPPER]], %c0_i32
// CHECK: %[[MASK:.*]] = tt.splat %[[RUNS]]
// CHECK: %[[X:.*]] = tt.load %[[PX]], %[[MASK]], %cst{{.*}} : tensor<16x64x
// CHECK: %[[XT:.*]] = tt.trans %[[X]]
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[LOOP]]
// CHECK: %[[OTHER:.*]] = tt.trans %[[ROUNDED]]
// CHECK: %[[R:.*]] = tt.dot %[[XT]], %[[OTHER]], %{{.*}} -> tensor<64x32xf32>
// CHECK: tt.return %[[R]]
tt.func @common(%px: tensor<16x64x!tt.ptr<bf16>>, %pt: tensor<32x16x!tt.ptr<f32>>, %n: i32) -> tensor<64x32xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x32xf32>) : i32 {
    %x = tt.load %px : tensor<16x64x!tt.ptr<bf16>>
    %xt = tt.trans %x {order = array<i32: 1, 0>} : tensor<16x64xbf16> -> tensor<64x16xbf16>
    %at = tt.splat %i : i32 -> tensor<32x16xi32>
    %pi = tt.addptr %pt, %at : tensor<32x16x!tt.ptr<f32>>, tensor<32x16xi32>
    %t = tt.load %pi : tensor<32x16x!tt.ptr<f32>>
    %b = arith.truncf %t : tensor<32x16xf32> to tensor<32x16xbf16>
    %bt = tt.trans %b {order = array<i32: 1, 0>} : tensor<32x16xbf16> -> tensor<16x32xbf16>
    %next = tt.dot %xt, %bt, %acc : tensor<64x16xbf16> * tensor<16x32xbf16> -> tensor<64x32xf32>
    scf.yield %next : tensor<64x32xf32>
  }
  tt.return %r : tensor<64x32xf32>
}

// A term among others, which a mask takes to something else than zero where
// nothing is read: the product stays zero if there is no iteration.
// CHECK-LABEL: tt.func @among(
// CHECK: %[[LOOP:.*]]:2 = scf.for %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[SUM:.*]] = %{{.*}}) -> (tensor<32x32xf32>, tensor<32x16xf32>)
// CHECK: %[[FULL:.*]] = tt.dot
// CHECK-NOT: tt.dot
// CHECK: %[[NEXT:.*]] = arith.addf %[[ACC]], %[[FULL]]
// CHECK: %[[TERMS:.*]] = arith.addf %[[SUM]], %{{.*}}
// CHECK: scf.yield %[[NEXT]], %[[TERMS]]
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[COMMON:.*]] = arith.select %{{.*}}, %[[X]], %{{.*}}
// CHECK: tt.dot %[[LOOP]]#1, %[[COMMON]], %[[LOOP]]#0
tt.func @among(%px: tensor<16x32x!tt.ptr<f32>>, %m: tensor<16x32xi1>, %one: tensor<16x32xf32>, %pt: tensor<32x16x!tt.ptr<f32>>, %pf: tensor<32x32x!tt.ptr<f32>>, %n: i32) -> tensor<32x32xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
    %x = tt.load %px, %m, %one : tensor<16x32x!tt.ptr<f32>>
    %at = tt.splat %i : i32 -> tensor<32x16xi32>
    %pi = tt.addptr %pt, %at : tensor<32x16x!tt.ptr<f32>>, tensor<32x16xi32>
    %t = tt.load %pi : tensor<32x16x!tt.ptr<f32>>
    %as = tt.splat %i : i32 -> tensor<32x32xi32>
    %fi = tt.addptr %pf, %as : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
    %f = tt.load %fi : tensor<32x32x!tt.ptr<f32>>
    %low = tt.dot %t, %x, %zero : tensor<32x16xf32> * tensor<16x32xf32> -> tensor<32x32xf32>
    %both = tt.dot %f, %f, %low : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>
    %next = arith.addf %acc, %both : tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  }
  tt.return %r : tensor<32x32xf32>
}

// What is exact in bfloat16 has a sum that is not: two parts of it are.
// CHECK-LABEL: tt.func @exact(
// CHECK: %[[SUM:.*]] = scf.for {{.*}} -> (tensor<32x16xf32>)
// CHECK: arith.extf
// CHECK: %[[HIGH:.*]] = arith.truncf %[[SUM]]
// CHECK: %[[WIDE:.*]] = arith.extf %[[HIGH]]
// CHECK: %[[REST:.*]] = arith.subf %[[SUM]], %[[WIDE]]
// CHECK: %[[LOW:.*]] = arith.truncf %[[REST]]
// CHECK: %[[FIRST:.*]] = tt.dot %[[HIGH]], %[[X:.*]], %cst
// CHECK: %[[BOTH:.*]] = tt.dot %[[LOW]], %[[X]], %[[FIRST]]
// CHECK: tt.return %[[BOTH]]
tt.func @exact(%x: tensor<16x32xbf16>, %pt: tensor<32x16x!tt.ptr<bf16>>, %n: i32) -> tensor<32x32xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
    %at = tt.splat %i : i32 -> tensor<32x16xi32>
    %pi = tt.addptr %pt, %at : tensor<32x16x!tt.ptr<bf16>>, tensor<32x16xi32>
    %t = tt.load %pi : tensor<32x16x!tt.ptr<bf16>>
    %next = tt.dot %t, %x, %acc : tensor<32x16xbf16> * tensor<16x32xbf16> -> tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  }
  tt.return %r : tensor<32x32xf32>
}

// A sum in half precision might be beyond its range; what is carried may be
// used for something else, and what is common, be written.
// CHECK-LABEL: tt.func @half(
// CHECK: scf.for
// CHECK: tt.dot
// CHECK: scf.yield
tt.func @half(%x: tensor<16x32xf16>, %pt: tensor<32x16x!tt.ptr<f32>>, %n: i32) -> tensor<32x32xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
    %at = tt.splat %i : i32 -> tensor<32x16xi32>
    %pi = tt.addptr %pt, %at : tensor<32x16x!tt.ptr<f32>>, tensor<32x16xi32>
    %t = tt.load %pi : tensor<32x16x!tt.ptr<f32>>
    %b = arith.truncf %t : tensor<32x16xf32> to tensor<32x16xf16>
    %next = tt.dot %b, %x, %acc : tensor<32x16xf16> * tensor<16x32xf16> -> tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  }
  tt.return %r : tensor<32x32xf32>
}

// CHECK-LABEL: tt.func @looked_at(
// CHECK: scf.for
// CHECK: tt.dot
// CHECK: scf.yield
tt.func @looked_at(%x: tensor<16x32xf32>, %pt: tensor<32x16x!tt.ptr<f32>>, %n: i32) -> tensor<32x32xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %last = %zero) -> (tensor<32x32xf32>, tensor<32x32xf32>) : i32 {
    %at = tt.splat %i : i32 -> tensor<32x16xi32>
    %pi = tt.addptr %pt, %at : tensor<32x16x!tt.ptr<f32>>, tensor<32x16xi32>
    %t = tt.load %pi : tensor<32x16x!tt.ptr<f32>>
    %next = tt.dot %t, %x, %acc : tensor<32x16xf32> * tensor<16x32xf32> -> tensor<32x32xf32>
    %e = math.exp %acc : tensor<32x32xf32>
    scf.yield %next, %e : tensor<32x32xf32>, tensor<32x32xf32>
  }
  %s = arith.addf %r#0, %r#1 : tensor<32x32xf32>
  tt.return %s : tensor<32x32xf32>
}

// CHECK-LABEL: tt.func @written(
// CHECK: scf.for
// CHECK: tt.dot
// CHECK: scf.yield
tt.func @written(%px: tensor<16x32x!tt.ptr<f32>>, %pt: tensor<32x16x!tt.ptr<f32>>, %n: i32) -> tensor<32x32xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
    %x = tt.load %px : tensor<16x32x!tt.ptr<f32>>
    %at = tt.splat %i : i32 -> tensor<32x16xi32>
    %pi = tt.addptr %pt, %at : tensor<32x16x!tt.ptr<f32>>, tensor<32x16xi32>
    %t = tt.load %pi : tensor<32x16x!tt.ptr<f32>>
    %next = tt.dot %t, %x, %acc : tensor<32x16xf32> * tensor<16x32xf32> -> tensor<32x32xf32>
    %twice = arith.addf %x, %x : tensor<16x32xf32>
    tt.store %px, %twice : tensor<16x32x!tt.ptr<f32>>
    scf.yield %next : tensor<32x32xf32>
  }
  tt.return %r : tensor<32x32xf32>
}
