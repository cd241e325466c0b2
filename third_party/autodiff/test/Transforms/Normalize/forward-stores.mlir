// RUN: triton-autodiff-opt %s -split-input-file -autodiff-forward-stores | FileCheck %s

// In a loop and behind it; a barrier, a load and a store to another tensor are
// in between. The stores stay.
// CHECK-LABEL: tt.func @scratch(
// CHECK: scf.for
// CHECK: %[[E:.*]] = math.exp
// CHECK-NEXT: tt.store %[[P:.*]], %[[E]]
// CHECK-NEXT: gpu.barrier
// CHECK-NOT: tt.load %[[P]]
// CHECK: arith.mulf %[[E]], %[[E]]
// CHECK: %[[S:.*]] = math.sin
// CHECK-NEXT: tt.store %[[P]], %[[S]]
// CHECK-NEXT: tt.store %arg2, %cst
// CHECK-NEXT: ttg.barrier
// CHECK-NEXT: tt.store %{{.*}}, %[[S]]
tt.func @scratch(%ps: !tt.ptr<f32>, %px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %lane = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %ps_ = tt.splat %ps : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %p = tt.addptr %ps_, %lane : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %px_ = tt.splat %px : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %q = tt.addptr %px_, %lane : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %q : tensor<16x!tt.ptr<f32>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<16xf32> : i32 {
    %e = math.exp %a : tensor<16xf32>
    tt.store %p, %e : tensor<16x!tt.ptr<f32>>
    gpu.barrier
    %again = tt.load %q : tensor<16x!tt.ptr<f32>>
    %v = tt.load %p : tensor<16x!tt.ptr<f32>>
    %square = arith.mulf %v, %v : tensor<16xf32>
    %sum = arith.addf %square, %again : tensor<16xf32>
    scf.yield %sum : tensor<16xf32>
  }
  %s = math.sin %r : tensor<16xf32>
  tt.store %p, %s : tensor<16x!tt.ptr<f32>>
  tt.store %py, %zero : !tt.ptr<f32>
  ttg.barrier all
  %w = tt.load %p : tensor<16x!tt.ptr<f32>>
  tt.store %q, %w : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// A mask chooses between what is stored and what lanes get otherwise.
// CHECK-LABEL: tt.func @masks(
// CHECK-SAME: %[[X:arg2]]: tensor<16xf32>
// CHECK-SAME: %[[M:arg3]]: tensor<16xi1>
// CHECK-SAME: %[[O:arg5]]: tensor<16xf32>
// CHECK: tt.store %[[P:.*]], %[[X]], %[[M]]
// CHECK-NEXT: %[[A:.*]] = arith.select %[[M]], %[[X]], %[[O]]
// CHECK-NEXT: tt.store %{{.*}}, %[[A]]
// CHECK: tt.store %[[P]], %[[X]]
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant dense<0.000000e+00>
// CHECK-NEXT: %[[B:.*]] = arith.select %[[M]], %[[X]], %[[ZERO]]
// CHECK-NEXT: tt.store %{{.*}}, %[[B]]
// Other lanes hold what was there before.
// CHECK: tt.store %[[P]], %[[X]], %[[M]]
// CHECK-NEXT: %[[C:.*]] = tt.load %[[P]], %arg4
// CHECK-NEXT: tt.store %{{.*}}, %[[C]]
// CHECK: tt.store %[[P]], %[[X]], %[[M]]
// CHECK-NEXT: %[[D:.*]] = tt.load %[[P]]
// CHECK-NEXT: tt.store %{{.*}}, %[[D]]
tt.func @masks(%ps: !tt.ptr<f32>, %pa: !tt.ptr<f32>, %x: tensor<16xf32>, %m: tensor<16xi1>, %k: tensor<16xi1>, %o: tensor<16xf32>) {
  %lane = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %ps_ = tt.splat %ps : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %p = tt.addptr %ps_, %lane : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %pa_ = tt.splat %pa : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qa = tt.addptr %pa_, %lane : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  tt.store %p, %x, %m : tensor<16x!tt.ptr<f32>>
  %a = tt.load %p, %m, %o : tensor<16x!tt.ptr<f32>>
  tt.store %qa, %a : tensor<16x!tt.ptr<f32>>
  tt.store %p, %x : tensor<16x!tt.ptr<f32>>
  %b = tt.load %p, %m : tensor<16x!tt.ptr<f32>>
  tt.store %qa, %b : tensor<16x!tt.ptr<f32>>
  tt.store %p, %x, %m : tensor<16x!tt.ptr<f32>>
  %c = tt.load %p, %k : tensor<16x!tt.ptr<f32>>
  tt.store %qa, %c : tensor<16x!tt.ptr<f32>>
  tt.store %p, %x, %m : tensor<16x!tt.ptr<f32>>
  %d = tt.load %p : tensor<16x!tt.ptr<f32>>
  tt.store %qa, %d : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// Rows of eight elements do not overlap, backwards or transposed; rows of six do.
// CHECK-LABEL: tt.func @rows(
// CHECK: tt.store
// CHECK-NOT: tt.load
// CHECK-COUNT-2: tt.store
// CHECK: tt.load
// CHECK-NEXT: tt.store
tt.func @rows(%ps: !tt.ptr<f32>, %x: tensor<8x4xf32>, %out: tensor<8x4x!tt.ptr<f32>>) {
  %rows = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %columns = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  %eight = arith.constant dense<-8> : tensor<1x4xi32>
  %six = arith.constant dense<6> : tensor<1x4xi32>
  %r1 = tt.expand_dims %rows {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
  %c1 = tt.expand_dims %columns {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
  %c2 = tt.broadcast %c1 : tensor<8x1xi32> -> tensor<8x4xi32>
  %ps_ = tt.splat %ps : !tt.ptr<f32> -> tensor<8x4x!tt.ptr<f32>>
  %p0 = tt.addptr %ps_, %c2 : tensor<8x4x!tt.ptr<f32>>, tensor<8x4xi32>
  %by_eight = arith.muli %r1, %eight : tensor<1x4xi32>
  %e2 = tt.broadcast %by_eight : tensor<1x4xi32> -> tensor<8x4xi32>
  %p = tt.addptr %p0, %e2 : tensor<8x4x!tt.ptr<f32>>, tensor<8x4xi32>
  %by_six = arith.muli %r1, %six : tensor<1x4xi32>
  %s2 = tt.broadcast %by_six : tensor<1x4xi32> -> tensor<8x4xi32>
  %q = tt.addptr %p0, %s2 : tensor<8x4x!tt.ptr<f32>>, tensor<8x4xi32>
  tt.store %p, %x : tensor<8x4x!tt.ptr<f32>>
  %a = tt.load %p : tensor<8x4x!tt.ptr<f32>>
  tt.store %p, %a : tensor<8x4x!tt.ptr<f32>>
  tt.store %q, %x : tensor<8x4x!tt.ptr<f32>>
  %b = tt.load %q : tensor<8x4x!tt.ptr<f32>>
  tt.store %out, %b : tensor<8x4x!tt.ptr<f32>>
  tt.return
}

// -----

// Something may write there in between: a store, in a loop, too; an atomic; and
// what loads what others have written. Of integers, a store to another tensor.
// CHECK-LABEL: tt.func @between(
// CHECK-COUNT-6: tt.load %arg0
// CHECK: tt.load %arg1
// CHECK: tt.return
tt.func @between(%p: !tt.ptr<f32>, %pi: !tt.ptr<i32>, %pj: !tt.ptr<i32>, %py: !tt.ptr<f32>, %x: f32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %q = tt.addptr %p, %n : !tt.ptr<f32>, i32
  tt.store %p, %x : !tt.ptr<f32>
  tt.store %q, %x : !tt.ptr<f32>
  %a = tt.load %p : !tt.ptr<f32>
  tt.store %py, %a : !tt.ptr<f32>
  tt.store %p, %x : !tt.ptr<f32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    tt.store %q, %x : !tt.ptr<f32>
  }
  %b = tt.load %p : !tt.ptr<f32>
  tt.store %py, %b : !tt.ptr<f32>
  tt.store %p, %x : !tt.ptr<f32>
  %old = tt.atomic_rmw fadd, relaxed, gpu, %py, %x, %true : (!tt.ptr<f32>, f32, i1) -> f32
  %c = tt.load %p : !tt.ptr<f32>
  tt.store %py, %c : !tt.ptr<f32>
  tt.store %p, %x : !tt.ptr<f32>
  %other = tt.load %py {isVolatile = true} : !tt.ptr<f32>
  %d = tt.load %p : !tt.ptr<f32>
  tt.store %py, %d : !tt.ptr<f32>
  tt.store %p, %x : !tt.ptr<f32>
  %e = tt.load %p {isVolatile = true} : !tt.ptr<f32>
  tt.store %py, %e : !tt.ptr<f32>
  tt.store %p, %x : !tt.ptr<f32>
  %f = tt.load %p cacheModifier = cv : !tt.ptr<f32>
  tt.store %py, %f : !tt.ptr<f32>
  tt.store %pi, %n : !tt.ptr<i32>
  tt.store %pj, %c0 : !tt.ptr<i32>
  %g = tt.load %pi : !tt.ptr<i32>
  tt.store %pj, %g : !tt.ptr<i32>
  tt.return
}

// -----

// The last store counts; a load in another block is left, and so is what a
// counter of finished programs decides.
// CHECK-LABEL: tt.func @which(
// CHECK: tt.store %arg0, %arg1
// CHECK-NEXT: tt.store %arg0, %arg2
// CHECK-NEXT: tt.store %arg3, %arg2
// CHECK: scf.if
// CHECK: tt.load %arg0
// CHECK: scf.if
// CHECK: tt.load %arg0
tt.func @which(%p: !tt.ptr<f32>, %x: f32, %y: f32, %out: !tt.ptr<f32>, %count: !tt.ptr<i32>, %cond: i1) {
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  tt.store %p, %x : !tt.ptr<f32>
  tt.store %p, %y : !tt.ptr<f32>
  %a = tt.load %p : !tt.ptr<f32>
  tt.store %out, %a : !tt.ptr<f32>
  scf.if %cond {
    %b = tt.load %p : !tt.ptr<f32>
    tt.store %out, %b : !tt.ptr<f32>
  }
  %before = tt.atomic_rmw add, acq_rel, gpu, %count, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
  %last = arith.cmpi eq, %before, %c1 : i32
  scf.if %last {
    tt.store %p, %x : !tt.ptr<f32>
    %c = tt.load %p : !tt.ptr<f32>
    tt.store %out, %c : !tt.ptr<f32>
  }
  tt.return
}
