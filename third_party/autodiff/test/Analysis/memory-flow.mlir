// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(autodiff-normalize,tt.func(autodiff-record-memory,canonicalize))' \
// RUN:   | FileCheck %s

// A tile is loaded before it is stored, and no later iteration comes back.
// CHECK-LABEL: tt.func @tile_by_tile(
// CHECK-NOT: autodiff.push
// CHECK: tt.return
tt.func @tile_by_tile(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %lanes = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %base = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  scf.for %i = %c0 to %n step %c16 : i32 {
    %s = tt.splat %i : i32 -> tensor<16xi32>
    %o = arith.addi %s, %lanes : tensor<16xi32>
    %q = tt.addptr %base, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %x = tt.load %q : tensor<16x!tt.ptr<f32>>
    %y = arith.mulf %x, %x : tensor<16xf32>
    tt.store %q, %y : tensor<16x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// These tiles overlap.
// CHECK-LABEL: tt.func @overlapping_tiles(
// CHECK: tt.load
// CHECK-NEXT: autodiff.push
tt.func @overlapping_tiles(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c15 = arith.constant 15 : i32
  %lanes = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %base = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  scf.for %i = %c0 to %n step %c15 : i32 {
    %s = tt.splat %i : i32 -> tensor<16xi32>
    %o = arith.addi %s, %lanes : tensor<16xi32>
    %q = tt.addptr %base, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %x = tt.load %q : tensor<16x!tt.ptr<f32>>
    %y = arith.mulf %x, %x : tensor<16xf32>
    tt.store %q, %y : tensor<16x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// The load comes after the store.
// CHECK-LABEL: tt.func @store_first(
// CHECK: tt.load
// CHECK-NEXT: autodiff.push
tt.func @store_first(%p: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %v: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %q = tt.addptr %p, %i : !tt.ptr<f32>, i32
    tt.store %q, %v : !tt.ptr<f32>
    %x = tt.load %q : !tt.ptr<f32>
    tt.store %py, %x : !tt.ptr<f32>
  }
  tt.return
}
