// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-reverse -canonicalize -cse -autodiff-read-cotangents -autodiff-lower-accumulates \
// RUN:   | FileCheck %s
// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-reverse -canonicalize -cse -autodiff-read-cotangents -autodiff-lower-accumulates=atomic=0 \
// RUN:   | FileCheck %s --check-prefix=ATOMIC
// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-reverse -canonicalize -cse -autodiff-read-cotangents=repeated=1 -autodiff-lower-accumulates \
// RUN:   | FileCheck %s --check-prefix=REPEATED

// A tile per program. Given the check that programs' tiles cover the tensor
// without overlap, the cotangent is loaded and the gradient stored, in the
// tensor's type and at the primal's offsets and mask; the shadow is aligned as
// the primal is.
// CHECK: autodiff.gradient <store 0 : f16 init = none returned = true
// CHECK-SAME: checks [<bijective 0 at 0 [<1 x [<4 x grid0>, <1 x 4>] below arg2>
// CHECK-SAME: reach [{{.*}}]>
// CHECK: autodiff.check <cotangent 1> <distinct
// CHECK-LABEL: tt.func @copy_bwd(
// CHECK-SAME: %arg3: !tt.ptr<f16> {autodiff.operand = #autodiff.operand<cotangent 1>}
// CHECK-SAME: %arg4: !tt.ptr<f16> {autodiff.operand = #autodiff.operand<gradient 0>, tt.divisibility = 16 : i32}
// CHECK: %[[O:.*]] = arith.addi
// CHECK: %[[M:.*]] = arith.cmpi slt, %[[O]],
// CHECK: %[[GRADIENT:.*]] = tt.splat %arg4
// CHECK: %[[PG:.*]] = tt.addptr %[[GRADIENT]], %[[O]]
// CHECK: %[[COTANGENT:.*]] = tt.splat %arg3
// CHECK: %[[PC:.*]] = tt.addptr %[[COTANGENT]], %[[O]]
// CHECK: %[[H:.*]] = tt.load %[[PC]], %[[M]], %
// CHECK: %[[T:.*]] = arith.extf %[[H]]
// CHECK: %[[R:.*]] = arith.truncf %[[T]]
// CHECK: tt.store %[[PG]], %[[R]], %[[M]]

// Where that check failed, contributions are added in f32.
// ATOMIC: autodiff.gradient <atomic 0 : f32 init = zero
// ATOMIC-LABEL: tt.func @copy_bwd(
// ATOMIC-SAME: %arg4: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 0>
// ATOMIC: %[[M:.*]] = arith.cmpi slt
// ATOMIC: tt.atomic_rmw fadd, relaxed, gpu, %{{.*}}, %{{.*}}, %[[M]] {autodiff.site = 0 : i32} : (tensor<4x!tt.ptr<f32>>

// Where stored addresses may repeat, a cotangent is taken once only.
// REPEATED: autodiff.gradient <atomic 1 : f32 init = cotangent>
// REPEATED-LABEL: tt.func @copy_bwd(
// REPEATED-SAME: %arg4: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 1>
// REPEATED: %[[M:.*]] = arith.cmpi slt
// REPEATED: %[[Z:.*]] = arith.constant dense<0.000000e+00>
// REPEATED: %[[OLD:.*]] = tt.atomic_rmw exch, relaxed, gpu, %{{.*}}, %[[Z]], %[[M]]
// REPEATED: arith.select %[[M]], %[[OLD]],
// REPEATED: gpu.barrier
tt.func @copy(%px: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %py: !tt.ptr<f16>, %n: i32) {
  %c4 = arith.constant 4 : i32
  %id = tt.get_program_id x : i32
  %b = arith.muli %id, %c4 : i32
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %0 = tt.splat %b : i32 -> tensor<4xi32>
  %o = arith.addi %0, %i : tensor<4xi32>
  %1 = tt.splat %n : i32 -> tensor<4xi32>
  %m = arith.cmpi slt, %o, %1 : tensor<4xi32>
  %2 = tt.splat %px : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>>
  %3 = tt.addptr %2, %o : tensor<4x!tt.ptr<f16>>, tensor<4xi32>
  %x = tt.load %3, %m : tensor<4x!tt.ptr<f16>>
  %4 = tt.splat %py : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>>
  %5 = tt.addptr %4, %o : tensor<4x!tt.ptr<f16>>, tensor<4xi32>
  tt.store %5, %x, %m : tensor<4x!tt.ptr<f16>>
  tt.return
}
