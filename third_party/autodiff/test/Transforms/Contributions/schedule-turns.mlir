// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse -autodiff-read-cotangents -autodiff-lower-accumulates | FileCheck %s

// The lanes of a program, and the same ones from behind: what the first turn has
// stored, the second one adds to, behind a barrier.
// CHECK: autodiff.gradient <store 0 :
// CHECK-SAME: init = none
// CHECK-SAME: checks [<bijective
// CHECK-SAME: <distinct
// CHECK-LABEL: tt.func @mirrored_bwd(
// CHECK-NOT: tt.atomic_rmw
// CHECK: tt.store %[[P:[^,]*]], %{{.*}} : tensor<4x!tt.ptr<f16>>
// CHECK: gpu.barrier
// CHECK: %[[BEFORE:.*]] = tt.load %[[Q:[^:]*]] : tensor<4x!tt.ptr<f16>>
// CHECK: %[[WIDE:.*]] = arith.extf %[[BEFORE]]
// CHECK: %[[SUM:.*]] = arith.addf %[[WIDE]], %{{.*}} : tensor<4xf32>
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[SUM]]
// CHECK: tt.store %[[Q]], %[[ROUNDED]] : tensor<4x!tt.ptr<f16>>
// CHECK: tt.return
tt.func @mirrored(%px: !tt.ptr<f16>, %py: !tt.ptr<f16>) {
  %c4 = arith.constant 4 : i32
  %last = arith.constant dense<3> : tensor<4xi32>
  %lane = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %behind = arith.subi %last, %lane : tensor<4xi32>
  %id = tt.get_program_id x : i32
  %start = arith.muli %id, %c4 : i32
  %rowx = tt.addptr %px, %start : !tt.ptr<f16>, i32
  %rowsx = tt.splat %rowx : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>>
  %pa = tt.addptr %rowsx, %lane : tensor<4x!tt.ptr<f16>>, tensor<4xi32>
  %pb = tt.addptr %rowsx, %behind : tensor<4x!tt.ptr<f16>>, tensor<4xi32>
  %a = tt.load %pa : tensor<4x!tt.ptr<f16>>
  %b = tt.load %pb : tensor<4x!tt.ptr<f16>>
  %y = arith.mulf %a, %b : tensor<4xf16>
  %rowy = tt.addptr %py, %start : !tt.ptr<f16>, i32
  %rowsy = tt.splat %rowy : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>>
  %pc = tt.addptr %rowsy, %lane : tensor<4x!tt.ptr<f16>>, tensor<4xi32>
  tt.store %pc, %y : tensor<4x!tt.ptr<f16>>
  tt.return
}

// -----

// The lanes of another program's: nothing tells which one is first.
// CHECK: autodiff.gradient <atomic 0 :
// CHECK-LABEL: tt.func @others_bwd(
// CHECK: tt.atomic_rmw fadd
// CHECK: tt.atomic_rmw fadd
tt.func @others(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c2 = arith.constant 2 : i32
  %id = tt.get_program_id x : i32
  %twice = arith.muli %id, %c2 : i32
  %pa = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %pb = tt.addptr %px, %twice : !tt.ptr<f32>, i32
  %a = tt.load %pa : !tt.ptr<f32>
  %b = tt.load %pb : !tt.ptr<f32>
  %y = arith.mulf %a, %b : f32
  %pc = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %pc, %y : !tt.ptr<f32>
  tt.return
}
