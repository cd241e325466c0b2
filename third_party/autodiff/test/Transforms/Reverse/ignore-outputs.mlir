// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -autodiff-ignore-outputs='all-cotangents=false cotangents=1' | FileCheck %s
// RUN: triton-autodiff-opt %s -split-input-file -autodiff-ignore-outputs \
// RUN:   | FileCheck %s --check-prefix=ALL

// What is stored to an argument without a cotangent is left out of the copy that
// is differentiated; so are integers, which never have one, and barriers.
// CHECK-LABEL: tt.func @outputs(
// CHECK: tt.store
// CHECK: gpu.barrier
// CHECK: tt.store
// CHECK: tt.atomic_rmw
// CHECK-LABEL: tt.func @outputs_framed(
// CHECK: tt.store %arg1
// CHECK-NOT: gpu.barrier
// CHECK-NOT: tt.store
// CHECK-NOT: tt.atomic_rmw
// CHECK: tt.return
// ALL-LABEL: tt.func @outputs_framed(
// ALL: tt.store %arg1
// ALL: tt.store %arg2
// ALL-NOT: tt.atomic_rmw
// ALL: tt.return
tt.func @outputs(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %z: !tt.ptr<f32>,
                 %n: !tt.ptr<i32>) {
  %true = arith.constant true
  %one = arith.constant 1 : i32
  %a = tt.load %x : !tt.ptr<f32>
  tt.store %y, %a : !tt.ptr<f32>
  gpu.barrier
  tt.store %z, %a : !tt.ptr<f32>
  %before = tt.atomic_rmw add, relaxed, gpu, %n, %one, %true
      : (!tt.ptr<i32>, i32, i1) -> i32
  tt.return
}

// -----

// Not so if it may be loaded again, or its result counts, or it may go to where
// a cotangent is.
// CHECK-LABEL: tt.func @read_framed(
// CHECK: tt.store %arg2
// CHECK: tt.atomic_rmw
// CHECK: tt.store %{{.*}}
// CHECK: tt.store %arg1
// CHECK: tt.return
tt.func @read(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %z: !tt.ptr<f32>,
              %n: !tt.ptr<i32>, %w: !tt.ptr<f32>, %c: i1) {
  %true = arith.constant true
  %one = arith.constant 1 : i32
  %a = tt.load %x : !tt.ptr<f32>
  tt.store %z, %a : !tt.ptr<f32>
  %b = tt.load %z : !tt.ptr<f32>
  %before = tt.atomic_rmw add, relaxed, gpu, %n, %one, %true
      : (!tt.ptr<i32>, i32, i1) -> i32
  %p = tt.addptr %x, %before : !tt.ptr<f32>, i32
  %e = tt.load %p : !tt.ptr<f32>
  %either = arith.select %c, %y, %w : !tt.ptr<f32>
  tt.store %either, %e : !tt.ptr<f32>
  tt.store %y, %b : !tt.ptr<f32>
  tt.return
}

// -----

// Integers have no cotangent, whoever asks for one.
// CHECK-LABEL: tt.func @bits_framed(
// CHECK-NOT: tt.store
// CHECK: tt.return
tt.func @bits(%x: !tt.ptr<f32>, %y: !tt.ptr<i32>) {
  %a = tt.load %x : !tt.ptr<f32>
  %b = arith.bitcast %a : f32 to i32
  tt.store %y, %b : !tt.ptr<i32>
  tt.return
}
