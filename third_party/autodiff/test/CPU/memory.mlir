// RUN: triton-autodiff-opt %s -triton-to-linalg -split-input-file | FileCheck %s

// The two loads join the addition, which is evaluated for the store's sake but
// stored before it: the store may overwrite what they read.

// CHECK-LABEL: func.func @add
// CHECK-SAME: %[[X:.*]]: !llvm.ptr, %[[Y:.*]]: !llvm.ptr, %[[OUT:.*]]: !llvm.ptr, %[[N:.*]]: i32, %[[CTX:.*]]: !llvm.ptr
// CHECK: llvm.load {{.*}} invariant
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<64xf32>)
// CHECK:   scf.if %{{.*}} -> (f32)
// CHECK:     llvm.load
// CHECK:   scf.if %{{.*}} -> (f32)
// CHECK:     llvm.load
// CHECK:   arith.addf
// CHECK: scf.for
// CHECK:   tensor.extract %[[SUM]]
// CHECK:   scf.if
// CHECK-NEXT: llvm.store
tt.func public @add(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32) {
  %c64 = arith.constant 64 : i32
  %pid = tt.get_program_id x : i32
  %start = arith.muli %pid, %c64 : i32
  %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %starts = tt.splat %start : i32 -> tensor<64xi32>
  %i = arith.addi %starts, %range : tensor<64xi32>
  %limit = tt.splat %n : i32 -> tensor<64xi32>
  %mask = arith.cmpi slt, %i, %limit : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %xp = tt.addptr %xs, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %a = tt.load %xp, %mask : tensor<64x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %b = tt.load %yp, %mask : tensor<64x!tt.ptr<f32>>
  %sum = arith.addf %a, %b : tensor<64xf32>
  %twice = arith.addf %sum, %sum : tensor<64xf32>
  %outs = tt.splat %out : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %op = tt.addptr %outs, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %op, %twice, %mask : tensor<64x!tt.ptr<f32>>
  tt.store %xp, %sum, %mask : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// A pointer tile that a loop moves is carried as its base.

// CHECK-LABEL: func.func @moving
// CHECK: scf.for {{.*}} iter_args(%[[BASE:.*]] = %{{.*}}) -> (!llvm.ptr)
// CHECK-NOT: tensor<16xi64>
// CHECK:   llvm.getelementptr %[[BASE]]
// CHECK:   scf.yield %{{.*}} : !llvm.ptr
tt.func public @moving(%x: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %step = arith.constant dense<16> : tensor<16xi32>
  %range = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %p0 = tt.addptr %xs, %range : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%p = %p0) -> (tensor<16x!tt.ptr<f32>>) : i32 {
    tt.store %p, %zero : tensor<16x!tt.ptr<f32>>
    %next = tt.addptr %p, %step : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    scf.yield %next : tensor<16x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// CHECK-LABEL: func.func @atomics
// CHECK: scf.if
// CHECK:   llvm.atomicrmw fadd %{{.*}}, %{{.*}} monotonic : !llvm.ptr, f16
// CHECK: llvm.cmpxchg %{{.*}}, %{{.*}}, %{{.*}} acq_rel acquire : !llvm.ptr, i32
tt.func public @atomics(%x: !tt.ptr<f16>, %lock: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant dense<1.0> : tensor<16xf16>
  %range = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %limit = tt.splat %n : i32 -> tensor<16xi32>
  %mask = arith.cmpi slt, %range, %limit : tensor<16xi32>
  %xs = tt.splat %x : !tt.ptr<f16> -> tensor<16x!tt.ptr<f16>>
  %old = tt.atomic_rmw fadd, relaxed, gpu, %xs, %one, %mask : (tensor<16x!tt.ptr<f16>>, tensor<16xf16>, tensor<16xi1>) -> tensor<16xf16>
  %was = tt.atomic_cas acq_rel, gpu, %lock, %c0, %c1 : (!tt.ptr<i32>, i32, i32) -> i32
  tt.return
}
