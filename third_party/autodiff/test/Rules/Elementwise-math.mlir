// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// X, W, U: the operands. Y: the result. T: the result's cotangent.

// x̄ = ȳ·y.
// CHECK-LABEL: tt.func @exp_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = math.exp %[[X]] :
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[Y]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @exp(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = math.exp %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·y·ln 2.
// CHECK-LABEL: tt.func @exp2_bwd(
// CHECK-DAG: %[[LN2:.*]] = arith.constant 0.693147
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = math.exp2 %[[X]] :
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[Y]] :
// CHECK: %[[D:.*]] = arith.mulf %[[P]], %[[LN2]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @exp2(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = math.exp2 %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ/x; nothing where ȳ is zero, even at x = 0.
// CHECK-LABEL: tt.func @log_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[Q:.*]] = arith.divf %[[T]], %[[X]] :
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]]
// CHECK: %[[D:.*]] = arith.select %[[Z]], %[[ZERO]], %[[Q]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @log(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = math.log %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·log₂e/x.
// CHECK-LABEL: tt.func @log2_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[LOG2E:.*]] = arith.constant 1.44269
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[LOG2E]] :
// CHECK: %[[Q:.*]] = arith.divf %[[P]], %[[X]] :
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]]
// CHECK: %[[D:.*]] = arith.select %[[Z]], %[[ZERO]], %[[Q]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @log2(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = math.log2 %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ/(2y).
// CHECK-LABEL: tt.func @sqrt_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[HALF:.*]] = arith.constant 5.000000e-01
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = math.sqrt %[[X]] :
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[HALF]] :
// CHECK: %[[Q:.*]] = arith.divf %[[P]], %[[Y]] :
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]]
// CHECK: %[[D:.*]] = arith.select %[[Z]], %[[ZERO]], %[[Q]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @sqrt(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = math.sqrt %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ/(2y).
// CHECK-LABEL: tt.func @precise_sqrt_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[HALF:.*]] = arith.constant 5.000000e-01
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = tt.precise_sqrt %[[X]] :
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[HALF]] :
// CHECK: %[[Q:.*]] = arith.divf %[[P]], %[[Y]] :
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]]
// CHECK: %[[D:.*]] = arith.select %[[Z]], %[[ZERO]], %[[Q]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @precise_sqrt(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.precise_sqrt %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = −ȳ·y³/2.
// CHECK-LABEL: tt.func @rsqrt_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[NHALF:.*]] = arith.constant -5.000000e-01
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = math.rsqrt %[[X]] :
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[Y2:.*]] = arith.mulf %[[Y]], %[[Y]] :
// CHECK: %[[Y3:.*]] = arith.mulf %[[Y2]], %[[Y]] :
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[Y3]] :
// CHECK: %[[Q:.*]] = arith.mulf %[[P]], %[[NHALF]] :
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]]
// CHECK: %[[D:.*]] = arith.select %[[Z]], %[[ZERO]], %[[Q]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @rsqrt(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = math.rsqrt %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·cos x.
// CHECK-LABEL: tt.func @sin_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[C:.*]] = math.cos %[[X]] :
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[C]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @sin(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = math.sin %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = −ȳ·sin x.
// CHECK-LABEL: tt.func @cos_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[S:.*]] = math.sin %[[X]] :
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[S]] :
// CHECK: %[[D:.*]] = arith.subf %[[ZERO]], %[[P]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @cos(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = math.cos %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·(1 − y²).
// CHECK-LABEL: tt.func @tanh_bwd(
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = math.tanh %[[X]] :
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[Y2:.*]] = arith.mulf %[[Y]], %[[Y]] :
// CHECK: %[[S:.*]] = arith.subf %[[ONE]], %[[Y2]] :
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[S]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @tanh(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = math.tanh %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·2/√π·exp(−x²).
// CHECK-LABEL: tt.func @erf_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[ISQ:.*]] = arith.constant 1.12837
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[X2:.*]] = arith.mulf %[[X]], %[[X]] :
// CHECK: %[[N:.*]] = arith.subf %[[ZERO]], %[[X2]] :
// CHECK: %[[E:.*]] = math.exp %[[N]] :
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[E]] :
// CHECK: %[[D:.*]] = arith.mulf %[[P]], %[[ISQ]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @erf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = math.erf %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·sign x, zero at zero.
// CHECK-LABEL: tt.func @abs_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[NEG:.*]] = arith.cmpf olt, %[[X]], %[[ZERO]] :
// CHECK: %[[N:.*]] = arith.subf %[[ZERO]], %[[T]] :
// CHECK: %[[M:.*]] = arith.select %[[NEG]], %[[N]], %[[ZERO]] :
// CHECK: %[[POS:.*]] = arith.cmpf ogt, %[[X]], %[[ZERO]] :
// CHECK: %[[D:.*]] = arith.select %[[POS]], %[[T]], %[[M]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @abs(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = math.absf %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Step functions have no derivative.
// CHECK-LABEL: tt.func @steps_bwd(
// CHECK-NOT: autodiff.accumulate
// CHECK: tt.return
tt.func @steps(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %0 = math.floor %x : f32
  %1 = math.ceil %x : f32
  %2 = math.round %x : f32
  %3 = math.roundeven %x : f32
  %4 = math.trunc %x : f32
  %5 = arith.addf %0, %1 : f32
  %6 = arith.addf %2, %3 : f32
  %7 = arith.addf %4, %5 : f32
  %8 = arith.addf %6, %7 : f32
  tt.store %py, %8 : !tt.ptr<f32>
  tt.return
}
