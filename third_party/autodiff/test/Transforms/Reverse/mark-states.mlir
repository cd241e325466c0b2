// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-mark-states -split-input-file | FileCheck %s
// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-mark-states="repeated=2" -split-input-file \
// RUN:   | FileCheck %s --check-prefix=NONE
// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-mark-states -autodiff-reverse -canonicalize -cse \
// RUN:   -split-input-file | FileCheck %s --check-prefix=BACK

// h' = g·h + x, stored at row i under a mask that is the same in all iterations.
// The backward reads row i − 1, and where nothing has stored, the first state.
// NONE-NOT: autodiff.state
// CHECK-LABEL: tt.func @after(
// CHECK: tt.store {{.*}} autodiff.state = {carried = 0 : i32, check = #autodiff.check<distinct 2 at
// BACK: autodiff.check <argument 2> <distinct 2 at
// BACK-LABEL: tt.func @after_bwd(
// BACK-DAG: %[[MASK:.*]] = arith.cmpi slt
// BACK-DAG: %[[FIRST:.*]] = arith.constant dense<2.000000e+00>
// BACK: scf.for
// BACK: %[[I:.*]] = arith.subi %{{.*}}, %arg5
// BACK: %[[LATER:.*]] = arith.cmpi ne, %[[I]], %c0_i32
// BACK: %[[TILE:.*]] = tt.splat %[[LATER]]
// BACK: %[[BOTH:.*]] = arith.andi %[[MASK]], %[[TILE]]
// BACK: %[[BEFORE:.*]] = arith.subi %[[I]], %c1_i32
// BACK: %[[ROW:.*]] = arith.muli %[[BEFORE]], %arg4
// BACK: %[[READ:.*]] = tt.load %{{.*}}, %[[BOTH]]
// BACK: %[[H:.*]] = arith.select %[[BOTH]], %[[READ]], %[[FIRST]]
// BACK: arith.mulf %{{.*}}, %[[H]]
// BACK-NOT: autodiff.pop
// BACK: tt.return
tt.func @after(%x: !tt.ptr<f32>, %g: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %c: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %first = arith.constant dense<2.0> : tensor<64xf32>
  %lane = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %row = tt.splat %c : i32 -> tensor<64xi32>
  %mask = arith.cmpi slt, %lane, %row : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %gs = tt.splat %g : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %h:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %first, %o = %lane) -> (tensor<64xf32>, tensor<64xi32>) : i32 {
    %px = tt.addptr %xs, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %pg = tt.addptr %gs, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %py = tt.addptr %ys, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %vx = tt.load %px, %mask : tensor<64x!tt.ptr<f32>>
    %vg = tt.load %pg, %mask : tensor<64x!tt.ptr<f32>>
    %f = arith.mulf %a, %vg : tensor<64xf32>
    %b = arith.addf %f, %vx : tensor<64xf32>
    tt.store %py, %b, %mask : tensor<64x!tt.ptr<f32>>
    %p = arith.addi %o, %row : tensor<64xi32>
    scf.yield %b, %p : tensor<64xf32>, tensor<64xi32>
  }
  tt.return
}

// -----

// What is stored before the update is where the iteration itself has stored it.
// Rounded to bfloat16, it may be read where gradients are rounded to that, too:
// only its product with the gate is added to.
// CHECK-LABEL: tt.func @before(
// CHECK: tt.store {{.*}} autodiff.state
// BACK-LABEL: tt.func @before_bwd(
// BACK: %[[I:.*]] = arith.subi %{{.*}}, %arg4
// BACK: %[[READ:.*]] = tt.load %{{.*}} : tensor<64x!tt.ptr<bf16>>
// BACK: arith.extf %[[READ]]
// BACK-NOT: autodiff.pop
// BACK: tt.return
tt.func @before(%x: !tt.ptr<bf16>, %g: !tt.ptr<bf16>, %y: !tt.ptr<bf16>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant dense<2.0> : tensor<64xf32>
  %lane = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %gs = tt.splat %g : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %ys = tt.splat %y : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %px = tt.addptr %xs, %lane : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %wx = tt.load %px : tensor<64x!tt.ptr<bf16>>
  %first = arith.extf %wx : tensor<64xbf16> to tensor<64xf32>
  %h = scf.for %i = %c0 to %n step %c1 iter_args(%a = %first) -> tensor<64xf32> : i32 {
    %row = arith.muli %i, %c64 : i32
    %rows = tt.splat %row : i32 -> tensor<64xi32>
    %at = arith.addi %rows, %lane : tensor<64xi32>
    %pgs = tt.addptr %gs, %at : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
    %pys = tt.addptr %ys, %at : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
    %r = arith.truncf %a : tensor<64xf32> to tensor<64xbf16>
    tt.store %pys, %r : tensor<64x!tt.ptr<bf16>>
    %wg = tt.load %pgs : tensor<64x!tt.ptr<bf16>>
    %vg = arith.extf %wg : tensor<64xbf16> to tensor<64xf32>
    %f = arith.mulf %a, %vg : tensor<64xf32>
    %b = arith.addf %f, %first : tensor<64xf32>
    scf.yield %b : tensor<64xf32>
  }
  tt.return
}

