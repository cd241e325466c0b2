// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(autodiff-normalize,tt.func(autodiff-mark-residuals),autodiff-rescale-accumulators,canonicalize,cse)' \
// RUN:   | FileCheck %s

// A second loop sums in the frame of the final maximum: no rescaling, and
// nothing carried but the sum. The primal stays.
// CHECK-LABEL: tt.func @online(
// CHECK: scf.for {{.*}} -> (f32, f32)
// CHECK-LABEL: tt.func @online_framed(
// CHECK-SAME: autodiff.role = "differentiated"
// CHECK: %[[ONLINE:.*]]:2 = scf.for
// CHECK: %[[M:.*]] = autodiff.residual %[[ONLINE]]#0 id = 0
// CHECK: %[[S:.*]] = scf.for {{.*}} iter_args(%[[ACC:[^ ,:)]+]] = %cst) -> (f32)
// CHECK: %[[X:.*]] = tt.load
// CHECK-NEXT: %[[D:.*]] = arith.subf %[[X]], %[[M]]
// CHECK-NEXT: %[[E:.*]] = math.exp %[[D]]
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[ACC]], %[[E]]
// CHECK-NEXT: scf.yield %[[SUM]] : f32
// CHECK: %[[RS:.*]] = autodiff.residual %[[S]] id = 1
// CHECK: %[[L:.*]] = math.log %[[RS]]
// CHECK: arith.addf %[[M]], %[[L]]
tt.func @online(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %minf = arith.constant 0xFF800000 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %minf, %s = %zero) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %m1 = arith.maxnumf %m, %x : f32
    %d = arith.subf %m, %m1 : f32
    %a = math.exp %d : f32
    %s1 = arith.mulf %s, %a : f32
    %e = arith.subf %x, %m1 : f32
    %f = math.exp %e : f32
    %s2 = arith.addf %s1, %f : f32
    scf.yield %m1, %s2 : f32, f32
  }
  %l = math.log %r#1 : f32
  %y = arith.addf %r#0, %l : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// An initial value that is not zero is seen from the final maximum, too:
// s₀·exp(m₀ − M), where −∞ − (−∞) is zero.
// CHECK-LABEL: tt.func @initial_framed(
// CHECK: %[[ONLINE:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %arg3, %{{.*}} = %arg4)
// CHECK: %[[M:.*]] = autodiff.residual %[[ONLINE]]#0 id = 0
// CHECK: %[[D:.*]] = arith.subf %arg3, %[[M]]
// CHECK: %[[IS:.*]] = arith.cmpf ord, %[[D]], %[[D]]
// CHECK: %[[N:.*]] = arith.select %[[IS]], %[[D]], %{{.*}} {autodiff.changes_frame}
// CHECK: %[[E:.*]] = math.exp %[[N]]
// CHECK: %[[S:.*]] = arith.mulf %arg4, %[[E]]
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[S]]) -> (f32)
tt.func @initial(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %m0: f32, %s0: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %m0, %s = %s0) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %m1 = arith.maxnumf %m, %x : f32
    %d = arith.subf %m, %m1 : f32
    %a = math.exp %d : f32
    %s1 = arith.mulf %s, %a : f32
    %e = arith.subf %x, %m1 : f32
    %f = math.exp %e : f32
    %s2 = arith.addf %s1, %f : f32
    scf.yield %m1, %s2 : f32, f32
  }
  %l = math.log %r#1 : f32
  %y = arith.addf %r#0, %l : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Rescaled by m − m' instead of its exponential, the sum has no frame to
// change to: one loop, as written.
// CHECK-LABEL: tt.func @other_framed(
// CHECK: scf.for {{.*}} -> (f32, f32)
// CHECK: math.exp
// CHECK-NOT: scf.for
// CHECK: tt.return
tt.func @other(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %minf = arith.constant 0xFF800000 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %minf, %s = %zero) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %m1 = arith.maxnumf %m, %x : f32
    %d = arith.subf %m, %m1 : f32
    %s1 = arith.mulf %s, %d : f32
    %e = arith.subf %x, %m1 : f32
    %f = math.exp %e : f32
    %s2 = arith.addf %s1, %f : f32
    scf.yield %m1, %s2 : f32, f32
  }
  %l = math.log %r#1 : f32
  %y = arith.addf %r#0, %l : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A store in the loop happens once: the loop that only finds the maximum has
