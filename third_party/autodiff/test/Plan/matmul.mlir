// RUN: %differentiate %s | FileCheck %s

// A product's backward needs no forward of its own and no tape: the
// loop reads the tiles of A and B as the forward does, takes C̄ once, before the loop, and stores
// tiles of Ā = C̄·Bᵀ and B̄ = Aᵀ·C̄.
// CHECK-NOT: @matmul_fwd
// CHECK: autodiff.gradient <store 0
// CHECK: autodiff.gradient <store 1
// CHECK: autodiff.check <cotangent 2>
// CHECK-LABEL: tt.func @matmul_bwd(
// CHECK-SAME: %arg3: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<cotangent 2>
// CHECK-SAME: %arg4: !tt.ptr<f16> {autodiff.operand = #autodiff.operand<gradient 0>
// CHECK-SAME: %arg5: !tt.ptr<f16> {autodiff.operand = #autodiff.operand<gradient 1>
// CHECK-DAG: %[[GA:.*]] = tt.splat %arg4
// CHECK-DAG: %[[BASEA:.*]] = tt.addptr %[[GA]],
// CHECK-DAG: %[[GB:.*]] = tt.splat %arg5
// CHECK-DAG: %[[BASEB:.*]] = tt.addptr %[[GB]],
// CHECK-DAG: %[[GC:.*]] = tt.splat %arg3
// CHECK-DAG: %[[PC:.*]] = tt.addptr %[[GC]],
// CHECK: %[[T:.*]] = tt.load %[[PC]]
// CHECK: scf.for {{.*}} step %c1_i32 : i32 {
// CHECK: %[[PA:.*]] = tt.addptr %[[BASEA]],
// CHECK: %[[PB:.*]] = tt.addptr %[[BASEB]],
// CHECK: %[[A:.*]] = tt.load {{.*}}site = 0
// CHECK: %[[B:.*]] = tt.load {{.*}}site = 1
// CHECK: %[[WB:.*]] = arith.extf %[[B]]
// CHECK: %[[BT:.*]] = tt.trans %[[WB]]
// CHECK: %[[DA:.*]] = tt.dot %[[T]], %[[BT]],
// CHECK: %[[WA:.*]] = arith.extf %[[A]]
// CHECK: %[[AT:.*]] = tt.trans %[[WA]]
// CHECK: %[[DB:.*]] = tt.dot %[[AT]], %[[T]],
// CHECK: %[[HB:.*]] = arith.truncf %[[DB]]
// CHECK: tt.store %[[PB]], %[[HB]]
// CHECK: %[[HA:.*]] = arith.truncf %[[DA]]
// CHECK: tt.store %[[PA]], %[[HA]]
// CHECK-NOT: atomic
// CHECK: tt.return
tt.func @matmul(%pa: !tt.ptr<f16>, %pb: !tt.ptr<f16>, %pc: !tt.ptr<f32>, %k: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = arith.constant dense<256> : tensor<16x16xi32>
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %width = arith.constant dense<16> : tensor<16x1xi32>
  %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %0 = tt.expand_dims %i {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %1 = arith.muli %0, %width : tensor<16x1xi32>
  %2 = tt.broadcast %1 : tensor<16x1xi32> -> tensor<16x16xi32>
  %3 = tt.expand_dims %i {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %4 = tt.broadcast %3 : tensor<1x16xi32> -> tensor<16x16xi32>
  %o = arith.addi %2, %4 : tensor<16x16xi32>
  %5 = tt.splat %pa : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %a0 = tt.addptr %5, %o : tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi32>
  %6 = tt.splat %pb : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %b0 = tt.addptr %6, %o : tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi32>
  %r:3 = scf.for %j = %c0 to %k step %c1 iter_args(%acc = %zero, %qa = %a0, %qb = %b0) -> (tensor<16x16xf32>, tensor<16x16x!tt.ptr<f16>>, tensor<16x16x!tt.ptr<f16>>) : i32 {
    %a = tt.load %qa : tensor<16x16x!tt.ptr<f16>>
    %b = tt.load %qb : tensor<16x16x!tt.ptr<f16>>
    %next = tt.dot %a, %b, %acc : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    %na = tt.addptr %qa, %step : tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi32>
    %nb = tt.addptr %qb, %step : tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi32>
    scf.yield %next, %na, %nb : tensor<16x16xf32>, tensor<16x16x!tt.ptr<f16>>, tensor<16x16x!tt.ptr<f16>>
  }
  %7 = tt.splat %pc : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %8 = tt.addptr %7, %o : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
  tt.store %8, %r#0 : tensor<16x16x!tt.ptr<f32>>
  tt.return
}
