// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(autodiff-normalize,tt.func(autodiff-mark-residuals,autodiff-record-memory),autodiff-reverse,canonicalize,cse,autodiff-place-tapes,canonicalize,cse,autodiff-choose-residuals,canonicalize,cse,autodiff-save-records,canonicalize,cse)' \
// RUN:   | FileCheck %s
// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics \
// RUN:   -pass-pipeline='builtin.module(autodiff-normalize,tt.func(autodiff-mark-residuals,autodiff-record-memory),autodiff-reverse,canonicalize,cse,autodiff-place-tapes,canonicalize,cse,autodiff-choose-residuals{save=0},canonicalize,cse,autodiff-save-records{allowed=0})'

// 2.5·u + v may be rounded otherwise where it is computed again, and so might
// the code that is made of it. Few operations compute it: it is saved all the
// same.
// CHECK-LABEL: tt.func @code_fwd(
// CHECK: %[[K:.*]] = arith.fptosi
// CHECK: tt.store {{.*}}, %[[K]]
// CHECK-LABEL: tt.func @code_bwd(
// CHECK-SAME: operand<buffer 0>
// CHECK-NOT: arith.fptosi
// CHECK: %[[K:.*]] = tt.load {{.*}} : tensor<64x!tt.ptr<i32>>
// CHECK: %[[A:.*]] = tt.addptr {{.*}}, %[[K]]
// CHECK: autodiff.accumulate %[[A]],
tt.func @code(%pu: !tt.ptr<f32>, %pv: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %factor = arith.constant dense<2.5> : tensor<64xf32>
  %su = tt.splat %pu : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %au = tt.addptr %su, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %u = tt.load %au : tensor<64x!tt.ptr<f32>>
  %sv = tt.splat %pv : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %av = tt.addptr %sv, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %v = tt.load %av : tensor<64x!tt.ptr<f32>>
  %uf = arith.mulf %u, %factor : tensor<64xf32>
  %x = arith.addf %uf, %v : tensor<64xf32>
  // expected-error @+1 {{what the kernel decides by floats that it computes}}
  %k = arith.fptosi %x : tensor<64xf32> to tensor<64xi32>
  %sw = tt.splat %pw : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %aw = tt.addptr %sw, %k : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %w = tt.load %aw : tensor<64x!tt.ptr<f32>>
  %sy = tt.splat %py : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ay = tt.addptr %sy, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %ay, %w : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// A product has the same bits everywhere, and what asks whether it is infinite
// gets the same answer of any number.
// CHECK-LABEL: tt.func @exact(
// CHECK-NOT: @exact_fwd
// CHECK-LABEL: tt.func @exact_bwd(
// CHECK: arith.fptosi
tt.func @exact(%pu: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %factor = arith.constant 2.5 : f32
  %bias = arith.constant 0.3 : f32
  %infinity = arith.constant 0x7F800000 : f32
  %u = tt.load %pu : !tt.ptr<f32>
  %x = arith.mulf %u, %factor : f32
  %k = arith.fptosi %x : f32 to i32
  %aw = tt.addptr %pw, %k : !tt.ptr<f32>, i32
  %w = tt.load %aw : !tt.ptr<f32>
  %z = arith.addf %x, %bias : f32
  %finite = arith.cmpf olt, %z, %infinity : f32
  tt.store %py, %w, %finite : !tt.ptr<f32>
  tt.return
}

// -----

// A condition that selects between floats leads nowhere else, as in a relu. One
// that compares an index does.
// CHECK-LABEL: tt.func @selected_fwd(
// CHECK: %[[K:.*]] = arith.fptosi
// CHECK-NOT: autodiff.program
// CHECK: tt.store {{.*}}, %[[K]]
// CHECK-LABEL: tt.func @selected_bwd(
// CHECK-SAME: operand<buffer 0>
// CHECK-NOT: operand<buffer 1>
// CHECK: arith.cmpf ogt
tt.func @selected(%pu: !tt.ptr<f32>, %pv: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %zeros = arith.constant dense<0.0> : tensor<64xf32>
  %su = tt.splat %pu : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %au = tt.addptr %su, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %u = tt.load %au : tensor<64x!tt.ptr<f32>>
  %v = tt.load %pv : !tt.ptr<f32>
  %sv = tt.splat %v : f32 -> tensor<64xf32>
  %uu = arith.mulf %u, %u : tensor<64xf32>
  %x = arith.addf %uu, %sv : tensor<64xf32>
  %positive = arith.cmpf ogt, %x, %zeros : tensor<64xf32>
  %relu = arith.select %positive, %x, %zeros : tensor<64xi1>, tensor<64xf32>
  %two = arith.constant 2.0 : f32
  %three = arith.constant 3.0 : f32
  %vv = arith.mulf %v, %two : f32
  %z = arith.addf %vv, %three : f32
  // expected-error @+1 {{the forward may not save it}}
  %k = arith.fptosi %z : f32 to i32
  %sk = tt.splat %k : i32 -> tensor<64xi32>
  %here = arith.cmpi eq, %i, %sk : tensor<64xi32>
  %y = arith.select %here, %relu, %zeros : tensor<64xi1>, tensor<64xf32>
  %sy = tt.splat %py : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ay = tt.addptr %sy, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %ay, %y : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// In a loop, each iteration's is recorded: which way it went.
// CHECK-LABEL: tt.func @branches_fwd(
// CHECK: scf.for
// CHECK: %[[GOES:.*]] = arith.cmpf
// CHECK: %[[BYTE:.*]] = arith.extui %[[GOES]] : i1 to i8
// CHECK: tt.store {{.*}}, %[[BYTE]]
// CHECK-LABEL: tt.func @branches_bwd(
// CHECK-SAME: operand<buffer 1>
// CHECK: scf.for
// CHECK: %[[BYTE:.*]] = tt.load {{.*}} : !tt.ptr<i8>
// CHECK: %[[GOES:.*]] = arith.{{.*}} %[[BYTE]]
// CHECK: scf.if %[[GOES]]
tt.func @branches(%pu: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %bias = arith.constant 0.3 : f32
  %half = arith.constant 0.5 : f32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %au = tt.addptr %pu, %i : !tt.ptr<f32>, i32
    %u = tt.load %au : !tt.ptr<f32>
    %uu = arith.mulf %u, %u : f32
    %x = arith.addf %uu, %bias : f32
    // expected-error @+1 {{or decides by floats that it computes, and the forward may not save it}}
    %goes = arith.cmpf ogt, %x, %half : f32
    %y = scf.if %goes -> (f32) {
      %e = math.exp %u : f32
      scf.yield %e : f32
    } else {
      scf.yield %u : f32
    }
    %ay = tt.addptr %py, %i : !tt.ptr<f32>, i32
    tt.store %ay, %y : !tt.ptr<f32>
  }
  tt.return
}