// none.
// CHECK-LABEL: tt.func @storing_framed(
// CHECK: scf.for
// CHECK-NOT: tt.store
// CHECK: autodiff.residual
// CHECK: scf.for
// CHECK: tt.store %arg2
// CHECK: scf.yield
// CHECK: tt.store %arg1
tt.func @storing(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pz: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %minf = arith.constant 0xFF800000 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %minf, %s = %zero) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    tt.store %pz, %x : !tt.ptr<f32>
    %m1 = arith.maxnumf %m, %x : f32
    %d = arith.subf %m, %m1 : f32
    %a = math.exp %d : f32
    %s1 = arith.mulf %s, %a : f32
    %e = arith.subf %x, %m1 : f32
    %f = math.exp %e : f32
    %s2 = arith.addf %s1, %f : f32
    scf.yield %m1, %s2 : f32, f32
  }
  %l = math.log %r#1 : f32
  %y = arith.addf %r#0, %l : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A second loop goes on where the first one ends: both sum in the frame of the
// last maximum, and the sum goes from one to the other as it is.
// CHECK-LABEL: tt.func @stages_framed(
// CHECK: scf.for
// CHECK: %[[SECOND:.*]]:2 = scf.for
// CHECK: %[[M:.*]] = autodiff.residual %[[SECOND]]#0
// CHECK: %[[S:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %cst) -> (f32)
// CHECK: %[[X:.*]] = tt.load
// CHECK-NEXT: arith.subf %[[X]], %[[M]]
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[S]]) -> (f32)
// CHECK: %[[X:.*]] = tt.load
// CHECK-NEXT: arith.subf %[[X]], %[[M]]
tt.func @stages(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %k: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %minf = arith.constant 0xFF800000 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %minf, %s = %zero) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %m1 = arith.maxnumf %m, %x : f32
    %d = arith.subf %m, %m1 : f32
    %a = math.exp %d : f32
    %s1 = arith.mulf %s, %a : f32
    %e = arith.subf %x, %m1 : f32
    %f = math.exp %e : f32
    %s2 = arith.addf %s1, %f : f32
    scf.yield %m1, %s2 : f32, f32
  }
  %t:2 = scf.for %i = %n to %k step %c1 iter_args(%m = %r#0, %s = %r#1) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %m1 = arith.maxnumf %m, %x : f32
    %d = arith.subf %m, %m1 : f32
    %a = math.exp %d : f32
    %s1 = arith.mulf %s, %a : f32
    %e = arith.subf %x, %m1 : f32
    %f = math.exp %e : f32
    %s2 = arith.addf %s1, %f : f32
    scf.yield %m1, %s2 : f32, f32
  }
  %l = math.log %t#1 : f32
  %y = arith.addf %t#0, %l : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// The sum of the first loop is stored, too, and stays in its own frame.
// CHECK-LABEL: tt.func @stored_framed(
// CHECK: %[[FIRST:.*]]:2 = scf.for
// CHECK: %[[M1:.*]] = autodiff.residual %[[FIRST]]#0
// CHECK: scf.for
// CHECK: arith.subf %{{.*}}, %[[M1]]
// CHECK: %[[SECOND:.*]]:2 = scf.for
// CHECK: %[[M:.*]] = autodiff.residual %[[SECOND]]#0
// CHECK: arith.subf %[[M1]], %[[M]]
// CHECK: arith.select {{.*}} {autodiff.changes_frame}
tt.func @stored(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %k: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %minf = arith.constant 0xFF800000 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %minf, %s = %zero) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %m1 = arith.maxnumf %m, %x : f32
    %d = arith.subf %m, %m1 : f32
    %a = math.exp %d : f32
    %s1 = arith.mulf %s, %a : f32
    %e = arith.subf %x, %m1 : f32
    %f = math.exp %e : f32
    %s2 = arith.addf %s1, %f : f32
    scf.yield %m1, %s2 : f32, f32
  }
  tt.store %py, %r#1 : !tt.ptr<f32>
  %t:2 = scf.for %i = %n to %k step %c1 iter_args(%m = %r#0, %s = %r#1) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %m1 = arith.maxnumf %m, %x : f32
    %d = arith.subf %m, %m1 : f32
    %a = math.exp %d : f32
    %s1 = arith.mulf %s, %a : f32
    %e = arith.subf %x, %m1 : f32
    %f = math.exp %e : f32
    %s2 = arith.addf %s1, %f : f32
    scf.yield %m1, %s2 : f32, f32
  }
  %q = tt.addptr %py, %c1 : !tt.ptr<f32>, i32
  tt.store %q, %t#1 : !tt.ptr<f32>
  tt.return
}

