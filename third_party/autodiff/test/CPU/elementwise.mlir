// RUN: triton-autodiff-opt %s -triton-to-linalg -split-input-file | FileCheck %s

// Halves are computed in f32 and rounded after every operation.

// CHECK-LABEL: func.func @halves
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: %[[P:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK: %[[R:.*]] = arith.truncf %[[P]] : f32 to f16
// CHECK: arith.extf %[[R]] : f16 to f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: arith.truncf
tt.func public @halves(%p: !tt.ptr<f16>, %x: f16, %y: f16) {
  %a = arith.mulf %x, %y : f16
  %b = arith.addf %a, %x : f16
  tt.store %p, %b : !tt.ptr<f16>
  tt.return
}

// -----

// A divisor of zero does not reach the processor.

// CHECK-LABEL: func.func @division
// CHECK: %[[ZERO:.*]] = arith.cmpi eq, %[[Y:arg2]], %{{.*}} : i64
// CHECK: arith.select %[[ZERO]]
// CHECK: llvm.sdiv
// CHECK: llvm.udiv %{{.*}}, %c7
tt.func public @division(%p: !tt.ptr<i64>, %x: i64, %y: i64) {
  %c7 = arith.constant 7 : i64
  %a = arith.divsi %x, %y : i64
  %b = arith.divui %a, %c7 : i64
  tt.store %p, %b : !tt.ptr<i64>
  tt.return
}

// -----

// CHECK-LABEL: func.func @bf16
// CHECK-NOT: arith.truncf
// CHECK: arith.shrui
// CHECK: arith.trunci %{{.*}} : i32 to i16
// CHECK: arith.bitcast %{{.*}} : i16 to bf16
tt.func public @bf16(%p: !tt.ptr<bf16>, %x: f32) {
  %a = arith.truncf %x : f32 to bf16
  tt.store %p, %a : !tt.ptr<bf16>
  tt.return
}

// -----

// CHECK-LABEL: func.func @library
// CHECK: math.exp
// CHECK: call @atanf
tt.func public @library(%p: !tt.ptr<f32>, %x: f32) {
  %a = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_expf"} : (f32) -> f32
  %b = tt.extern_elementwise %a {libname = "", libpath = "", pure = true, symbol = "__nv_atanf"} : (f32) -> f32
  tt.store %p, %b : !tt.ptr<f32>
  tt.return
}

// -----

// The scalar function of a map runs for every element, with its early return
// as a branch.

// CHECK-LABEL: func.func @map
// CHECK: linalg.generic
// CHECK: %[[C:.*]] = arith.cmpf ogt, %[[X:.*]], %{{.*}} : f32
// CHECK: scf.if %[[C]] -> (f32)
// CHECK: linalg.yield
tt.func public @map(%p: !tt.ptr<f32>, %x: f32) {
  %0 = tt.splat %p : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %xs = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %y = "tt.map_elementwise"(%xs) <{pack = 1 : i32}> ({
  ^bb0(%a: f32):
    %c = arith.cmpf ogt, %a, %x : f32
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    %b = arith.mulf %a, %a : f32
    tt.map_elementwise.return %b : f32
  ^bb2:
    tt.map_elementwise.return %a : f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  tt.store %0, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}