// -----

// The gradient of the gate has more digits than the state in memory.
// CHECK-LABEL: tt.func @digits(
// CHECK-NOT: autodiff.state
// CHECK: tt.return
// BACK-LABEL: tt.func @digits_bwd(
// BACK: autodiff.pop
tt.func @digits(%x: !tt.ptr<f32>, %g: !tt.ptr<f32>, %y: !tt.ptr<bf16>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant dense<2.0> : tensor<64xf32>
  %lane = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %gs = tt.splat %g : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %px = tt.addptr %xs, %lane : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %wx = tt.load %px : tensor<64x!tt.ptr<f32>>
  %first = arith.mulf %wx, %one : tensor<64xf32>
  %h = scf.for %i = %c0 to %n step %c1 iter_args(%a = %first) -> tensor<64xf32> : i32 {
    %row = arith.muli %i, %c64 : i32
    %rows = tt.splat %row : i32 -> tensor<64xi32>
    %at = arith.addi %rows, %lane : tensor<64xi32>
    %pgs = tt.addptr %gs, %at : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %pys = tt.addptr %ys, %at : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
    %r = arith.truncf %a : tensor<64xf32> to tensor<64xbf16>
    tt.store %pys, %r : tensor<64x!tt.ptr<bf16>>
    %wg = tt.load %pgs : tensor<64x!tt.ptr<f32>>
    %vg = arith.mulf %wg, %one : tensor<64xf32>
    %f = arith.mulf %a, %vg : tensor<64xf32>
    %b = arith.addf %f, %first : tensor<64xf32>
    scf.yield %b : tensor<64xf32>
  }
  tt.return
}

// -----

// Half precision may not hold the state at all.
// CHECK-LABEL: tt.func @range(
// CHECK-NOT: autodiff.state
// CHECK: tt.return
// BACK-LABEL: tt.func @range_bwd(
// BACK: autodiff.pop
tt.func @range(%x: !tt.ptr<f16>, %g: !tt.ptr<f16>, %y: !tt.ptr<f16>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant dense<2.0> : tensor<64xf32>
  %lane = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %gs = tt.splat %g : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %ys = tt.splat %y : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %px = tt.addptr %xs, %lane : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %wx = tt.load %px : tensor<64x!tt.ptr<f16>>
  %first = arith.extf %wx : tensor<64xf16> to tensor<64xf32>
  %h = scf.for %i = %c0 to %n step %c1 iter_args(%a = %first) -> tensor<64xf32> : i32 {
    %row = arith.muli %i, %c64 : i32
    %rows = tt.splat %row : i32 -> tensor<64xi32>
    %at = arith.addi %rows, %lane : tensor<64xi32>
    %pgs = tt.addptr %gs, %at : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
    %pys = tt.addptr %ys, %at : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
    %r = arith.truncf %a : tensor<64xf32> to tensor<64xf16>
    tt.store %pys, %r : tensor<64x!tt.ptr<f16>>
    %wg = tt.load %pgs : tensor<64x!tt.ptr<f16>>
    %vg = arith.extf %wg : tensor<64xf16> to tensor<64xf32>
    %f = arith.mulf %a, %vg : tensor<64xf32>
    %b = arith.addf %f, %first : tensor<64xf32>
    scf.yield %b : tensor<64xf32>
  }
  tt.return
}

// -----

