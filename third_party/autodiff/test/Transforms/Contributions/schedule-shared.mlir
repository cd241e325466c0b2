// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse -autodiff-read-cotangents -autodiff-lower-accumulates | FileCheck %s

// Addresses that data decide may coincide: their gradients meet in atomics, at
// the gathered addresses.
// CHECK: autodiff.gradient <atomic 0 : f32 init = zero
// CHECK-SAME: confined = sums
// CHECK-LABEL: tt.func @gather_bwd(
// CHECK: %[[J:.*]] = tt.load {{.*}} : tensor<4x!tt.ptr<i32>>
// CHECK: %[[G:.*]] = tt.splat %arg4
// CHECK: %[[PG:.*]] = tt.addptr %[[G]], %[[J]]
// CHECK: %[[T:.*]] = tt.load
// CHECK: tt.atomic_rmw fadd, relaxed, gpu, %[[PG]], %[[T]],
tt.func @gather(%px: !tt.ptr<f32>, %pi: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %0 = tt.splat %pi : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>>
  %1 = tt.addptr %0, %i : tensor<4x!tt.ptr<i32>>, tensor<4xi32>
  %j = tt.load %1 : tensor<4x!tt.ptr<i32>>
  %2 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %3 = tt.addptr %2, %j : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %x = tt.load %3 : tensor<4x!tt.ptr<f32>>
  %4 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %5 = tt.addptr %4, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %5, %x : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// In place, maybe: one buffer is the cotangent first and the gradient afterwards.
// What the store overwrote is cleared before the load's contribution is added.
// CHECK: autodiff.gradient {{.*}}init = cotangent returned = true reach [<
// CHECK-LABEL: tt.func @in_place_bwd(
// CHECK-SAME: %arg2: !tt.ptr<f32>
// CHECK: %[[Y:.*]] = math.exp
// CHECK: %[[T:.*]] = tt.atomic_rmw exch, relaxed, gpu, %arg2, %{{.*}}, %arg1
// CHECK: %[[S:.*]] = arith.select %arg1, %[[T]]
// CHECK: gpu.barrier
// CHECK: %[[Z:.*]] = arith.select %arg1, %[[Y]]
// CHECK: %[[D:.*]] = arith.mulf %[[S]], %[[Z]]
// CHECK: tt.atomic_rmw fadd, relaxed, gpu, %arg2, %[[D]],
tt.func @in_place(%px: !tt.ptr<f32>, %c: i1) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = math.exp %x : f32
  tt.store %px, %y, %c : !tt.ptr<f32>
  tt.return
}

// -----

// Two loads of the same argument, apart by a distance that the launch knows: a
// plain store for each, if the check holds.
// CHECK: autodiff.gradient <store 0 :
// CHECK-SAME: checks [<bijective 0 at 0
// CHECK-SAME: <arg2 x [<1 x 2>]>
// CHECK-LABEL: tt.func @twice_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0
// CHECK: %[[G:.*]] = tt.addptr %arg4, %arg2
// CHECK: %[[W:.*]] = tt.load
// CHECK: %[[T:.*]] = tt.load %arg3
// CHECK: %[[DX:.*]] = arith.mulf %[[T]], %[[W]]
// CHECK: %[[DW:.*]] = arith.mulf %[[T]], %[[X]]
// CHECK: tt.store %[[G]], %[[DW]]
// CHECK: tt.store %arg4, %[[DX]]
tt.func @twice(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %i: i32) {
  %x = tt.load %px : !tt.ptr<f32>
  %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
  %w = tt.load %p : !tt.ptr<f32>
  %y = arith.mulf %x, %w : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Three, apart by the same distance.
// CHECK: autodiff.gradient <store 0 :
// CHECK-SAME: <arg2 x [<1 x 3>]>
// CHECK-LABEL: tt.func @thrice_bwd(
tt.func @thrice(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %i: i32) {
  %c2 = arith.constant 2 : i32
  %x = tt.load %px : !tt.ptr<f32>
  %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
  %w = tt.load %p : !tt.ptr<f32>
  %j = arith.muli %i, %c2 : i32
  %q = tt.addptr %px, %j : !tt.ptr<f32>, i32
  %v = tt.load %q : !tt.ptr<f32>
  %xw = arith.mulf %x, %w : f32
  %y = arith.mulf %xw, %v : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Three, apart by two distances: their addresses may coincide.
// CHECK: autodiff.gradient <atomic 0 :
// CHECK-LABEL: tt.func @uneven_bwd(
// CHECK-COUNT-3: tt.atomic_rmw fadd, relaxed, gpu,
tt.func @uneven(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %i: i32, %j: i32) {
  %x = tt.load %px : !tt.ptr<f32>
  %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
  %w = tt.load %p : !tt.ptr<f32>
  %q = tt.addptr %px, %j : !tt.ptr<f32>, i32
  %v = tt.load %q : !tt.ptr<f32>
  %xw = arith.mulf %x, %w : f32
  %y = arith.mulf %xw, %v : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
