// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(autodiff-normalize,tt.func(autodiff-mark-residuals),autodiff-rescale-accumulators,canonicalize,cse)' \
// RUN:   | FileCheck %s

// While all that was seen is −∞, the loop uses zero in place of the maximum.
// The frame is finite, too: no selection is left in the loop.
// CHECK-LABEL: tt.func @guarded_framed(
// CHECK-DAG: %[[MINF:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[M:.*]] = autodiff.residual %{{.*}}#0 id = 0
// CHECK: %[[IS:.*]] = arith.cmpf oeq, %[[M]], %[[MINF]]
// CHECK: %[[FRAME:.*]] = arith.select %[[IS]], %[[ZERO]], %[[M]]
// CHECK: scf.for {{.*}} iter_args(%[[ACC:[^ ,:)]+]] = %[[ZERO]]) -> (f32)
// CHECK-NEXT: %[[P:.*]] = tt.addptr
// CHECK-NEXT: %[[X:.*]] = tt.load
// CHECK-NEXT: %[[D:.*]] = arith.subf %[[X]], %[[FRAME]]
// CHECK-NEXT: %[[E:.*]] = math.exp %[[D]]
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[ACC]], %[[E]]
// CHECK-NEXT: scf.yield %[[SUM]] : f32
// CHECK-NEXT: } {autodiff.attained = array<i32: 0, 1>}
tt.func @guarded(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %minf = arith.constant 0xFF800000 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %minf, %s = %zero) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %m1 = arith.maxnumf %m, %x : f32
    %u = arith.cmpf oeq, %m1, %minf : f32
    %g = arith.select %u, %zero, %m1 : f32
    %d = arith.subf %m, %g : f32
    %a = math.exp %d : f32
    %s1 = arith.mulf %s, %a : f32
    %e = arith.subf %x, %g : f32
    %f = math.exp %e : f32
    %s2 = arith.addf %s1, %f : f32
    scf.yield %m1, %s2 : f32, f32
  }
  %z = arith.cmpf oeq, %r#1, %zero : f32
  %l = arith.select %z, %one, %r#1 : f32
  %y = math.log %l : f32
  %w = arith.addf %r#0, %y : f32
  tt.store %py, %w : !tt.ptr<f32>
  tt.return
}

// -----

// Zero is carried on: after an iteration the maximum is finite. An initial
// value is lost as soon as there is one.
// CHECK-LABEL: tt.func @carried_framed(
// CHECK: %[[M:.*]] = autodiff.residual %{{.*}}#0 id = 0
// CHECK: %[[D:.*]] = arith.subf %{{.*}}, %[[M]]
// CHECK: %[[IS:.*]] = arith.cmpf ord, %[[D]], %[[D]]
// CHECK: %[[N:.*]] = arith.select %[[IS]], %[[D]], %{{.*}} {autodiff.changes_frame}
// CHECK: %[[E:.*]] = math.exp %[[N]]
// CHECK: %[[S:.*]] = arith.mulf %arg3, %[[E]]
// CHECK: scf.for {{.*}} iter_args(%[[ACC:[^ ,:)]+]] = %[[S]]) -> (f32)
// CHECK-NOT: arith.select
// CHECK: scf.yield
tt.func @carried(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %s0: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %minf = arith.constant 0xFF800000 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %minf, %s = %s0) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %m1 = arith.maxnumf %m, %x : f32
    %u = arith.cmpf ogt, %m1, %minf : f32
    %g = arith.select %u, %m1, %zero : f32
    %d = arith.subf %m, %g : f32
    %a = math.exp %d : f32
    %s1 = arith.mulf %s, %a : f32
    %e = arith.subf %x, %g : f32
    %f = math.exp %e : f32
    %s2 = arith.addf %s1, %f : f32
    scf.yield %g, %s2 : f32, f32
  }
  %l = math.log %r#1 : f32
  %w = arith.addf %r#0, %l : f32
  tt.store %py, %w : !tt.ptr<f32>
  tt.return
}

// -----

