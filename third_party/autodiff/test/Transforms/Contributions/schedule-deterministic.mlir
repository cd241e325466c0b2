// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse -autodiff-read-cotangents \
// RUN:   -autodiff-lower-accumulates=deterministic=true
// RUN: not triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse -autodiff-read-cotangents \
// RUN:   -autodiff-lower-accumulates=deterministic=true \
// RUN:   -remarks-filter-missed='plain-stores|deterministic' 2>&1 | FileCheck %s

// What stands in the way, remarks say.

// Data decide the addresses.
// CHECK: remark: [Missed] plain-stores {{.*}} Argument=0
// CHECK-SAME: it depends on what is loaded at
// CHECK: remark: [Missed] deterministic {{.*}} Argument=0
tt.func @gather(%px: !tt.ptr<f32> loc("x"("k.py":1:1)), %pi: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %0 = tt.splat %pi : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>>
  %1 = tt.addptr %0, %i : tensor<4x!tt.ptr<i32>>, tensor<4xi32>
  %j = tt.load %1 : tensor<4x!tt.ptr<i32>>
  %2 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %3 = tt.addptr %2, %j : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  // expected-error @+1 {{the gradient of argument 'x' would meet in atomic operations here, whose order differs from run to run, and a deterministic backward was asked for: remove what stands in the way of its other schedules, or allow atomics (deterministic=False)}}
  %x = tt.load %3 : tensor<4x!tt.ptr<f32>>
  %4 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %5 = tt.addptr %4, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %5, %x : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// In place, but maybe not everywhere.
// CHECK: remark: [Missed] plain-stores {{.*}}the kernel stores to the argument at
tt.func @square(%px: !tt.ptr<f32>, %c: i1) {
  // expected-error @+1 {{would meet in atomic operations here}}
  %x = tt.load %px : !tt.ptr<f32>
  %y = arith.mulf %x, %x : f32
  tt.store %px, %y, %c : !tt.ptr<f32>
  tt.return
}

// -----

// Two loads add up.
// CHECK: remark: [Missed] plain-stores {{.*}}it is loaded at {{.*}} and {{.*}}, in other steps or bounds
tt.func @twice(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  // expected-error @+4 {{would meet in atomic operations here}}
  %x = tt.load %px {isVolatile = true} : !tt.ptr<f32>
  %i = tt.get_program_id x : i32
  %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
  %z = tt.load %p : !tt.ptr<f32>
  %y = arith.mulf %x, %z : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Every element once: nothing is refused.
tt.func @copy(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %i = tt.get_program_id x : i32
  %0 = tt.addptr %px, %i : !tt.ptr<f32>, i32
  %x = tt.load %0 : !tt.ptr<f32>
  %1 = tt.addptr %py, %i : !tt.ptr<f32>, i32
  tt.store %1, %x : !tt.ptr<f32>
  tt.return
}
