// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// Each side's adjoint runs under the primal's condition; a value from outside
// gets zero from the side that does not use it.
// CHECK-LABEL: tt.func @result_bwd(
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[X:.*]] = tt.load %arg0
// CHECK: %[[W:.*]] = tt.load %arg1
// CHECK: %[[T:.*]] = autodiff.upstream %arg2
// CHECK: %[[D:.*]]:2 = scf.if %arg3
// CHECK: %[[Y:.*]] = math.exp %[[X]]
// CHECK: %[[DX:.*]] = arith.mulf %[[T]], %[[Y]] :
// CHECK: scf.yield %[[DX]], %[[ZERO]] :
// CHECK: else
// CHECK: %[[S:.*]] = math.sin %[[W]]
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[S]] :
// CHECK: %[[DW:.*]] = arith.subf %[[ZERO]], %[[P]] :
// CHECK: scf.yield %[[ZERO]], %[[DW]] :
// CHECK: autodiff.accumulate %arg1, %[[D]]#1 {
// CHECK: autodiff.accumulate %arg0, %[[D]]#0 {
tt.func @result(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = scf.if %c -> f32 {
    %e = math.exp %x : f32
    scf.yield %e : f32
  } else {
    %s = math.cos %w : f32
    scf.yield %s : f32
  }
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Effects are reversed inside the branch that has them.
// CHECK-LABEL: tt.func @effects_bwd(
// CHECK: %[[D:.*]] = scf.if %arg2
// CHECK: %[[T:.*]] = autodiff.upstream %arg1
// CHECK: scf.yield %[[T]] :
// CHECK: else
// CHECK: scf.yield %cst :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @effects(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1) {
  %x = tt.load %px : !tt.ptr<f32>
  scf.if %c {
    tt.store %py, %x : !tt.ptr<f32>
  }
  tt.return
}