// An initial value that is lost after an iteration: unless the loop has run, it
// is what it was.
// CHECK-LABEL: tt.func @initial_framed(
// CHECK: %[[M:.*]] = autodiff.residual %{{.*}}#0 id = 0
// CHECK: %[[RUNS:.*]] = arith.cmpi sgt, %arg2, %{{.*}}
// CHECK: %[[D:.*]] = arith.subf %{{.*}}, %{{.*}}
// CHECK: %[[N:.*]] = arith.select %[[RUNS]], %[[D]], %{{.*}} {autodiff.changes_frame}
// CHECK: %[[E:.*]] = math.exp %[[N]]
// CHECK: %[[S:.*]] = arith.mulf %arg3, %[[E]]
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[S]]) -> (f32)
tt.func @initial(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %s0: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %minf = arith.constant 0xFF800000 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %minf, %s = %s0) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %m1 = arith.maxnumf %m, %x : f32
    %u = arith.cmpf oeq, %m1, %minf : f32
    %g = arith.select %u, %zero, %m1 : f32
    %d = arith.subf %m, %g : f32
    %a = math.exp %d : f32
    %s1 = arith.mulf %s, %a : f32
    %e = arith.subf %x, %g : f32
    %f = math.exp %e : f32
    %s2 = arith.addf %s1, %f : f32
    scf.yield %m1, %s2 : f32, f32
  }
  %l = math.log %r#1 : f32
  %w = arith.addf %r#0, %l : f32
  tt.store %py, %w : !tt.ptr<f32>
  tt.return
}

// -----

// Rows that have seen nothing sum ones, which the first number makes forget: in
// no frame does the sum do that. One loop, as written.
// CHECK-LABEL: tt.func @uniform_framed(
// CHECK: scf.for {{.*}} -> (f32, f32)
// CHECK-NOT: scf.for
// CHECK: tt.return
tt.func @uniform(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %minf = arith.constant 0xFF800000 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %minf, %s = %zero) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %m1 = arith.maxnumf %m, %x : f32
    %u = arith.cmpf oeq, %m1, %minf : f32
    %d = arith.subf %m, %m1 : f32
    %a0 = math.exp %d : f32
    %a = arith.select %u, %one, %a0 : f32
    %s1 = arith.mulf %s, %a : f32
    %e = arith.subf %x, %m1 : f32
    %f0 = math.exp %e : f32
    %f = arith.select %u, %one, %f0 : f32
    %s2 = arith.addf %s1, %f : f32
    scf.yield %m1, %s2 : f32, f32
  }
  %l = math.log %r#1 : f32
  %w = arith.addf %r#0, %l : f32
  tt.store %py, %w : !tt.ptr<f32>
  tt.return
}

// -----

// How many rows have seen something is no sum of any row: it is not what it is
// in the frame of the last maximum.
// CHECK-LABEL: tt.func @counted_framed(
// CHECK: scf.for {{.*}} -> (tensor<4xf32>, tensor<4xf32>, f32)
// CHECK-NOT: scf.for
// CHECK: tt.return
tt.func @counted(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %one = arith.constant dense<1.0> : tensor<4xf32>
  %minf = arith.constant dense<0xFF800000> : tensor<4xf32>
  %range = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %base = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %minf, %s = %zero, %k = %none) -> (tensor<4xf32>, tensor<4xf32>, f32) : i32 {
    %j = tt.splat %i : i32 -> tensor<4xi32>
    %o = arith.addi %j, %range : tensor<4xi32>
    %p = tt.addptr %base, %o : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    %x = tt.load %p : tensor<4x!tt.ptr<f32>>
    %m1 = arith.maxnumf %m, %x : tensor<4xf32>
    %u = arith.cmpf oeq, %m1, %minf : tensor<4xf32>
    %g = arith.select %u, %zero, %m1 : tensor<4xi1>, tensor<4xf32>
    %d = arith.subf %m, %g : tensor<4xf32>
    %a = math.exp %d : tensor<4xf32>
    %s1 = arith.mulf %s, %a : tensor<4xf32>
    %e = arith.subf %x, %g : tensor<4xf32>
    %f = math.exp %e : tensor<4xf32>
    %s2 = arith.addf %s1, %f : tensor<4xf32>
    %v = arith.select %u, %zero, %one : tensor<4xi1>, tensor<4xf32>
    %c = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%y: f32, %z: f32):
      %t = arith.addf %y, %z : f32
      tt.reduce.return %t : f32
    }) : (tensor<4xf32>) -> f32
    %k1 = arith.addf %k, %c : f32
    scf.yield %m1, %s2, %k1 : tensor<4xf32>, tensor<4xf32>, f32
  }
  %l = math.log %r#1 : tensor<4xf32>
  %w = arith.addf %r#0, %l : tensor<4xf32>
  %h = tt.splat %r#2 : f32 -> tensor<4xf32>
  %w1 = arith.addf %w, %h : tensor<4xf32>
  %q = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %q1 = tt.addptr %q, %range : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %q1, %w1 : tensor<4x!tt.ptr<f32>>
  tt.return
}
