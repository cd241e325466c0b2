// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(autodiff-normalize,tt.func(autodiff-mark-residuals),autodiff-rescale-accumulators,autodiff-carry-sums,canonicalize,cse)' \
// RUN:   | FileCheck %s

// The log-sum-exp is a bound of the maximum. In the frame of the last one, it is
// the logarithm of a plain sum.
// CHECK-LABEL: tt.func @logarithm_framed(
// CHECK: %[[ONLINE:.*]]:3 = scf.for
// CHECK: %[[M:.*]] = autodiff.residual %[[ONLINE]]#0
// CHECK: %[[SUMS:.*]]:2 = scf.for {{.*}} iter_args(%[[L:[^ ,:)]+]] = %cst{{[_0-9]*}}, %[[ACC:[^ ,:)]+]] = %cst{{[_0-9]*}}) -> (f32, f32)
// CHECK: %[[X:.*]] = tt.load
// CHECK-NEXT: %[[D:.*]] = arith.subf %[[X]], %[[M]]
// CHECK-NEXT: %[[E:.*]] = math.exp %[[D]]
// CHECK-NOT: math.log
// CHECK: %[[V:.*]] = arith.mulf %[[E]], %[[X]]
// CHECK-NEXT: %[[A:.*]] = arith.addf %[[ACC]], %[[V]]
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[L]], %[[E]]
// CHECK-NEXT: scf.yield %[[S]], %[[A]]
// CHECK: %[[RS:.*]] = autodiff.residual %[[SUMS]]#0
// CHECK-NEXT: %[[LOG:.*]] = math.log %[[RS]]
// CHECK-NEXT: arith.addf %[[M]], %[[LOG]]
tt.func @logarithm(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %minf = arith.constant 0xFF800000 : f32
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %minf, %lse = %minf, %acc = %zero) -> (f32, f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %m1 = arith.maxnumf %lse, %x : f32
    %d = arith.subf %m, %m1 : f32
    %a = math.exp %d : f32
    %acc1 = arith.mulf %acc, %a : f32
    %e = arith.subf %x, %m1 : f32
    %f = math.exp %e : f32
    %v = arith.mulf %f, %x : f32
    %acc2 = arith.addf %acc1, %v : f32
    %b = arith.subf %lse, %m1 : f32
    %c = math.exp %b : f32
    %s = arith.addf %c, %f : f32
    %l = math.log %s : f32
    %lse1 = arith.addf %m1, %l : f32
    scf.yield %m1, %lse1, %acc2 : f32, f32, f32
  }
  %d = arith.subf %r#0, %r#1 : f32
  %e = math.exp %d : f32
  %y = arith.mulf %r#2, %e : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Exponentials of the logarithm to another base are no part of the sum.
// CHECK-LABEL: tt.func @other_base_framed(
// CHECK: scf.for
// CHECK: math.log
// CHECK: scf.yield
tt.func @other_base(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %m = arith.constant 1.0 : f32
  %minf = arith.constant 0xFF800000 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%lse = %minf) -> (f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %b = arith.subf %lse, %m : f32
    %c = math.exp2 %b : f32
    %s = arith.addf %c, %x : f32
    %l = math.log %s : f32
    %lse1 = arith.addf %m, %l : f32
    scf.yield %lse1 : f32
  }
  tt.store %py, %r : !tt.ptr<f32>
  tt.return
}

// -----

// A mean with the sum of all weights, which may have been there before.
// CHECK-LABEL: tt.func @mean_framed(
// CHECK-SAME: %[[M0:[a-z0-9]+]]: f32, %[[W0:[a-z0-9]+]]: f32)
// CHECK: %[[RUNS:.*]] = arith.cmpi sgt, %arg2, %c0
// CHECK: %[[W:.*]] = arith.select %[[RUNS]], %[[W0]], %{{.*}} {autodiff.if_run}
// CHECK: %[[B:.*]] = arith.mulf %[[M0]], %[[W]]
// CHECK: %[[SUMS:.*]]:2 = scf.for {{.*}} iter_args(%[[WEIGHT:[^ ,:)]+]] = %[[W0]], %[[SUM:[^ ,:)]+]] = %[[B]])
// CHECK: %[[X:.*]] = tt.load
// CHECK-NOT: arith.divf
// CHECK-DAG: %[[MORE:.*]] = arith.addf %[[WEIGHT]], %[[X]]
// CHECK-DAG: %[[G:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-DAG: %[[S:.*]] = arith.addf %[[SUM]], %[[G]]
// CHECK: scf.yield %[[MORE]], %[[S]]
// CHECK: %[[TOTAL:.*]] = autodiff.residual %[[SUMS]]#0
// CHECK: %[[BY:.*]] = arith.select %[[RUNS]], %[[TOTAL]], %{{.*}} {autodiff.if_run}
// CHECK: arith.divf %[[SUMS]]#1, %[[BY]]
tt.func @mean(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %m0: f32, %w0: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%w = %w0, %mean = %m0) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %w1 = arith.addf %w, %x : f32
    %part = arith.divf %w, %w1 : f32
    %mean1 = arith.mulf %mean, %part : f32
    %g = arith.mulf %x, %x : f32
    %h = arith.divf %g, %w1 : f32
    %mean2 = arith.addf %mean1, %h : f32
    scf.yield %w1, %mean2 : f32, f32
  }
  tt.store %py, %r#1 : !tt.ptr<f32>
  tt.return
}

