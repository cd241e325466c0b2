// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// X, W, U: the operands. Y: the result. T: the result's cotangent.

// x̄ = w̄ = ȳ.
// CHECK-LABEL: tt.func @add_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: autodiff.accumulate %arg1, %[[T]] {
// CHECK: autodiff.accumulate %arg0, %[[T]] {
tt.func @add(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = arith.addf %x, %w : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ, w̄ = −ȳ.
// CHECK-LABEL: tt.func @sub_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[N:.*]] = arith.subf %[[ZERO]], %[[T]] :
// CHECK: autodiff.accumulate %arg1, %[[N]] {
// CHECK: autodiff.accumulate %arg0, %[[T]] {
tt.func @sub(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = arith.subf %x, %w : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = −ȳ.
// CHECK-LABEL: tt.func @neg_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[N:.*]] = arith.subf %[[ZERO]], %[[T]] :
// CHECK: autodiff.accumulate %arg0, %[[N]] {
tt.func @neg(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = arith.negf %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·w, w̄ = ȳ·x.
// CHECK-LABEL: tt.func @mul_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[DX:.*]] = arith.mulf %[[T]], %[[W]] :
// CHECK: %[[DW:.*]] = arith.mulf %[[T]], %[[X]] :
// CHECK: autodiff.accumulate %arg1, %[[DW]] {
// CHECK: autodiff.accumulate %arg0, %[[DX]] {
tt.func @mul(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = arith.mulf %x, %w : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ/w, w̄ = −ȳ/w·y; nothing where ȳ is zero, even by a zero w.
// CHECK-LABEL: tt.func @div_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[Y:.*]] = arith.divf %[[X]], %[[W]] :
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[Q:.*]] = arith.divf %[[T]], %[[W]] :
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]]
// CHECK: %[[DX:.*]] = arith.select %[[Z]], %[[ZERO]], %[[Q]] :
// CHECK: %[[P:.*]] = arith.mulf %[[Q]], %[[Y]] :
// CHECK: %[[N:.*]] = arith.subf %[[ZERO]], %[[P]] :
// CHECK: %[[DW:.*]] = arith.select %[[Z]], %[[ZERO]], %[[N]] :
// CHECK: autodiff.accumulate %arg1, %[[DW]] {
// CHECK: autodiff.accumulate %arg0, %[[DX]] {
tt.func @div(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = arith.divf %x, %w : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ/w, w̄ = −ȳ/w·y; nothing where ȳ is zero, even by a zero w.
// CHECK-LABEL: tt.func @precise_div_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[Y:.*]] = tt.precise_divf %[[X]], %[[W]] :
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[Q:.*]] = arith.divf %[[T]], %[[W]] :
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]]
// CHECK: %[[DX:.*]] = arith.select %[[Z]], %[[ZERO]], %[[Q]] :
// CHECK: %[[P:.*]] = arith.mulf %[[Q]], %[[Y]] :
// CHECK: %[[N:.*]] = arith.subf %[[ZERO]], %[[P]] :
// CHECK: %[[DW:.*]] = arith.select %[[Z]], %[[ZERO]], %[[N]] :
// CHECK: autodiff.accumulate %arg1, %[[DW]] {
// CHECK: autodiff.accumulate %arg0, %[[DX]] {
tt.func @precise_div(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = tt.precise_divf %x, %w : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ, w̄ = −ȳ·(x − y)/w.
// CHECK-LABEL: tt.func @rem_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[V1:.*]] = arith.remf %[[X]], %[[W]] :
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[V2:.*]] = arith.subf %[[X]], %[[V1]] :
// CHECK: %[[V3:.*]] = arith.divf %[[V2]], %[[W]] :
// CHECK: %[[V4:.*]] = arith.mulf %[[T]], %[[V3]] :
// CHECK: %[[V5:.*]] = arith.subf %[[ZERO]], %[[V4]] :
// CHECK: %[[V6:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]] :
// CHECK: %[[V7:.*]] = arith.select %[[V6]], %[[ZERO]], %[[V5]] :
// CHECK: autodiff.accumulate %arg1, %[[V7]] {
// CHECK: autodiff.accumulate %arg0, %[[T]] {
tt.func @rem(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = arith.remf %x, %w : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// ȳ goes to the larger operand, half each on a tie.
// CHECK-LABEL: tt.func @maximum_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[HALF:.*]] = arith.constant 5.000000e-01
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[TIED:.*]] = arith.cmpf oeq, %[[X]], %[[W]] :
// CHECK: %[[H:.*]] = arith.mulf %[[T]], %[[HALF]] :
// CHECK: %[[TX:.*]] = arith.select %[[TIED]], %[[H]], %[[ZERO]] :
// CHECK: %[[XWINS:.*]] = arith.cmpf ugt, %[[X]], %[[W]] :
// CHECK: %[[DX:.*]] = arith.select %[[XWINS]], %[[T]], %[[TX]] :
// CHECK: %[[WWINS:.*]] = arith.cmpf ugt, %[[W]], %[[X]] :
// CHECK: %[[DW:.*]] = arith.select %[[WWINS]], %[[T]], %[[TX]] :
// CHECK: autodiff.accumulate %arg1, %[[DW]] {
// CHECK: autodiff.accumulate %arg0, %[[DX]] {
tt.func @maximum(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = arith.maximumf %x, %w : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// ȳ goes to the larger operand, half each on a tie, all of it where the
// other one is NaN.
// CHECK-LABEL: tt.func @maxnum_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[HALF:.*]] = arith.constant 5.000000e-01
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[WNAN:.*]] = arith.cmpf uno, %[[W]], %[[W]] :
// CHECK: %[[TIED:.*]] = arith.cmpf oeq, %[[X]], %[[W]] :
// CHECK: %[[H:.*]] = arith.mulf %[[T]], %[[HALF]] :
// CHECK: %[[TX:.*]] = arith.select %[[TIED]], %[[H]], %[[ZERO]] :
// CHECK: %[[XWINS:.*]] = arith.cmpf ogt, %[[X]], %[[W]] :
// CHECK: %[[PX:.*]] = arith.select %[[XWINS]], %[[T]], %[[TX]] :
// CHECK: %[[DX:.*]] = arith.select %[[WNAN]], %[[T]], %[[PX]] :
// CHECK: %[[XNAN:.*]] = arith.cmpf uno, %[[X]], %[[X]] :
// CHECK: %[[WWINS:.*]] = arith.cmpf ogt, %[[W]], %[[X]] :
// CHECK: %[[PW:.*]] = arith.select %[[WWINS]], %[[T]], %[[TX]] :
// CHECK: %[[DW:.*]] = arith.select %[[XNAN]], %[[T]], %[[PW]] :
// CHECK: autodiff.accumulate %arg1, %[[DW]] {
// CHECK: autodiff.accumulate %arg0, %[[DX]] {
tt.func @maxnum(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = arith.maxnumf %x, %w : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// ȳ goes to the smaller operand, half each on a tie.
// CHECK-LABEL: tt.func @minimum_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[HALF:.*]] = arith.constant 5.000000e-01
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[TIED:.*]] = arith.cmpf oeq, %[[X]], %[[W]] :
// CHECK: %[[H:.*]] = arith.mulf %[[T]], %[[HALF]] :
// CHECK: %[[TX:.*]] = arith.select %[[TIED]], %[[H]], %[[ZERO]] :
// CHECK: %[[XWINS:.*]] = arith.cmpf ult, %[[X]], %[[W]] :
// CHECK: %[[DX:.*]] = arith.select %[[XWINS]], %[[T]], %[[TX]] :
// CHECK: %[[WWINS:.*]] = arith.cmpf ult, %[[W]], %[[X]] :
// CHECK: %[[DW:.*]] = arith.select %[[WWINS]], %[[T]], %[[TX]] :
// CHECK: autodiff.accumulate %arg1, %[[DW]] {
// CHECK: autodiff.accumulate %arg0, %[[DX]] {
tt.func @minimum(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = arith.minimumf %x, %w : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// ȳ goes to the smaller operand, half each on a tie, all of it where the
// other one is NaN.
// CHECK-LABEL: tt.func @minnum_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[HALF:.*]] = arith.constant 5.000000e-01
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[WNAN:.*]] = arith.cmpf uno, %[[W]], %[[W]] :
// CHECK: %[[TIED:.*]] = arith.cmpf oeq, %[[X]], %[[W]] :
// CHECK: %[[H:.*]] = arith.mulf %[[T]], %[[HALF]] :
// CHECK: %[[TX:.*]] = arith.select %[[TIED]], %[[H]], %[[ZERO]] :
// CHECK: %[[XWINS:.*]] = arith.cmpf olt, %[[X]], %[[W]] :
// CHECK: %[[PX:.*]] = arith.select %[[XWINS]], %[[T]], %[[TX]] :
// CHECK: %[[DX:.*]] = arith.select %[[WNAN]], %[[T]], %[[PX]] :
// CHECK: %[[XNAN:.*]] = arith.cmpf uno, %[[X]], %[[X]] :
// CHECK: %[[WWINS:.*]] = arith.cmpf olt, %[[W]], %[[X]] :
// CHECK: %[[PW:.*]] = arith.select %[[WWINS]], %[[T]], %[[TX]] :
// CHECK: %[[DW:.*]] = arith.select %[[XNAN]], %[[T]], %[[PW]] :
// CHECK: autodiff.accumulate %arg1, %[[DW]] {
// CHECK: autodiff.accumulate %arg0, %[[DX]] {
tt.func @minnum(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = arith.minnumf %x, %w : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// ȳ goes to the chosen operand, zero to the other.
// CHECK-LABEL: tt.func @select_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[C:.*]] = arith.cmpf olt, %[[X]], %[[W]] :
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[DX:.*]] = arith.select %[[C]], %[[T]], %[[ZERO]] :
// CHECK: %[[DW:.*]] = arith.select %[[C]], %[[ZERO]], %[[T]] :
// CHECK: autodiff.accumulate %arg1, %[[DW]] {
// CHECK: autodiff.accumulate %arg0, %[[DX]] {
tt.func @select(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %c = arith.cmpf olt, %x, %w : f32
  %y = arith.select %c, %x, %w : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// ȳ goes to x inside [w, u], to w below it, to u above it or where w is above u.
// CHECK-LABEL: tt.func @clamp_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[U:.*]] = tt.load %arg2 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg3 {
// CHECK: %[[NOTABOVE:.*]] = arith.cmpf ole, %[[X]], %[[U]] :
// CHECK: %[[I:.*]] = arith.select %[[NOTABOVE]], %[[T]], %[[ZERO]] :
// CHECK: %[[NOTBELOW:.*]] = arith.cmpf oge, %[[X]], %[[W]] :
// CHECK: %[[DX:.*]] = arith.select %[[NOTBELOW]], %[[I]], %[[ZERO]] :
// CHECK: %[[RIGHT:.*]] = arith.cmpf ole, %[[W]], %[[U]] :
// CHECK: %[[PW:.*]] = arith.select %[[RIGHT]], %[[T]], %[[ZERO]] :
// CHECK: %[[BELOW:.*]] = arith.cmpf ult, %[[X]], %[[W]] :
// CHECK: %[[DW:.*]] = arith.select %[[BELOW]], %[[PW]], %[[ZERO]] :
// CHECK: %[[ABOVE:.*]] = arith.cmpf ogt, %[[X]], %[[U]] :
// CHECK: %[[PU:.*]] = arith.select %[[ABOVE]], %[[T]], %[[ZERO]] :
// CHECK: %[[WRONG:.*]] = arith.cmpf ogt, %[[W]], %[[U]] :
// CHECK: %[[DU:.*]] = arith.select %[[WRONG]], %[[T]], %[[PU]] :
// CHECK: autodiff.accumulate %arg2, %[[DU]] {
// CHECK: autodiff.accumulate %arg1, %[[DW]] {
// CHECK: autodiff.accumulate %arg0, %[[DX]] {
tt.func @clamp(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %pu: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %u = tt.load %pu : !tt.ptr<f32>
  %y = tt.clampf %x, %w, %u, propagateNan = none : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·w, w̄ = ȳ·x, ū = ȳ.
// CHECK-LABEL: tt.func @fma_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg3 {
// CHECK: %[[DX:.*]] = arith.mulf %[[T]], %[[W]] :
// CHECK: %[[DW:.*]] = arith.mulf %[[T]], %[[X]] :
// CHECK: autodiff.accumulate %arg2, %[[T]] {
// CHECK: autodiff.accumulate %arg1, %[[DW]] {
// CHECK: autodiff.accumulate %arg0, %[[DX]] {
tt.func @fma(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %pu: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %u = tt.load %pu : !tt.ptr<f32>
  %y = math.fma %x, %w, %u : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Adjoints are f32 whatever the primal: a cast changes nothing.
// CHECK-LABEL: tt.func @ext_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {{.*}} -> f32
// CHECK: autodiff.accumulate %arg0, %[[T]] {{.*}} : !tt.ptr<f16>, f32
tt.func @ext(%px: !tt.ptr<f16>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f16>
  %y = arith.extf %x : f16 to f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Nor does a conversion to 8 bits.
// CHECK-LABEL: tt.func @fp8_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {{.*}} -> f32
// CHECK: autodiff.accumulate %arg0, %[[T]] {{.*}} : !tt.ptr<f32>, f32
tt.func @fp8(%px: !tt.ptr<f32>, %py: !tt.ptr<f8E4M3FN>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.fp_to_fp %x, rounding = rtne : f32 -> f8E4M3FN
  tt.store %py, %y : !tt.ptr<f8E4M3FN>
  tt.return
}

// -----

// Nor does one that rounds.
// CHECK-LABEL: tt.func @trunc_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {{.*}} -> f32
// CHECK: autodiff.accumulate %arg0, %[[T]] {{.*}} : !tt.ptr<f32>, f32
tt.func @trunc(%px: !tt.ptr<f32>, %py: !tt.ptr<bf16>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = arith.truncf %x : f32 to bf16
  tt.store %py, %y : !tt.ptr<bf16>
  tt.return
}

// -----

// f64 keeps its own width.
// CHECK-LABEL: tt.func @wide_bwd(
// CHECK: %[[Y:.*]] = math.exp {{.*}} : f64
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {{.*}} -> f64
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[Y]] : f64
// CHECK: autodiff.accumulate %arg0, %[[D]] {{.*}} : !tt.ptr<f64>, f64
tt.func @wide(%px: !tt.ptr<f64>, %py: !tt.ptr<f64>) {
  %x = tt.load %px : !tt.ptr<f64>
  %y = math.exp %x : f64
  tt.store %py, %y : !tt.ptr<f64>
  tt.return
}

// -----

// A detour through f64 widens and narrows the adjoint, too.
// CHECK-LABEL: tt.func @detour_bwd(
// CHECK: %[[Y:.*]] = math.exp {{.*}} : f64
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {{.*}} -> f32
// CHECK: %[[W:.*]] = arith.extf %[[T]] : f32 to f64
// CHECK: %[[D:.*]] = arith.mulf %[[W]], %[[Y]] : f64
// CHECK: %[[N:.*]] = arith.truncf %[[D]] : f64 to f32
// CHECK: autodiff.accumulate %arg0, %[[N]] {{.*}} : !tt.ptr<f32>, f32
tt.func @detour(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = arith.extf %x : f32 to f64
  %e = math.exp %w : f64
  %y = arith.truncf %e : f64 to f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