// -----

// Two maxima: a loop in the frame of one of them is put in that of the other.
// CHECK-LABEL: tt.func @two_framed(
// CHECK: %[[ONLINE:.*]]:4 = scf.for
// CHECK: %[[M:.*]] = autodiff.residual %[[ONLINE]]#0 id = 0
// CHECK: %[[OTHER:.*]]:3 = scf.for
// CHECK: %[[N:.*]] = autodiff.residual %[[OTHER]]#1 id = 2
// CHECK: scf.for {{.*}} iter_args(%[[A:[^ ,:)]+]] = %{{[^ ,]+}}, %[[B:[^ ,:)]+]] = %{{[^ ,]+}}) -> (f32, f32)
// CHECK-DAG: %[[X:.*]] = arith.subf %{{.*}}, %[[M]]
// CHECK-DAG: %[[Y:.*]] = arith.subf %{{.*}}, %[[N]]
// CHECK-DAG: %[[F:.*]] = math.exp %[[X]]
// CHECK-DAG: %[[G:.*]] = math.exp %[[Y]]
// CHECK-DAG: arith.addf %[[A]], %[[F]]
// CHECK-DAG: arith.addf %[[B]], %[[G]]
// CHECK: scf.yield
tt.func @two(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pz: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %minf = arith.constant 0xFF800000 : f32
  %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %minf, %s = %zero, %o = %minf, %t = %zero) -> (f32, f32, f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %q = tt.addptr %py, %i : !tt.ptr<f32>, i32
    %y = tt.load %q : !tt.ptr<f32>
    %m1 = arith.maxnumf %m, %x : f32
    %d = arith.subf %m, %m1 : f32
    %a = math.exp %d : f32
    %s1 = arith.mulf %s, %a : f32
    %e = arith.subf %x, %m1 : f32
    %f = math.exp %e : f32
    %s2 = arith.addf %s1, %f : f32
    %o1 = arith.maxnumf %o, %y : f32
    %g = arith.subf %o, %o1 : f32
    %h = math.exp %g : f32
    %t1 = arith.mulf %t, %h : f32
    %j = arith.subf %y, %o1 : f32
    %k = math.exp %j : f32
    %t2 = arith.addf %t1, %k : f32
    scf.yield %m1, %s2, %o1, %t2 : f32, f32, f32, f32
  }
  %l = math.log %r#1 : f32
  %u = arith.addf %r#0, %l : f32
  %v = math.log %r#3 : f32
  %w = arith.addf %r#2, %v : f32
  %z = arith.subf %u, %w : f32
  tt.store %pz, %z : !tt.ptr<f32>
  tt.return
}

// -----

// Of several maxima, the last one takes what is carried.
// CHECK-LABEL: tt.func @clipped(
// CHECK: %[[M:.*]] = arith.maxnumf %{{.*}}, %{{.*}} : f32
// CHECK: arith.maxnumf %[[M]], %{{.*}} : f32
// CHECK-LABEL: tt.func @clipped_framed(
// CHECK: scf.for {{.*}} iter_args(%[[M:[^ ,:)]+]] = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32)
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[R:.*]] = arith.maxnumf %[[X]], %{{.*}} : f32
// CHECK: arith.maxnumf %[[R]], %[[M]] : f32
// CHECK: autodiff.residual %{{.*}} id = 0
// CHECK: scf.for {{.*}} -> (f32)
tt.func @clipped(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %minf = arith.constant 0xFF800000 : f32
  %least = arith.constant -1.0e+30 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %minf, %s = %zero) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %m0 = arith.maxnumf %x, %m : f32
    %m1 = arith.maxnumf %m0, %least : f32
    %d = arith.subf %m, %m1 : f32
    %a = math.exp %d : f32
    %s1 = arith.mulf %s, %a : f32
    %e = arith.subf %x, %m1 : f32
    %f = math.exp %e : f32
    %s2 = arith.addf %s1, %f : f32
    scf.yield %m1, %s2 : f32, f32
  }
  %l = math.log %r#1 : f32
  %y = arith.addf %r#0, %l : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