// -----

// What is added is not divided: no mean.
// CHECK-LABEL: tt.func @decay_framed(
// CHECK: scf.for
// CHECK: arith.divf
// CHECK: scf.yield
tt.func @decay(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %w0: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%w = %w0, %mean = %zero) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %w1 = arith.addf %w, %x : f32
    %part = arith.divf %w, %w1 : f32
    %mean1 = arith.mulf %mean, %part : f32
    %mean2 = arith.addf %mean1, %x : f32
    scf.yield %w1, %mean2 : f32, f32
  }
  tt.store %py, %r#1 : !tt.ptr<f32>
  tt.return
}

// -----

// With nothing but a mean and a logarithm, the last logarithm is the frame; the
// weights are relative to it.
// CHECK-LABEL: tt.func @normalized_framed(
// CHECK: %[[ONLINE:.*]]:2 = scf.for
// CHECK: math.log
// CHECK: %[[M:.*]] = autodiff.residual %[[ONLINE]]#0
// CHECK: %[[SUMS:.*]]:2 = scf.for {{.*}} -> (f32, f32)
// CHECK: %[[X:.*]] = tt.load
// CHECK-NEXT: %[[D:.*]] = arith.subf %[[X]], %[[M]]
// CHECK-NEXT: math.exp %[[D]]
// CHECK-NOT: math
// CHECK: scf.yield
// CHECK: %[[RS:.*]] = autodiff.residual %[[SUMS]]#0
// CHECK: math.log %[[RS]]
tt.func @normalized(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %minf = arith.constant 0xFF800000 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%lse = %minf, %acc = %zero) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %top = arith.maxnumf %lse, %x : f32
    %b = arith.subf %lse, %top : f32
    %c = math.exp %b : f32
    %e = arith.subf %x, %top : f32
    %f = math.exp %e : f32
    %s = arith.addf %c, %f : f32
    %l = math.log %s : f32
    %lse1 = arith.addf %top, %l : f32
    %d = arith.subf %lse, %lse1 : f32
    %a = math.exp %d : f32
    %acc1 = arith.mulf %acc, %a : f32
    %g = arith.subf %x, %lse1 : f32
    %h = math.exp %g : f32
    %v = arith.mulf %h, %x : f32
    %acc2 = arith.addf %acc1, %v : f32
    scf.yield %lse1, %acc2 : f32, f32
  }
  %y = arith.addf %r#0, %r#1 : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A maximum of its own, by which a block's exponentials are then corrected, may
// be any number: the running one.
// CHECK-LABEL: tt.func @block_framed(
// CHECK: %[[M:.*]] = autodiff.residual %{{.*}}
// CHECK: scf.for {{.*}} iter_args(%[[L:[^ ,:)]+]] = %{{.*}}) -> (f32)
// CHECK-NOT: maxnumf
// CHECK: %[[S:.*]] = "tt.reduce"
// CHECK-NOT: arith.mulf
// CHECK: arith.addf %[[L]], %[[S]]
// CHECK-NEXT: scf.yield
tt.func @block(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant 0.0 : f32
  %minf = arith.constant 0xFF800000 : f32
  %lanes = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %r:2 = scf.for %i = %c0 to %n step %c16 iter_args(%m = %minf, %l = %zero) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %q = tt.addptr %ps, %lanes : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %x = tt.load %q : tensor<16x!tt.ptr<f32>>
    %own = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<16xf32>) -> f32
    %owns = tt.splat %own : f32 -> tensor<16xf32>
    %d = arith.subf %x, %owns : tensor<16xf32>
    %e = math.exp %d : tensor<16xf32>
    %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<16xf32>) -> f32
    %m1 = arith.maxnumf %m, %own : f32
    %f = arith.subf %m, %m1 : f32
    %g = math.exp %f : f32
    %h = arith.mulf %l, %g : f32
    %j = arith.subf %own, %m1 : f32
    %k = math.exp %j : f32
    %t = arith.mulf %s, %k : f32
    %l1 = arith.addf %h, %t : f32
    scf.yield %m1, %l1 : f32, f32
  }
  %log = math.log %r#1 : f32
  %y = arith.addf %r#0, %log : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