// Memory does not hold the state: every iteration stores to one place, the
// kernel loads from there, the sum is needed, which has been rounded, or lanes
// that the mask leaves out are added to others.
// CHECK-LABEL: tt.func @not_there(
// CHECK-NOT: autodiff.state
// CHECK: tt.return
// BACK-LABEL: tt.func @not_there_bwd(
// BACK-COUNT-4: autodiff.pop
tt.func @not_there(%x: !tt.ptr<f32>, %g: !tt.ptr<f32>, %one: !tt.ptr<f32>, %own: !tt.ptr<f32>, %half: !tt.ptr<bf16>, %some: !tt.ptr<f32>, %n: i32, %c: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %first = tt.load %x : !tt.ptr<f32>
  %zeros = arith.constant dense<0.0> : tensor<64xf32>
  %lane = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %row = tt.splat %c : i32 -> tensor<64xi32>
  %mask = arith.cmpi slt, %lane, %row : tensor<64xi32>
  %somes = tt.splat %some : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %h:4 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %first, %b = %first, %d = %first, %e = %zeros) -> (f32, f32, f32, tensor<64xf32>) : i32 {
    %pg = tt.addptr %g, %i : !tt.ptr<f32>, i32
    %vg = tt.load %pg : !tt.ptr<f32>

    %a1 = arith.mulf %a, %vg : f32
    tt.store %one, %a1 : !tt.ptr<f32>

    %pown = tt.addptr %own, %i : !tt.ptr<f32>, i32
    %old = tt.load %pown : !tt.ptr<f32>
    %b0 = arith.mulf %b, %vg : f32
    %b1 = arith.addf %b0, %old : f32
    tt.store %pown, %b1 : !tt.ptr<f32>

    %d0 = arith.addf %d, %vg : f32
    %d1 = arith.mulf %d0, %vg : f32
    %r = arith.truncf %d1 : f32 to bf16
    %phalf = tt.addptr %half, %i : !tt.ptr<bf16>, i32
    tt.store %phalf, %r : !tt.ptr<bf16>

    %sum = "tt.reduce"(%e) <{axis = 0 : i32}> ({
    ^bb0(%p: f32, %q: f32):
      %s = arith.addf %p, %q : f32
      tt.reduce.return %s : f32
    }) : (tensor<64xf32>) -> f32
    %w = arith.mulf %sum, %vg : f32
    %ws = tt.splat %w : f32 -> tensor<64xf32>
    %e1 = arith.addf %e, %ws : tensor<64xf32>
    %at = arith.muli %i, %c : i32
    %ats = tt.splat %at : i32 -> tensor<64xi32>
    %o = arith.addi %ats, %lane : tensor<64xi32>
    %psome = tt.addptr %somes, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    tt.store %psome, %e1, %mask : tensor<64x!tt.ptr<f32>>
    scf.yield %a1, %b1, %d1, %e1 : f32, f32, f32, tensor<64xf32>
  }
  tt.return
}

// -----

// Two values are carried that become the same: of the first, only products are
// needed; of the second, a sum, so it is taped. The store is marked for one.
// CHECK-LABEL: tt.func @twice(
// CHECK: tt.store {{.*}} autodiff.state = {carried = 0 : i32
// BACK-LABEL: tt.func @twice_bwd(
// BACK-COUNT-1: autodiff.pop
// BACK-NOT: autodiff.pop
// BACK: tt.return
tt.func @twice(%x: !tt.ptr<bf16>, %z: !tt.ptr<f32>, %y: !tt.ptr<bf16>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %lane = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %ys = tt.splat %y : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %zs = tt.splat %z : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %px = tt.addptr %xs, %lane : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %wx = tt.load %px : tensor<64x!tt.ptr<bf16>>
  %first = arith.extf %wx : tensor<64xbf16> to tensor<64xf32>
  %h:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %first, %b = %one) -> (tensor<64xf32>, tensor<64xf32>) : i32 {
    %row = arith.muli %i, %c64 : i32
    %rows = tt.splat %row : i32 -> tensor<64xi32>
    %at = arith.addi %rows, %lane : tensor<64xi32>
    %pxs = tt.addptr %xs, %at : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
    %u = tt.load %pxs : tensor<64x!tt.ptr<bf16>>
    %t = arith.extf %u : tensor<64xbf16> to tensor<64xf32>
    %v = arith.mulf %t, %t : tensor<64xf32>
    %r = arith.truncf %v : tensor<64xf32> to tensor<64xbf16>
    %pys = tt.addptr %ys, %at : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
    tt.store %pys, %r : tensor<64x!tt.ptr<bf16>>
    %p = arith.mulf %a, %v : tensor<64xf32>
    %q = arith.addf %b, %v : tensor<64xf32>
    %w = arith.mulf %p, %q : tensor<64xf32>
    %pzs = tt.addptr %zs, %at : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    tt.store %pzs, %w : tensor<64x!tt.ptr<f32>>
    scf.yield %v, %v : tensor<64xf32>, tensor<64xf32>
  }
  tt.return
}
